"""A page in a headless browser as a client: gives it the jobs, and prints what it decoded. Started by `interop.py`.

    browser.py chromium|firefox-esr CLIENT < jobs > results

No driver's protocol: the page fetches its jobs from here and posts its results back.
"""

import http.server
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
HOME = pathlib.Path(os.environ.get("INTEROP_HOME", "target/interop")).resolve()
SECONDS = 240
LIBRARY = HOME / "node" / "node_modules" / "@microsoft" / "fetch-event-source" / "lib" / "esm"
FLAGS = {
    "chromium": ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--user-data-dir={home}"],
    "firefox-esr": ["--headless", "--no-remote", "--profile", "{home}"],
}


def main():
    browser, client = sys.argv[1:]
    jobs = [json.loads(line) for line in sys.stdin]
    results = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/jobs":
                self.answer("application/json", json.dumps({"client": client, "jobs": jobs}).encode())
            elif self.path.startswith("/library/"):
                name = pathlib.Path(self.path).name.removesuffix(".js") + ".js"
                self.answer("text/javascript", (LIBRARY / name).read_bytes())
            elif self.path == "/page.mjs":
                self.answer("text/javascript", (HERE / "page.mjs").read_bytes())
            else:
                self.answer("text/html", b"<!doctype html><meta charset=utf-8><script type=module src=/page.mjs></script>")

        def do_POST(self):
            results.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer("text/plain", b"")

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=True).stdout.split()
    print(json.dumps({"version": next(word for word in version if word[0].isdigit()), "runtime": "browser"}), flush=True)
    home = tempfile.mkdtemp(prefix="heartline-browser-")
    try:
        flags = [flag.format(home=home) for flag in FLAGS[browser]]
        process = subprocess.Popen([browser, *flags, f"http://127.0.0.1:{server.server_port}/"],
                                   stdin=subprocess.DEVNULL, stdout=sys.stderr, env={**os.environ, "HOME": home})
        try:
            for _ in jobs:
                print(json.dumps(results.get(timeout=SECONDS)), flush=True)
        finally:
            process.terminate()
            process.wait(20)
    finally:
        shutil.rmtree(home, ignore_errors=True)


main()
