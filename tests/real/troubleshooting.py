"""docs/troubleshooting.md, section by section: the symptom shows, the page's command makes sure of it, its setting cures it.

Each check is named as its section, so that a section without a check fails, and the other way round. Times are scaled:
nginx cuts after 3 s where the page speaks of 60.
"""

import asyncio
import contextlib
import gzip
import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import openai

from kit import CHAT, Answer, Engine, Failed, Nginx, Proxy, chat, eventually, free_port, main, must
from page_of import sections

PAGE = sections("docs/troubleshooting.md")
ASK = chat().decode()
# A heartbeat for every third of what nginx allows.
OFTEN = "1s"


def at(port):
    return f"http://127.0.0.1:{port}"


class Custom:
    """An engine of our own making, for what `heartline sim` does not do: `answer` writes the whole response."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                with contextlib.suppress(OSError):
                    answer(self)
                self.close_connection = True

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def begin(request, kind, *headers):
    """The head of a response that ends with its connection."""
    request.send_response(200)
    for name, value in (("content-type", kind), ("connection", "close"), *headers):
        request.send_header(name, value)
    request.end_headers()


def pieces(port, *headers):
    """The pieces of the answer's body as they came, each with its seconds since the first."""
    head = f"POST {CHAT} HTTP/1.0\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {len(ASK)}\r\n"
    came = []
    with socket.create_connection(("127.0.0.1", port), 30) as line:
        line.sendall((head + "".join(f"{header}\r\n" for header in headers) + "\r\n" + ASK).encode())
        raw = line.makefile("rb")
        head = b"".join(iter(raw.readline, b"\r\n")).lower()
        while piece := raw.read1(65_536):
            came.append((time.monotonic(), piece))
    return head, [(moment - came[0][0], piece) for moment, piece in came]


def cut_after_exactly_60_s():
    page = PAGE["cut_after_exactly_60_s"]
    with Engine("--ttft", "4500ms") as engine, Nginx(engine.port) as nginx:
        code, told, errors = page.shell("curl ", GATEWAY=at(nginx.port), ASK=ASK)
        must(code == 18 and "curl: (18)" in errors, f"curl ends with {code}: {errors}")
        status, headers, end = re.fullmatch(r"(\d+), headers after ([\d.]+) s, end after ([\d.]+) s\n", told).groups()
        must(status == "200" and float(headers) < 1.5 and 2.9 < float(end) < 4.5, told)
        [phrase] = re.findall(r"`(upstream timed out [^`]*)`", page.text)
        must(phrase in nginx.errors(), f"nginx's error log: {nginx.errors()}")
    with Engine("--ttft", "4500ms") as engine, Proxy(engine.port, *page.proxy(interval=OFTEN)) as proxy:
        with Nginx(proxy.port) as nginx:
            code, told, errors = page.shell("curl ", GATEWAY=at(nginx.port), ASK=ASK)
            must(code == 0 and told.startswith("200,"), f"with heartline curl ends with {code}: {told} {errors}")


def answer_524_or_504_before_any_byte():
    page = PAGE["524_or_504_before_any_byte"]
    with Engine("--ttft", "4500ms", "--wait", "first-token") as engine:
        code, told, _ = page.shell("curl ", ENGINE=at(engine.port), ASK=ASK)
        headers = float(re.search(r"headers after ([\d.]+) s", told).group(1))
        must(code == 0 and headers > 4.4, f"the engine's own headers: {told}")
        with Proxy(engine.port, "--interval", OFTEN) as proxy, Nginx(proxy.port) as nginx:
            answer = Answer.of(nginx.port, CHAT, ASK.encode())
            must(answer.status == 504, f"without --commit-after: {answer.status}")
            [phrase] = re.findall(r"`(while reading response header [^`]*)`", page.text)
            must(phrase in nginx.errors(), f"nginx's error log: {nginx.errors()}")
        with Proxy(engine.port, *page.proxy(interval=OFTEN, commit_after="2s")) as proxy, Nginx(proxy.port) as nginx:
            answer = Answer.of(nginx.port, CHAT, ASK.encode())
            must(answer.status == 200 and answer.whole, f"with --commit-after: {answer.status}, whole: {answer.whole}")


