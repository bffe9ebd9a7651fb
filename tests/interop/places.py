"""Where clients are pointed at: the engine itself, the proxy in front of it with each form, and the sim with the library.

What a client decodes at a place must be what it decodes at the place's `reference`, which sends no heartbeats.
"""

import concurrent.futures
import json
import pathlib
import sys

import kit
from fixtures import FIXTURES, INTERVAL, PAUSE, QUICK_POSITIONS

HERE = pathlib.Path(__file__).resolve().parent
TRIES = 5
FORMS = ["newline", "newline-between", "comment", "block:ping", "event:heartbeat", "ping", "auto"]
# What the sim serves, by the API of the client's call.
SIM_APIS = {"chat", "completions", "document", "messages", "ollama-chat", "ollama-generate", "events"}
SIM_SCRIPTS = {
    "stall": ["--script", "stall", "--stall", f"{PAUSE * 2:.2f}s", "--ttft", f"{PAUSE}s", "--itl", "1ms"],
    # A seed that draws no byte order mark: several clients take one for a part of the first field's name.
    "torn": ["--script", "torn", "--seed", "3", "--ttft", f"{PAUSE}s", "--itl", "130ms"],
}


class Place:
    """Somewhere to point a client at."""

    def __init__(self, name, form, program, reference=None):
        self.name, self.form, self.program, self.reference = name, form, program, reference
        self.base = f"http://127.0.0.1:{program.port}"

    @property
    def script(self):
        """What the sim plays here; None at the engine and its proxies."""
        return self.name.split()[1] if self.name.startswith("sim ") else None

    @property
    def is_early(self):
        """Whether the proxy answers before its engine has."""
        return self.name.endswith(" early")


def start(sim_forms):
    """Starts every server; returns the places by name."""
    engine = kit.Program([sys.executable, "-B", str(HERE / "engine.py")])
    engine.port = kit.port_of(engine.said("listening on "))
    found = [Place("direct", "off", engine)]
    beat = ["--interval", f"{INTERVAL * 1000:.0f}ms", "--json", "known-apis", "--access-log", "off"]
    for form in FORMS:
        found.append(Place(f"proxy {form}", form, kit.Proxy(engine.port, "--heartbeat", form, *beat), "direct"))
    early = ["--commit-after", "100ms", "--commit-json-after", "100ms"]
    found.append(Place("proxy auto early", "auto", kit.Proxy(engine.port, *early, *beat), "direct"))
    for script, flags in SIM_SCRIPTS.items():
        for form in ["off", *sim_forms]:
            program = kit.Engine(*flags, "--tokens", "6", "--heartbeat", form, "--heartbeat-json", "--interval", "100ms")
            found.append(Place(f"sim {script} {form}", form, program, None if form == "off" else f"sim {script} off"))
    return {place.name: place for place in found}


def runs_of(client, places, is_quick):
    """Every run of one client: (fixture, position, place). The position of a sim's answer is its script."""
    left_out = client.get("not", {})
    for name, fixture in FIXTURES.items():
        if fixture.api not in client["apis"] or (is_quick and not fixture.quick):
            continue
        for position in fixture.positions():
            if is_quick and position not in QUICK_POSITIONS | {"none"}:
                continue
            for place in places.values():
                if place.script or (position == "none" and place.reference) or (place.is_early and "early" in left_out):
                    continue
                # Silence before the headers: only a proxy that answers early can break it.
                if place.reference and (position == "head") > place.is_early or place.is_early and position not in ("head", "start"):
                    continue
                yield name, position, place
    for api in client["apis"]:
        for place in places.values():
            if place.script and api in SIM_APIS and not {"sim", place.script} & left_out.keys():
                yield f"sim-{api}", place.script, place


def heartbeats_go_out(places, is_quick):
    """Fails unless heartbeats are in what the places send wherever one belongs: else nothing at all would be compared."""
    runs = runs_of({"apis": ["chat", "ollama-chat", "document"]}, places, is_quick)
    runs = [run for run in runs if run[2].reference and not run[2].script]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for what in pool.map(lambda run: wrong_heartbeats(*run), runs):
            kit.must(what is None, what)


def wrong_heartbeats(name, position, place):
    """What is wrong with the heartbeats of one answer; None if nothing is. A busy machine
    is late for a pause, or makes one of its own: once more."""
    fixture = FIXTURES[name]
    body = json.dumps({"model": f"{name}--{position}", "stream": fixture.api != "document"}).encode()
    plain = sum(len(data) for data, _ in fixture.chunks(position))
    is_lines = fixture.api == "ollama-chat"
    may_be_silent = {"line", "torn"}
    # This client is unknown to `auto`, which then writes between events only; after the last line of Ollama goes nothing.
    if is_lines or place.form in ("newline-between", "auto"):
        may_be_silent |= {"inside", "lines", "return-inside", "end"}
    for _ in range(TRIES):
        sent = len(kit.Answer.of(place.program.port, "/api/chat" if is_lines else kit.CHAT, body).body)
        if sent == plain if position == "line" else sent > plain or position in may_be_silent:
            return None
    return f"{place.name}: {'a' if position == 'line' else 'no'} heartbeat in {name} at {position}"
