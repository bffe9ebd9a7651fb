"""The proxy under hostile input: each attempt gets a clear answer, the next request works, and nothing is left of it.

Nothing means: no exchange in /streams, no connection in /metrics, no descriptor beyond those from before.
"""

import contextlib
import select
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

from kit import CHAT, WORK, Answer, Engine, Proxy, chat, eventually, main, must

OPENS = 10_000
# At once: a burst that a listener's backlog holds.
BATCH = 100
SETTINGS = """
[limits]
header_timeout = "1s"
stalled_after = "2s"
"""


@contextlib.contextmanager
def bench(*flags):
    """An engine behind a proxy with short timeouts; in the end nothing may be left in the proxy."""
    settings = WORK / "hostile.toml"
    settings.write_text(SETTINGS)
    with Engine("--ttft", "0s", "--itl", "1ms") as engine, \
            Proxy(engine.port, "--config", str(settings), "--access-log", "off", *flags) as proxy:
        works(proxy)
        before = settled(proxy)
        yield engine, proxy
        works(proxy)
        eventually(lambda: proxy.streams() == 0, lambda: f"{proxy.streams()} exchanges are left", 20)
        # The one connection to the engine that the pool keeps goes after 4 s.
        eventually(lambda: proxy.metric("heartline_proxy_connections") == 0 and proxy.files() <= before,
                   lambda: f"connections {proxy.metric('heartline_proxy_connections')}, "
                           f"descriptors {proxy.files()} of {before} before", 20)


def settled(proxy):
    """How many descriptors the proxy needs when it does nothing."""
    time.sleep(5)
    return proxy.files()


def works(proxy):
    """The next request is answered."""
    answer = Answer.of(proxy.port, CHAT, chat())
    must(answer.status == 200 and answer.whole and b"[DONE]" in answer.body, f"the next request: {answer.status}")


def say(proxy, text, seconds=10):
    """Sends bytes and reads one answer."""
    with socket.create_connection(("127.0.0.1", proxy.port), seconds) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))
        return Answer.read(line)


POST = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\n"
HIDDEN = "0\r\n\r\nGET /hidden HTTP/1.1\r\nhost: a\r\n\r\n"

SMUGGLING = {
    "a length and a coding": POST + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n" + HIDDEN,
    "a coding and a length": POST + "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + HIDDEN,
    "two lengths": POST + "content-length: 0\r\ncontent-length: 40\r\n\r\n" + HIDDEN,
    "two equal lengths": POST + "content-length: 4\r\ncontent-length: 4\r\n\r\n" + HIDDEN,
    "a list of lengths": POST + "content-length: 4, 40\r\n\r\n" + HIDDEN,
    "a signed length": POST + "content-length: +4\r\n\r\n" + HIDDEN,
    "a length in hexadecimal": POST + "content-length: 0x4\r\n\r\n" + HIDDEN,
    "a length beyond 64 bits": POST + "content-length: 18446744073709551617\r\n\r\n" + HIDDEN,
    "a blank before the colon": POST + "content-length : 4\r\n\r\n" + HIDDEN,
    "a coding with a blank before the colon": POST + "transfer-encoding : chunked\r\n\r\n" + HIDDEN,
    "a folded coding": POST + "transfer-encoding:\r\n chunked\r\n\r\n" + HIDDEN,
    "a coding that is none": POST + "transfer-encoding: xchunked\r\n\r\n" + HIDDEN,
    "chunked that is not last": POST + "transfer-encoding: chunked, identity\r\n\r\n" + HIDDEN,
    "chunked twice": POST + "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n" + HIDDEN,
    "a coding after a vertical tab": POST + "transfer-encoding: \x0bchunked\r\n\r\n" + HIDDEN,
    "chunked in HTTP/1.0": f"POST {CHAT} HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + HIDDEN,
    "a chunk's size that is none": POST + "transfer-encoding: chunked\r\n\r\nzz\r\n" + HIDDEN,
    "a chunk's negative size": POST + "transfer-encoding: chunked\r\n\r\n-1\r\n" + HIDDEN,
    "a chunk's size beyond 64 bits": POST + "transfer-encoding: chunked\r\n\r\n10000000000000004\r\nabcd\r\n" + HIDDEN,
    "a chunk longer than it says": POST + "transfer-encoding: chunked\r\n\r\n2\r\nabcdef\r\n" + HIDDEN,
    "a line feed in a chunk's extension": POST + "transfer-encoding: chunked\r\n\r\n4;\nx\r\nabcd\r\n" + HIDDEN,
    "a CR in a value": POST + "x: a\rtransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n" + HIDDEN,
    "a NUL in a value": POST + "x: a\0b\r\n\r\n",
    "two hosts": "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "CONNECT": "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1:22\r\n\r\n",
    "TRACE": "TRACE / HTTP/1.1\r\nhost: a\r\n\r\n",
    "no HTTP at all": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS greeting\r\n\r\n",
    "a version that does not exist": "GET / HTTP/3.7\r\nhost: a\r\n\r\n",
}