def tokens_come_in_lumps():
    page = PAGE["tokens_come_in_lumps"]

    def tokens(request):
        begin(request, "text/event-stream")
        for number in range(8):
            request.wfile.write(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number)
            time.sleep(0.25)
        request.wfile.write(b"data: [DONE]\n\n")

    with Custom(tokens) as engine, Nginx(engine.port) as nginx:
        code, told, errors = page.shell("curl ", GATEWAY=at(nginx.port), ASK=ASK)
        lines = [line for line in told.splitlines() if "data:" in line]
        must(code == 0 and len(lines) == 9, f"the page's loop: {code}, {told} {errors}")
        must(all(re.match(r"\d\d:\d\d:\d\d data: ", line) for line in lines), f"no time before each line: {told}")
        lump = pieces(nginx.port)[1][-1][0]
        must(lump < 0.5, f"nginx, buffering: the last piece came {lump:.2f} s after the first, no lump to cure")
    with Custom(tokens) as engine, Proxy(engine.port, "--interval", "60s") as proxy:
        with Nginx(proxy.port) as nginx:
            head, came = pieces(nginx.port)
            must(b"no-transform" in head, f"no no-transform: {head}")
            must(came[-1][0] > 1.5 and len(came) >= 8, f"behind heartline: {came}")
        with Nginx(proxy.port, settings="gzip on; gzip_types text/event-stream; gzip_http_version 1.0;") as nginx:
            head, came = pieces(nginx.port, "accept-encoding: gzip")
            must(b"content-encoding: gzip" in head, f"nginx did not compress: {head}")
            reader = zlib.decompressobj(wbits=31)
            moments = [moment for moment, piece in came if b"data:" in reader.decompress(piece)]
            must(len(moments) >= 8 and moments[-1] > 1.5, f"compressed, events came at {moments}")
    return f"last piece after {lump:.2f} s through nginx's buffer, {came[-1][0]:.2f} s behind heartline"


def the_sdk_raises_on_an_empty_line():
    page = PAGE["the_sdk_raises_on_an_empty_line"]

    def strict(port, **headers):
        """A reader that takes every empty line for the end of an event, as openai-go did before 3.43."""
        request = urllib.request.Request(at(port) + CHAT, ASK.encode(), {"content-type": "application/json", **headers})
        data, events = "", []
        with urllib.request.urlopen(request, timeout=30) as answer:
            for line in answer:
                line = line.decode().rstrip("\n")
                if line.startswith("data: "):
                    data = line[6:]
                elif not line and data != "[DONE]":
                    events.append(json.loads(data))
                    data = ""
        return events

    def raises(port, **headers):
        try:
            strict(port, **headers)
        except ValueError:
            return True
        return False

    with Engine("--ttft", "2s", "--tokens", "4", "--itl", "10ms") as engine:
        whole = strict(engine.port)
        with Proxy(engine.port, "--interval", "500ms") as proxy:
            must(raises(proxy.port), "the reader does not raise on an empty line, so there is nothing to cure")
            code, told, errors = page.shell("curl ", GATEWAY=at(proxy.port), ASK=ASK)
            must(code == 0 and told.startswith("$\n"), f"cat shows no empty line: {code} {told} {errors}")
        with Proxy(engine.port, *page.proxy(0), "--interval", "500ms") as proxy:
            must(strict(proxy.port) == whole, "other events with comments")
        with Proxy(engine.port, *page.proxy(1), "--interval", "500ms") as proxy:
            [value] = set(re.findall(r"`x-heartbeat: (comment)`", page.text))
            must(strict(proxy.port, **{"x-heartbeat": value}) == whole, "other events for the client that asked")
            must(raises(proxy.port), "a client that did not ask got comments too")
            must(strict(proxy.port, **{"x-heartbeat": "off"}) == whole, "other events for the client that wants none")


