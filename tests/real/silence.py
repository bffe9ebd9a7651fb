"""The harness against servers nobody here wrote: its silence is what a plain socket sees.

    python3 tests/real/silence.py target/debug/heartline

Needs Node, and for the second server sse-starlette and uvicorn from PyPI; says which it left out. For each server 200
streams are held by `heartline load` while ten plain sockets read the same stream; their longest silences must agree.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PERIOD = 0.5
HOLD = 6
# The sockets begin to measure once all streams are open, as the harness does.
RAMP = 2

NODE = """
const http = require('http');
http.createServer((req, res) => {
  res.writeHead(200, {'content-type': 'text/event-stream'});
  res.write('data: hello\\n\\n');
  const timer = setInterval(() => res.write(': keep-alive\\n\\n'), %d);
  req.on('close', () => clearInterval(timer));
}).listen(0, '127.0.0.1', function () { console.log('port ' + this.address().port); });
""" % (PERIOD * 1000)

STARLETTE = """
import asyncio, socket, uvicorn
from sse_starlette.sse import EventSourceResponse
async def events():
    yield {"data": "hello"}
    await asyncio.sleep(3600)
async def app(scope, receive, send):
    if scope["type"] == "http":
        await EventSourceResponse(events(), ping=%f)(scope, receive, send)
sock = socket.socket(); sock.bind(("127.0.0.1", 0)); sock.listen(1024)
print("port", sock.getsockname()[1], flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
server.run(sockets=[sock])
""" % PERIOD


def plain(port, found):
    """Reads one stream with nothing but a socket; keeps its longest time without a byte."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
        stream.recv(65536)
        last, longest = time.monotonic(), 0.0
        judged, end = last + RAMP, last + HOLD
        while time.monotonic() < end:
            if not stream.recv(65536):
                break
            now = time.monotonic()
            if last >= judged:
                longest = max(longest, now - last)
            last = now
        found.append(longest * 1000)


def compare(name, command, heartline):
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().split()[1])
        found = []
        readers = [threading.Thread(target=plain, args=(port, found)) for _ in range(10)]
        with tempfile.TemporaryDirectory() as folder:
            report_file = os.path.join(folder, "report.json")
            for reader in readers:
                reader.start()
            load = [heartline, "load", f"http://127.0.0.1:{port}/events", "--streams", "200", "--rate", "500/s",
                    "--interval", f"{int(PERIOD * 1000)}ms", "--hold", f"{HOLD}s", "--json", report_file]
            code = subprocess.run(load, stdout=subprocess.DEVNULL).returncode
            for reader in readers:
                reader.join()
            with open(report_file) as file:
                report = json.load(file)
    finally:
        server.kill()
        server.wait()
    found.sort()
    plain_ms, silence = found[len(found) // 2], report["silence_ms"]
    print(f"{name}: silence {silence['p50']:.0f} ms (p50), {silence['max']:.0f} (max) by heartline load; "
          f"{plain_ms:.0f} (p50), {found[-1]:.0f} (max) by socket; heartbeats {report['heartbeats']['kinds']}; exit {code}")
    return report["streams"]["held_min"] == 200 and abs(silence["p50"] - plain_ms) < PERIOD * 1000 * 0.15


def main(heartline):
    held = []
    servers = [("node", ["node", "-e", NODE]), ("sse-starlette", [sys.executable, "-c", STARLETTE])]
    for name, command in servers:
        probe = [command[0], "-e", "0"] if name == "node" else [command[0], "-c", "import sse_starlette, uvicorn"]
        try:
            if subprocess.run(probe, stderr=subprocess.DEVNULL).returncode != 0:
                raise FileNotFoundError
        except FileNotFoundError:
            print(f"{name}: not installed, left out")
            continue
        held.append(compare(name, command, heartline))
    return 0 if all(held) and held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
