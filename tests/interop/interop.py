"""Drives real clients against the same streams with heartbeats and without, and compares what each decodes.

    interop.py [--quick] [--only TEXT] [--write]     started by `tests/interop/run`, which installs the clients

Fails if a client sees a difference under `auto` although some form would spare it, or one that docs/compat/results.json
does not know. `--write` writes that file anew; `tests/compat.rs` keeps the page made from it.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real"))

import kit  # noqa: E402
import places as servers  # noqa: E402
from compare import Cells, complaints  # noqa: E402
from fixtures import FIXTURES, INTERVAL  # noqa: E402

HOME = pathlib.Path(os.environ.get("INTEROP_HOME", "target/interop")).resolve()
RESULTS = HERE.parents[1] / "docs" / "compat" / "results.json"
CLIENT_SECONDS = 900
# Most of a run is waiting.
CLIENTS_AT_ONCE = 3
# A reader that some form must break: where it does not, the comparison sees nothing.
CONTROL = ("by hand, Python: skip blank lines, cut six characters", "comment")


def run_client(client, places, is_quick):
    """Does all runs of one client, in one process of its own; returns its versions and {run: (objects, error)}."""
    jobs, runs = [], []
    for fixture, position, place in servers.runs_of(client, places, is_quick):
        api, model = (fixture.removeprefix("sim-"), "-") if place.script else (FIXTURES[fixture].api, f"{fixture}--{position}")
        jobs.append(json.dumps({"id": len(jobs), "base": place.base, "api": api, "model": model}))
        runs.append((fixture, position, place.name))
    command, folder, told = command_of(client)
    log = kit.WORK / f"{client['runtime']}-{client['driver']}.log"
    with open(log, "wb") as errors:
        try:
            done = subprocess.run(command, cwd=folder, input="\n".join(jobs).encode(), stdout=subprocess.PIPE, stderr=errors,
                                  timeout=CLIENT_SECONDS, check=False)
            out, how = done.stdout, f"ended with {done.returncode}"
        except subprocess.TimeoutExpired as problem:
            out, how = problem.stdout or b"", f"took longer than {CLIENT_SECONDS} s"
    lines = [json.loads(line) for line in out.decode().splitlines()]
    if told is None:
        kit.must(lines, f"{client['name']}: its process {how}: {log.read_text(errors='replace')[-2000:]}")
        told = lines.pop(0)
    results = {run: ([], f"no answer: the client's process {how}") for run in runs}
    for line in lines:
        results[runs[line["id"]]] = (line["objects"], line["error"])
    return told, results


def command_of(client):
    """How a client's driver is started: command, folder, and its versions where it does not tell them itself."""
    driver, package = client["driver"], client["package"]
    if client["runtime"] == "python":
        python = HOME / "python" / client["env"] / "bin" / "python"
        return [str(python), "-B", str(HERE / "python" / "drivers.py"), driver, package], None, None
    if client["runtime"] == "rust":
        lock = (HERE / "rust" / "Cargo.lock").read_text()
        version = re.search(f'name = "{package}"\nversion = "([^"]+)"', lock)[1]
        return [str(HOME / "rust" / "debug" / "heartline-interop"), driver], None, {"version": version, "runtime": "Rust"}
    if client["runtime"] == "browser":
        return [sys.executable, "-B", str(HERE / "browser.py"), package, driver], None, None
    return ["node", "drivers.mjs", driver, package], HOME / "node", None


def main():
    parser = argparse.ArgumentParser(prog="tests/interop/run")
    parser.add_argument("--quick", action="store_true", help="the clients and places that every CI run looks at")
    parser.add_argument("--only", metavar="TEXT", help="only clients whose name has this in it")
    parser.add_argument("--write", action="store_true", help="write docs/compat/results.json")
    options = parser.parse_args()
    if options.write and (options.quick or options.only):
        parser.error("--write is for the whole: without --quick and --only")
    clients = json.loads((HERE / "clients.json").read_text())
    clients = [client for client in clients if client.get("quick") or not options.quick]
    clients = [client for client in clients if not options.only or options.only in client["name"]]
    kit.must(clients, f"no client is named like {options.only}")
    known = json.loads(RESULTS.read_text())["clients"] if RESULTS.exists() and not options.write else []
    recorded = {client["name"]: client for client in known}
    began = time.monotonic()
    places = servers.start(["auto"] if options.quick else servers.FORMS)
    told, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(CLIENTS_AT_ONCE + 1) as pool:
        heartbeats = pool.submit(servers.heartbeats_go_out, places, options.quick)
        waiting = {pool.submit(run_client, client, places, options.quick): client for client in clients}
        for done in concurrent.futures.as_completed(waiting):
            client = waiting[done]
            name = client["name"]
            versions, results = done.result()
            cells = Cells(results, places)
            told[name] = {"name": name, "package": client["package"], **versions, "apis": client["apis"], **cells.told(),
                          "not": client.get("not", {})}
            wrong = list(complaints(client, cells, recorded.get(name)))
            if name == CONTROL[0] and not cells.forms[CONTROL[1]]["differs"]:
                wrong.append(f"{CONTROL[1]} changes nothing for it: this comparison sees nothing")
            failed += bool(wrong)
            row = "  ".join(f"{form.split(':')[0]} {cell['runs'] - len(cell['differs'])}/{cell['runs']}"
                            for form, cell in cells.forms.items())
            print(f"{'FAILED' if wrong else 'ok':6} {time.monotonic() - began:4.0f} s  {name} {versions['version']}: {row}", flush=True)
            for line in wrong:
                print(f"       {line}", flush=True)
        heartbeats.result()
    if options.write:
        version = subprocess.run([kit.HEARTLINE, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        document = {"measured": datetime.date.today().isoformat(), "heartline": version, "interval_ms": round(INTERVAL * 1000),
                    "clients": [told[client["name"]] for client in clients]}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(clients) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