def heartbeats_arrive_but_the_client_still_times_out():
    page = PAGE["heartbeats_arrive_but_the_client_still_times_out"]

    def through_curl(port):
        command = ["curl", "-sS", "-N", "-o", "/dev/null", "--max-time", "2", at(port) + CHAT, "-d", ASK]
        return subprocess.run(command, capture_output=True, timeout=30).returncode

    async def through_aiohttp(port, **limits):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(**limits)) as session:
            async with session.post(at(port) + CHAT, data=ASK) as answer:
                return (await answer.read()).endswith(b"data: [DONE]\n\n")

    def through_openai(port):
        client = openai.OpenAI(base_url=at(port) + "/v1", api_key="none", timeout=2, max_retries=0)
        stream = client.chat.completions.create(model="sim", messages=[{"role": "user", "content": "a"}], stream=True)
        return len(list(stream))

    def events(port):
        answer = Answer.of(port, "/v1/messages", ASK.encode())
        return [kind for kind, _ in answer.events()]

    with Engine("--ttft", "4s", "--tokens", "4") as engine, Proxy(engine.port, "--interval", "500ms") as proxy:
        must(through_curl(proxy.port) == 28, "curl --max-time: heartbeats helped against a total limit")
        try:
            asyncio.run(through_aiohttp(proxy.port, total=2))
            raise Failed("aiohttp's total: heartbeats helped against a total limit")
        except TimeoutError:
            pass
        must("ClientTimeout(total=None, sock_read=60)" in page.text, "the page sets something else for aiohttp")
        must(aiohttp.client.DEFAULT_TIMEOUT.total == 300, "aiohttp's default is another")
        must(asyncio.run(through_aiohttp(proxy.port, total=None, sock_read=2)), "aiohttp with sock_read: not whole")
        try:
            through_openai(engine.port)
            raise Failed("openai waits for longer than its timeout without heartbeats")
        except openai.APITimeoutError:
            pass
        except openai.APIError as error:
            must("timed out" in str(error).lower() or "timeout" in repr(error.__cause__).lower(), f"openai: {error!r}")
        must(through_openai(proxy.port) > 0, "openai, with heartbeats: no chunks")
        must(events(proxy.port).count("ping") > events(engine.port).count("ping"), "auto sends no pings")
        with Proxy(engine.port, "--interval", "500ms", "--heartbeat", "newline") as forced:
            must(events(forced.port).count("ping") <= events(engine.port).count("ping"), "newline sends pings")


