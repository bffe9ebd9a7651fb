"""Drives real clients against the same streams without heartbeats and with them, and compares what each decodes.

    interop.py [--quick] [--only TEXT] [--write FILE]     started by `tests/interop/run`, which installs the clients

A *place* is a server that a client is pointed at: the scripted engine itself, `heartline proxy` in front of it with each
form, and `heartline sim`, which embeds the library. What a client decodes at a place must be what it decodes at the
place without heartbeats (`reference`), for the same fixture and position.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real"))

import kit  # noqa: E402
from fixtures import FIXTURES, INTERVAL, PAUSE, QUICK_POSITIONS  # noqa: E402

HOME = pathlib.Path(os.environ.get("INTEROP_HOME", "target/interop")).resolve()
FORMS = ["newline", "comment", "block:ping", "event:heartbeat", "ping", "auto"]
# What the sim serves, by the API of the client's call.
SIM_APIS = {"chat", "completions", "document", "messages", "ollama-chat", "ollama-generate", "events"}
SIM_SCRIPTS = {
    "stall": ["--script", "stall", "--stall", f"{PAUSE * 2:.2f}s", "--ttft", f"{PAUSE}s", "--itl", "1ms"],
    # A seed that draws no byte order mark: several clients take one for a part of the first field's name.
    "torn": ["--script", "torn", "--seed", "3", "--ttft", f"{PAUSE}s", "--itl", "130ms"],
}
CLIENT_SECONDS = 300
# Most of a run is waiting.
CLIENTS_AT_ONCE = 3


class Place:
    """Somewhere to point a client at."""

    def __init__(self, name, form, program, reference=None):
        self.name, self.form, self.program, self.reference = name, form, program, reference

    @property
    def base(self):
        return f"http://127.0.0.1:{self.program.port}"


def places(forms, sim_forms):
    """Starts every server; returns the places by name."""
    engine = kit.Program([sys.executable, "-B", str(HERE / "engine.py")])
    engine.port = kit.port_of(engine.said("listening on "))
    found = [Place("direct", "off", engine)]
    beat = ["--interval", f"{INTERVAL * 1000:.0f}ms", "--json", "known-apis", "--access-log", "off"]
    for form in forms:
        found.append(Place(f"proxy {form}", form, kit.Proxy(engine.port, "--heartbeat", form, *beat), "direct"))
    early = ["--commit-after", "100ms", "--commit-json-after", "100ms"]
    found.append(Place("proxy auto, early", "auto", kit.Proxy(engine.port, "--heartbeat", "auto", *early, *beat), "direct"))
    for script, flags in SIM_SCRIPTS.items():
        for form in ["off", *sim_forms]:
            program = kit.Engine(*flags, "--tokens", "6", "--heartbeat", form, "--heartbeat-json", "--interval", "100ms")
            reference = None if form == "off" else f"sim {script}, off"
            found.append(Place(f"sim {script}, {form}", form, program, reference))
    return {place.name: place for place in found}


def jobs_of(client, places, quick):
    """Every run of one client: (fixture, position, place)."""
    for name, fixture in FIXTURES.items():
        if fixture.api not in client["apis"] or (quick and not fixture.quick):
            continue
        for position in fixture.positions():
            if quick and position not in QUICK_POSITIONS | {"none"}:
                continue
            for place in places.values():
                if position == "none" and place.reference:
                    continue
                is_early = place.name.endswith("early")
                if place.name.startswith("sim") or (position == "head" and not is_early and place.reference):
                    continue
                if is_early and position not in ("head", "start"):
                    continue
                yield name, position, place
    for api in client["apis"]:
        if api in SIM_APIS:
            yield from ((f"sim-{api}", place.name.split()[1].rstrip(","), place)
                        for place in places.values() if place.name.startswith("sim"))


def run_client(client, places, quick):
    """Runs all jobs of one client in one process of its own; returns its versions and {(fixture, position, place): result}."""
    jobs = {}
    for fixture, position, place in jobs_of(client, places, quick):
        is_sim = fixture.startswith("sim-")
        api = fixture[4:] if is_sim else FIXTURES[fixture].api
        base = place.base
        jobs[len(jobs)] = ((fixture, position, place.name),
                           {"id": len(jobs), "base": base, "api": api, "model": "-" if is_sim else f"{fixture}--{position}"})
    text = "".join(json.dumps(job) + "\n" for _, job in jobs.values())
    command, folder = command_of(client)
    errors = kit.WORK / f"{client['driver']}-{client['runtime']}.err"
    with open(errors, "wb") as log:
        try:
            done = subprocess.run(command, cwd=folder, input=text.encode(), stdout=subprocess.PIPE, stderr=log,
                                  timeout=CLIENT_SECONDS, check=False)
            out, how = done.stdout, f"ended with {done.returncode}"
        except subprocess.TimeoutExpired as problem:
            out, how = problem.stdout or b"", f"took longer than {CLIENT_SECONDS} s"
    lines = out.decode().splitlines()
    kit.must(lines, f"{client['name']}: the client's process {how}: {errors.read_text()[-2000:]}")
    told = json.loads(lines[0])
    results = {}
    for line in lines[1:]:
        result = json.loads(line)
        results[jobs[result["id"]][0]] = (result["objects"], result["error"])
    for key, _ in jobs.values():
        results.setdefault(key, ([], f"no answer: the client's process {how}"))
    return told, results


def command_of(client):
    if client["runtime"] == "python":
        python = HOME / "python" / client["env"] / "bin" / "python"
        return [str(python), "-B", str(HERE / "python" / "drivers.py"), client["driver"], client["package"]], None
    return ["node", "drivers.mjs", client["driver"], client["package"]], HOME / "node"


def differ(reference, result):
    """What is different, in a few words; None if nothing is."""
    (expected, expected_error), (objects, error) = reference, result
    if error and not expected_error:
        return error
    if objects == expected:
        return None if bool(error) == bool(expected_error) else "no error any more"
    if len(objects) > len(expected):
        extra = [thing for thing in objects if thing not in expected]
        return f"{len(objects) - len(expected)} more: {json.dumps((extra or objects)[0], ensure_ascii=False)[:120]}"
    if len(objects) < len(expected):
        return f"{len(expected) - len(objects)} of {len(expected)} lost"
    return "other content"


def compare(results, places):
    """The cells of one client: form to {"runs", "differs": [[fixture, position, where, what]], "unread": [the same]}.

    What a client must decode is what it decodes from the engine itself where nothing pauses. A stream is unread if the
    client decodes something else from it although no heartbeat is in it: nothing can be said about it then.
    """
    cells = collections.defaultdict(lambda: {"runs": 0, "differs": [], "unread": []})
    for (fixture, position, name), result in results.items():
        place = places[name]
        if place.reference is None:
            continue
        plain = results[fixture, position, place.reference]
        truth = plain
        if fixture in FIXTURES:
            truth = results[FIXTURES[fixture].twin or fixture, "none", place.reference]
        cell = cells[place.form]
        why = plain[1] or (None if plain[0] else "nothing decoded") or differ(truth, plain)
        if why:
            cell["unread"].append([fixture, position, name, why])
            continue
        cell["runs"] += 1
        what = differ(truth, result)
        if what:
            cell["differs"].append([fixture, position, name, what])
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--keep")
    options = parser.parse_args()
    clients = json.loads((HERE / "clients.json").read_text())
    clients = [client for client in clients if not options.quick or client.get("quick")]
    clients = [client for client in clients if not options.only or options.only in client["name"]]
    began = time.monotonic()
    found = places(FORMS, ["auto"] if options.quick else FORMS)
    everything = {}
    with concurrent.futures.ThreadPoolExecutor(CLIENTS_AT_ONCE) as pool:
        waiting = {pool.submit(run_client, client, found, options.quick): client for client in clients}
        for done in concurrent.futures.as_completed(waiting):
            client = waiting[done]
            told, results = done.result()
            cells = compare(results, found)
            everything[client["name"]] = {**told, "cells": cells}
            row = " ".join(f"{form.split(':')[0]} {len(cells[form]['differs'])}/{cells[form]['runs']}" for form in FORMS)
            unread = {(entry[0], entry[3]) for cell in cells.values() for entry in cell["unread"]}
            print(f"[{time.monotonic() - began:5.1f} s] {client['name']:40} {told['version']:10} {row}" + (f" unread {unread}" if unread else ""), flush=True)
            for entry in cells["auto"]["differs"]:
                print("    auto:", *entry)
    if options.keep:
        pathlib.Path(options.keep).write_text(json.dumps(everything, indent=1, ensure_ascii=False))


main()