def smuggling_is_refused():
    with bench() as (_, proxy):
        for name, text in SMUGGLING.items():
            answer = say(proxy, text)
            must(answer.status in (400, 405, 501, 505), f"{name}: {answer.status} {answer.head[:200]}")
            must(b"hidden" not in answer.body, f"{name}: the hidden request was read")
        must("hidden" not in proxy.text(), "a hidden request was seen by the proxy")
    return f"{len(SMUGGLING)} attempts"


def heads_that_come_split_are_whole():
    """A head in pieces of one byte, and one cut at each place of its line ends."""
    body = chat()
    head = f"{POST}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with bench() as (_, proxy):
        for size in (1, 2, 3, 17):
            with socket.create_connection(("127.0.0.1", proxy.port), 10) as line:
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                whole = head + body
                for at in range(0, len(whole), size):
                    line.sendall(whole[at:at + size])
                    time.sleep(0.0005)
                answer = Answer.read(line)
            must(answer.status == 200 and answer.whole, f"pieces of {size}: {answer.status}")


def huge_heads_are_told_so():
    with bench() as (_, proxy):
        for name, text in {
            "a value of 1 MB": f"GET / HTTP/1.1\r\nhost: a\r\nx: {'a' * 1_000_000}\r\n\r\n",
            "a target of 1 MB": f"GET /{'a' * 1_000_000} HTTP/1.1\r\nhost: a\r\n\r\n",
            "a method of 1 MB": f"{'A' * 1_000_000} / HTTP/1.1\r\nhost: a\r\n\r\n",
            "10,000 fields": "GET / HTTP/1.1\r\nhost: a\r\n" + "".join(f"x-{n}: a\r\n" for n in range(10_000)) + "\r\n",
            "a head without an end": "GET / HTTP/1.1\r\nhost: a\r\n" + "x: a\r\n" * 200_000,
        }.items():
            answer = say(proxy, text)
            must(answer.status in (400, 414, 431), f"{name}: {answer.status}")
        must(proxy.resident() < 200, f"{proxy.resident():.0f} MB resident")


def slow_writers_are_let_go():
    """A head of one byte every 0.1 s, 200 of them at once: closed after the second that a head may take."""
    with bench() as (_, proxy):
        lines = [socket.create_connection(("127.0.0.1", proxy.port), 10) for _ in range(200)]
        began, text = time.monotonic(), POST + "x: " + "a" * 1_000
        open_ones = set(lines)
        for byte in text:
            works_meanwhile = time.monotonic() - began < 0.2
            for line in list(open_ones):
                try:
                    line.sendall(byte.encode())
                    if select.select([line], [], [], 0)[0] and not line.recv(65_536):
                        open_ones.discard(line)
                except OSError:
                    open_ones.discard(line)
            if works_meanwhile:
                works(proxy)
            if not open_ones or time.monotonic() - began > 15:
                break
            time.sleep(0.1)
        took = time.monotonic() - began
        for line in lines:
            line.close()
        must(not open_ones, f"{len(open_ones)} of {len(lines)} slow writers were still served after {took:.1f} s")
    return f"all gone after {took:.1f} s"


def slow_readers_are_let_go():
    """50 clients that ask for a long answer and read none of it."""
    with bench() as (_, proxy):
        lines = []
        body = chat()
        for _ in range(50):
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            line.connect(("127.0.0.1", proxy.port))
            head = f"POST {CHAT}?itl=0s&tokens=200000 HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            lines.append(line)
        eventually(lambda: proxy.streams() == len(lines), "the slow readers' exchanges do not live")
        works(proxy)
        must(proxy.resident() < 200, f"{proxy.resident():.0f} MB resident: their answers are gathered")
        eventually(lambda: proxy.streams() == 0, lambda: f"{proxy.streams()} slow readers are still served", 20)
        for line in lines:
            line.close()
    return f"{len(lines)} of them"


def ten_thousand_opens_and_aborts():
    """Each opens, sends nothing, a part or all of a request, and is reset."""
    body = chat()
    head = f"{POST}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    texts = (b"", b"P", head[:40], head, head + body[:10], head + body, b"GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n" * 3)
    with bench() as (_, proxy):
        began = time.monotonic()

        def batches(first):
            for start in range(first, OPENS, 2 * BATCH):
                lines = [socket.create_connection(("127.0.0.1", proxy.port), 20) for _ in range(BATCH)]
                for number, line in enumerate(lines, start):
                    with contextlib.suppress(ConnectionError):
                        line.sendall(texts[number % len(texts)])
                for line in lines:
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    line.close()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(batches, (0, BATCH)))
        took = time.monotonic() - began
    return f"{OPENS} in {took:.1f} s"


if __name__ == "__main__":
    main(smuggling_is_refused, heads_that_come_split_are_whole, huge_heads_are_told_so, slow_writers_are_let_go,
         slow_readers_are_let_go, ten_thousand_opens_and_aborts)