def no_heartbeats_arrive():
    page = PAGE["no_heartbeats_arrive"]
    release = threading.Event()

    def compressed(request):
        begin(request, "text/event-stream", ("content-encoding", "gzip"))
        request.wfile.write(gzip.compress(b"data: a\n\n"))
        release.wait(20)

    def ndjson(request):
        begin(request, "application/x-ndjson")
        release.wait(20)

    def document(request):
        begin(request, "application/json")
        release.wait(20)

    def silent(_):
        release.wait(20)

    def looked_at(answer, path, *flags):
        """What /streams says of one request, and the count of heartbeats by result, a few intervals after it came."""
        with Custom(answer) as engine, Proxy(engine.port, "--interval", "200ms", *flags) as proxy:
            with socket.create_connection(("127.0.0.1", proxy.port)) as line:
                line.sendall(f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{{}}".encode())
                time.sleep(1.5)
                shown = [command.replace("http://127.0.0.1:9900", at(proxy.admin)) for command in page.commands("curl ")]
                streams, metrics = (subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout
                                    for command in shown)
                release.set()
                release.clear()
        results = dict(re.findall(r'result="(\w+)"} (\d+)', metrics))
        [stream] = json.loads(streams)["streams"] or [None]
        return stream, {name: int(count) for name, count in results.items()}

    stream, results = looked_at(compressed, CHAT)
    must(stream["form"] is None and results.get("bypassed", 0) > 0, f"compressed: {stream} {results}")
    stream, results = looked_at(document, CHAT)
    must(stream["form"] is None and not results.get("sent"), f"JSON: {stream} {results}")
    stream, results = looked_at(document, CHAT, "--json", "known-apis")
    must(stream["heartbeats"] > 0, f"JSON of a known API, asked for: {stream} {results}")
    stream, results = looked_at(ndjson, "/own")
    must(stream["form"] is None, f"NDJSON of an unknown API: {stream} {results}")
    stream, results = looked_at(ndjson, "/own", "--ndjson", "always")
    must(stream["heartbeats"] > 0 and results.get("sent"), f"NDJSON, asked for: {stream} {results}")
    stream, results = looked_at(silent, CHAT)
    must(stream["form"] is None and stream["bytes"] == 0, f"no answer yet: {stream} {results}")


def ends_after_15_minutes_with_an_error_event():
    page = PAGE["ends_after_15_minutes_with_an_error_event"]
    hung = Engine("--script", "hang")
    with hung, Proxy(hung.port, "--interval", "500ms", "--max-silence", "2s") as proxy:
        answer = Answer.of(proxy.port, CHAT, ASK.encode())
        must(b"max_silence" in answer.body, f"no word of max_silence: {answer.body}")
    with Engine("--ttft", "4s") as slow, Proxy(slow.port, "--interval", "500ms", *page.proxy()) as proxy:
        answer = Answer.of(proxy.port, CHAT, ASK.encode())
        must(answer.whole and b"max_silence" not in answer.body, "ended although the limit was above its silence")


def answer_502_at_once():
    page = PAGE["502_at_once"]
    nobody = free_port()
    code, _, errors = page.shell("curl ", ENGINE=at(nobody))
    must(code == 7, f"curl finds something: {code} {errors}")
    with Proxy(nobody, "--interval", "1s") as proxy:
        must(Answer.of(proxy.port, CHAT, ASK.encode()).status == 502, "not 502")
        eventually(lambda: "error" in proxy.text(), "the log names no error")


def answer_403_from_the_engine():
    def picky(request):
        """As Ollama does on loopback (ollama, server/routes.go)."""
        known = request.headers["host"].split(":")[0] in ("localhost", "127.0.0.1")
        request.send_response(200 if known else 403)
        request.send_header("content-length", "0")
        request.end_headers()

    def status(port):
        request = b"POST /api/chat HTTP/1.1\r\nhost: models.example.com\r\ncontent-length: 2\r\n\r\n{}"
        with socket.create_connection(("127.0.0.1", port), 10) as line:
            line.sendall(request)
            return Answer.read(line).status

    with Custom(picky) as engine:
        with Proxy(engine.port) as proxy:
            must(status(proxy.port) == 200, "the engine refuses what heartline sends by default")
        with Proxy(engine.port, "--host", "preserve") as proxy:
            must(status(proxy.port) == 403, "--host preserve keeps another name than the client's")


def a_deploy_cuts_streams():
    page = PAGE["a_deploy_cuts_streams"]

    def deployed(drain_timeout):
        with Engine("--ttft", "3s") as engine:
            with Proxy(engine.port, "--interval", OFTEN, *page.proxy(drain_timeout=drain_timeout)) as proxy:
                with ThreadPoolExecutor(1) as pool:
                    answer = pool.submit(Answer.of, proxy.port, CHAT, ASK.encode())
                    eventually(lambda: proxy.streams() == 1, "the request does not show")
                    proxy.process.send_signal(signal.SIGTERM)
                    answer = answer.result()
                must("draining" in proxy.text(), "the log does not say that it drains")
        return answer.whole and b"[DONE]" in answer.body and b"error" not in answer.body

    must(deployed("20s"), "a stream that had time to drain was cut")
    must(not deployed("500ms"), "a stream survived a drain that is too short for it")


CHECKS = (cut_after_exactly_60_s, answer_524_or_504_before_any_byte, tokens_come_in_lumps,
          the_sdk_raises_on_an_empty_line, heartbeats_arrive_but_the_client_still_times_out, no_heartbeats_arrive,
          ends_after_15_minutes_with_an_error_event, answer_502_at_once, answer_403_from_the_engine, a_deploy_cuts_streams)

if __name__ == "__main__":
    checked = {check.__name__.removeprefix("answer_") for check in CHECKS}
    if checked != PAGE.keys():
        sys.exit(f"docs/troubleshooting.md: sections without a check, or checks without one: {checked ^ PAGE.keys()}")
    main(*CHECKS)
