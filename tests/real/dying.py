"""Both ways of dying: a client that is killed while the engine is silent, an engine that is killed in the middle of an answer.

The clients that see the engine die are openai and anthropic from PyPI; their retries are off, so that the first error shows.
"""

import contextlib
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

import anthropic
import openai

from kit import CHAT, Engine, Failed, Nginx, Program, Proxy, chat, eventually, main, must, port_of

HERE = pathlib.Path(__file__).resolve().parent
DROP_MS_MAX = 100
KILLS = 9
HEARTBEATS = ("--interval", "1s", "--access-log", "off")


class Silent:
    """An engine that notes when a request has come and when its connection is gone; with `head` it answers so far."""

    def __init__(self, head=b""):
        self.head = head
        self.came, self.gone = threading.Semaphore(0), threading.Semaphore(0)
        self.gone_at = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            line, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(line,), daemon=True).start()

    def serve(self, line):
        with line, contextlib.suppress(OSError):
            seen = line.recv(65_536)
            while not seen.endswith(b"}"):
                seen += line.recv(65_536)
            line.sendall(self.head)
            self.came.release()
            with contextlib.suppress(ConnectionError):
                while line.recv(65_536):
                    pass
            self.gone_at = time.monotonic()
            self.gone.release()


# A client in a process of its own. What it sends after its request is what a client has pipelined.
CLIENT = """
import socket, sys, time
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
line.sendall(sys.stdin.buffer.read())
time.sleep(600)
"""


def drop_times(head, extra=b""):
    """Kills a client several times; how long the engine took to see it, in ms."""
    engine, times = Silent(head), []
    body = chat()
    request = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with Proxy(engine.port, "--interval", "30s", "--access-log", "off") as proxy:
        for _ in range(KILLS):
            client = subprocess.Popen([sys.executable, "-c", CLIENT, str(proxy.port)], stdin=subprocess.PIPE)
            client.stdin.write(request.encode() + body + extra)
            client.stdin.close()
            must(engine.came.acquire(timeout=20), "the request did not reach the engine")
            time.sleep(0.1)
            killed_at = time.monotonic()
            client.kill()
            client.wait()
            must(engine.gone.acquire(timeout=20), "the engine never saw the client go")
            times.append((engine.gone_at - killed_at) * 1_000)
        eventually(lambda: proxy.streams() == 0, "the proxy still lists the exchange")
    middle = statistics.median(times)
    told = f"{middle:.1f} ms in the median of {KILLS}, {max(times):.1f} at most"
    must(middle < DROP_MS_MAX, told)
    return told


STREAMS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def client_killed_before_the_headers():
    return drop_times(b"")


def client_killed_before_the_first_token():
    return drop_times(STREAMS)


def client_killed_with_pipelined_bytes():
    return drop_times(STREAMS, extra=b"GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n")


def openai_reads(port):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=60)
    for _ in client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}], stream=True):
        pass


def anthropic_reads(port):
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="none", max_retries=0, timeout=60)
    for _ in client.messages.create(model="m", max_tokens=64, stream=True,
                                    messages=[{"role": "user", "content": "hello"}]):
        pass


SDKS = {"openai": (openai, openai_reads), "anthropic": (anthropic, anthropic_reads)}


# How the HTTP library's own errors are called, which anthropic 2.15 lets through once a stream has begun: a lost
# connection; and, behind nginx, which closes where the proxy resets, also a body that ends too early.
LOST = {"connection": "NetworkError", "connection behind nginx": "TransportError"}


def is_lost(error, kind):
    return any(base.__name__ == LOST.get(kind) for base in type(error).__mro__)


def wrong(sdk, read, port, kind):
    """What is wrong with how the SDK takes an answer from `port`; `None` when it raises its error of that kind."""
    try:
        read(port)
    except sdk.APIConnectionError as error:
        return None if kind in LOST else f"a connection error: {error}"
    except sdk.APIError as error:
        return None if kind == "api" else f"an API error: {error}"
    except Exception as error:  # whatever else it is: this is what must not be
        if is_lost(error, kind):
            return None
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return "no error: a silent success"


def killed(place, kind, *flags, behind=None):
    """Kills an engine at `place` under both SDKs, directly and behind nginx when `behind` is its HTTP version."""
    for name, (sdk, read) in SDKS.items():
        with Program([sys.executable, str(HERE / "dying_engine.py"), name, place]) as engine:
            port = port_of(engine.said("listening on "))
            with contextlib.ExitStack() as stack:
                proxy = stack.enter_context(Proxy(port, *HEARTBEATS, *flags))
                front = proxy if behind is None else stack.enter_context(Nginx(proxy.port, behind or None))

                def kill():
                    with contextlib.suppress(Failed):
                        engine.said("waiting to be killed")
                        time.sleep(1.5 if place == "silent" else 0.3)
                    engine.kill()

                killer = threading.Thread(target=kill)
                killer.start()
                problem = wrong(sdk, read, front.port, kind)
                killer.join()
                must(problem is None, f"{name} raises {problem}")
                eventually(lambda: proxy.streams() == 0, "the proxy still lists the exchange")


def engine_killed_between_events():
    killed("between", "api")


def engine_killed_inside_an_event():
    killed("inside", "connection")


def engine_killed_between_events_behind_nginx():
    killed("between", "api", behind="")
    killed("between", "api", behind="1.1")


def engine_killed_inside_an_event_behind_nginx():
    killed("inside", "connection behind nginx", behind="")
    killed("inside", "connection behind nginx", behind="1.1")


def engine_killed_after_the_proxy_answered_for_it():
    killed("silent", "api", "--commit-after", "300ms")


def engine_killed_before_its_headers():
    """Without a commit there is a status to tell it: 502."""
    for name, (sdk, read) in SDKS.items():
        with Program([sys.executable, str(HERE / "dying_engine.py"), name, "silent"]) as engine, \
                Proxy(port_of(engine.said("listening on ")), *HEARTBEATS) as proxy:
            threading.Timer(1, engine.kill).start()
            try:
                read(proxy.port)
            except sdk.InternalServerError as error:
                must(error.status_code == 502, f"{name}: status {error.status_code}")
                must(json.loads(error.response.content)["error"]["message"], f"{name}: the 502 says nothing")
            else:
                raise Failed(f"{name}: no error")


def engine_reports_an_error_itself():
    with Engine("--script", "late-error", "--ttft", "0s") as engine, Proxy(engine.port, *HEARTBEATS) as proxy:
        for name, (sdk, read) in SDKS.items():
            problem = wrong(sdk, read, proxy.port, "api")
            must(problem is None, f"{name} raises {problem}")


def whole_answers_raise_nothing():
    with Engine("--ttft", "3s") as engine, Proxy(engine.port, *HEARTBEATS) as proxy:
        for _, read in SDKS.values():
            read(proxy.port)


if __name__ == "__main__":
    main(client_killed_before_the_headers, client_killed_before_the_first_token, client_killed_with_pipelined_bytes,
         engine_killed_between_events, engine_killed_inside_an_event, engine_killed_between_events_behind_nginx,
         engine_killed_inside_an_event_behind_nginx, engine_killed_after_the_proxy_answered_for_it,
         engine_killed_before_its_headers, engine_reports_an_error_itself, whole_answers_raise_nothing)
