"""What the checks in tests/real share: programs on free ports, requests read to their very end, and how a check fails.

Each check starts what it needs, ends only what it started, and is bounded in time. `tests/real/run` sets HEARTLINE to
the command under test; without it target/release/heartline is used.
"""

import atexit
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEARTLINE = os.environ.get("HEARTLINE") or str(ROOT / "target" / "release" / "heartline")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="heartline-real-"))
WORK.chmod(0o755)  # nginx's workers run as another user and keep long requests there
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
# A check that is told to stop still ends its programs.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]"


class Failed(Exception):
    """Something that must hold does not."""


def must(holds, what):
    """Fails the check with `what` unless `holds`."""
    if not holds:
        raise Failed(what)


def main(*checks):
    """Runs each check in turn; ends the process with 1 if any failed."""
    wanted = sys.argv[1:]
    failed = 0
    for check in checks:
        if wanted and check.__name__ not in wanted:
            continue
        began = time.monotonic()
        try:
            told = check() or ""
            verdict = "ok"
        except Failed as problem:
            told, verdict = str(problem), "FAILED"
            failed += 1
        print(f"{verdict:6} {check.__name__.replace('_', ' ')} ({time.monotonic() - began:.1f} s) {told}", flush=True)
    sys.exit(1 if failed else 0)


def free_port():
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """A child process, its output in a file, ended at the check's end at the latest."""

    count = 0

    def __init__(self, arguments):
        Program.count += 1
        self.log = WORK / f"{Program.count}-{pathlib.Path(arguments[0]).name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        atexit.register(self.kill)

    @property
    def pid(self):
        return self.process.pid

    def text(self):
        return self.log.read_text(errors="replace")

    def said(self, words, seconds=20):
        """Waits for a line with `words`; returns what follows them on it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for line in self.text().splitlines():
                if words in line:
                    return line.split(words, 1)[1].strip()
            must(self.process.poll() is None, f"a program ended early: {self.text()}")
            time.sleep(0.02)
        raise Failed(f"nothing was said about '{words}': {self.text()}")

    def kill(self):
        """Ends it at once, as a crash does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def files(self):
        """How many descriptors it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident(self):
        """Its resident memory in MB."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Engine(Program):
    """`heartline sim`, without heartbeats."""

    def __init__(self, *flags):
        super().__init__([HEARTLINE, "sim", "--listen", "127.0.0.1:0", *flags])
        self.port = port_of(self.said("listening on "))


class Proxy(Program):
    """`heartline proxy`."""

    def __init__(self, upstream_port, *flags):
        upstream = f"http://127.0.0.1:{upstream_port}"
        super().__init__([HEARTLINE, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0",
                          "--admin", "127.0.0.1:0", *flags])
        self.port = port_of(self.said("listening on "))
        self.admin = port_of(self.said("admin on "))

    def operators(self, path):
        """What the admin listener answers."""
        answer = Answer.of(self.admin, path, method="GET")
        must(answer.status == 200, f"{path} answers {answer.status}")
        return answer.body.decode()

    def metric(self, name):
        """The value of a metric without labels."""
        for line in self.operators("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return 0.0

    def streams(self):
        """How many exchanges live."""
        return json.loads(self.operators("/streams"))["total"]


class Nginx(Program):
    """Debian's nginx with `proxy_read_timeout 3s` and, unless told, everything else at its defaults.

    `settings` are more directives for its one location.
    """

    def __init__(self, upstream_port, version=None, settings="", read_timeout="proxy_read_timeout 3s;"):
        self.port = free_port()
        self.home = home = WORK / f"nginx-{self.port}"
        home.mkdir()
        spoken = f"proxy_http_version {version};" if version else ""
        kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        (home / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {home}/pid; error_log {home}/error.log;
            events {{ worker_connections 2048; }}
            http {{
                access_log off;
                {"".join(f"{kind}_temp_path {home}/{kind};" for kind in kinds)}
                server {{
                    listen 127.0.0.1:{self.port};
                    client_max_body_size 64m;
                    location / {{
                        proxy_pass http://127.0.0.1:{upstream_port};
                        {read_timeout}
                        {spoken}
                        {settings}
                    }}
                }}
            }}
        """)
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        super().__init__([program, "-p", str(home), "-e", str(home / "error.log"), "-c", str(home / "nginx.conf")])
        wait_for_port(self.port)

    def errors(self):
        """Its error log."""
        return (self.home / "error.log").read_text(errors="replace")

    def kill(self):
        """Ends the master and with it its workers; killed outright it would leave them behind."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        super().kill()


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def wait_for_port(port):
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            must(time.monotonic() < until, f"nothing listens on port {port}")
            time.sleep(0.02)


class Answer:
    """One HTTP/1.1 answer: its status (0: none came), its body, and whether it came whole."""

    def __init__(self, status, head, body, whole):
        self.status, self.head, self.body, self.whole = status, head, body, whole

    @classmethod
    def of(cls, port, path, body=b"", method="POST", seconds=60):
        """Asks on a connection of its own and reads until the answer ends, however it does."""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\n\r\n" if method == "POST" else "\r\n"
        try:
            with socket.create_connection(("127.0.0.1", port), seconds) as line:
                line.sendall(head.encode() + body)
                return cls.read(line)
        except OSError:
            return cls(0, b"", b"", False)

    @classmethod
    def read(cls, line):
        """Reads one answer from a connection."""
        raw = line.makefile("rb")
        head = bytearray()
        try:
            while not head.endswith(b"\r\n\r\n"):
                part = raw.readline(65_536)
                if not part:
                    return cls(0, bytes(head), b"", False)
                head += part
        except OSError:
            return cls(0, bytes(head), b"", False)
        status = int(head.split(b" ", 2)[1])
        lower = bytes(head).lower()
        body = bytearray()
        try:
            if b"transfer-encoding: chunked" in lower:
                whole = cls._chunked(raw, body)
            elif b"content-length: " in lower:
                length = int(lower.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
                body += raw.read(length)
                whole = len(body) == length
            else:
                while part := raw.read1(65_536):
                    body += part
                whole = True
        except (OSError, ValueError):
            whole = False
        return cls(status, bytes(head), bytes(body), whole)

    @staticmethod
    def _chunked(raw, body):
        while True:
            size = raw.readline(1_024)
            if not size.endswith(b"\n"):
                return False
            length = int(size.split(b";")[0], 16)
            if length == 0:
                return raw.readline(1_024) == b"\r\n"
            part = raw.read(length)
            body += part
            if len(part) < length or raw.read(2) != b"\r\n":
                return False

    def events(self):
        """The events as a browser dispatches them (HTML standard, 9.2.6): each its type and its data."""
        events, kind, data = [], "", []
        for line in self.body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
            if not line:
                if data:
                    events.append((kind or "message", "\n".join(data)))
                kind, data = "", []
                continue
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                kind = value
            elif field == "data":
                data.append(value)
        return events


def chat(prompt="hello", stream=True, **more):
    """A request's body as the OpenAI API has it."""
    return json.dumps({"model": "sim", "messages": [{"role": "user", "content": prompt}], "stream": stream, **more}).encode()


def eventually(holds, what, seconds=10):
    """Waits until `holds()`, else fails with `what`."""
    until = time.monotonic() + seconds
    while not holds():
        must(time.monotonic() < until, what() if callable(what) else what)
        time.sleep(0.05)
