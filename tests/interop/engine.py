"""The scripted engine: serves the fixtures, silent where the position says. Started by `interop.py`.

It reads the fixture and the position from a request's model, or from the path where an API has it there. It adds nothing
and leaves nothing out: what a client decodes from it directly is what that client must decode through heartline.
"""

import asyncio
import json
import re
import sys
import urllib.parse

from fixtures import FIXTURES

PATHS = re.compile(r"/models/(?P<gemini>[^/:]+):|/events/(?P<events>[^/?]+)")
# For pages in browsers, whose script comes from another port.
OPEN = b"access-control-allow-origin: *\r\naccess-control-allow-headers: *\r\n"


async def serve(reader, writer):
    """Answers one connection's requests, one after the other."""
    try:
        while await answer(reader, writer):
            pass
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def answer(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = b""
    if "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    elif "chunked" in fields.get("transfer-encoding", ""):
        while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    if method == "OPTIONS":
        writer.write(b"HTTP/1.1 204 No Content\r\n" + OPEN + b"\r\n")
        return True
    model = wanted(target, body)
    name, _, position = model.rpartition("--")
    fixture = FIXTURES.get(name)
    if fixture is None or position not in fixture.positions():
        text = json.dumps({"error": {"message": f"no fixture {model!r} at {method} {target}"}}).encode()
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n" + OPEN
                     + b"content-length: %d\r\n\r\n" % len(text) + text)
        return True
    chunks = fixture.chunks(position)
    if position == "head":
        (data, wait), *rest = chunks
        await asyncio.sleep(wait)
        chunks = [(data, 0), *rest]
    kind = fixture.kind.encode()
    if kind == b"application/json":
        length = sum(len(data) for data, _ in chunks)
        # Of known length only where it is sent at once: a length keeps heartbeats out.
        framing = b"content-length: %d" % length if position == "none" else b"transfer-encoding: chunked"
    else:
        framing = b"transfer-encoding: chunked"
    is_chunked = framing.startswith(b"transfer")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ncache-control: no-store\r\n" + OPEN + framing + b"\r\n\r\n")
    for data, wait in chunks:
        if wait:
            await writer.drain()
            await asyncio.sleep(wait)
        if data:
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if is_chunked else data)
            # One chunk at a time on the wire.
            await writer.drain()
            await asyncio.sleep(0)
    if is_chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def wanted(target, body):
    """The model that a request names."""
    found = PATHS.search(urllib.parse.unquote(target))
    if found:
        return found["gemini"] or found["events"]
    try:
        return json.loads(body)["model"]
    except (ValueError, KeyError, TypeError):
        return ""


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
