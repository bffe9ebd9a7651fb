"""What is different between what a client decoded with heartbeats and without, and what that says about each form."""

import collections
import json

from fixtures import FIXTURES
from places import FORMS


def differ(expected, found):
    """What is different, in a few words; None if nothing is. Each is (objects, error)."""
    (expected, _), (objects, error) = expected, found
    if error:
        return error
    if objects == expected:
        return None
    if len(objects) > len(expected):
        extra = [thing for thing in objects if thing not in expected]
        return f"{len(objects) - len(expected)} more, such as {json.dumps((extra or objects)[0], ensure_ascii=False)}"
    if len(objects) < len(expected):
        return f"{len(expected) - len(objects)} of {len(expected)} lost"
    return "other content"


class Cells:
    """One client's results by form, what it makes of rare streams, and the streams that it cannot read at all."""

    def __init__(self, results, places):
        self.forms = {form: {"runs": 0, "differs": []} for form in FORMS}
        self.unread = {}
        self.rare = {}
        read = collections.Counter()
        for (fixture, position, name), found in results.items():
            place = places[name]
            if place.reference is None:
                continue
            plain = results[fixture, position, place.reference]
            # What must be decoded: of a fixture, what its plainest bytes say when nothing pauses.
            truth = plain
            if fixture in FIXTURES:
                truth = results[FIXTURES[fixture].twin or fixture, "none", place.reference]
            why = plain[1] or (None if plain[0] else "nothing decoded") or differ(truth, plain)
            if why:
                # Without heartbeats it is wrong already: nothing can be said about heartbeats.
                self.unread[fixture, position] = why
                continue
            what = differ(truth, found)
            if fixture in FIXTURES and FIXTURES[fixture].rare:
                if what and place.form not in ("event:heartbeat", "ping"):
                    self.rare.setdefault(fixture, {})[position] = what[:160]
                continue
            read[fixture.removeprefix("sim-") if place.script else FIXTURES[fixture].api] += 1
            self.forms[place.form]["runs"] += 1
            if what:
                self.forms[place.form]["differs"].append((fixture, position, place, what))
        self.read = read

    def safe(self):
        """The forms under which nothing differs."""
        return [form for form, cell in self.forms.items() if form != "auto" and cell["runs"] and not cell["differs"]]

    def told(self):
        """The cells as they are written to results.json."""
        forms = {}
        for form, cell in self.forms.items():
            if not cell["runs"]:
                continue
            at = collections.defaultdict(list)
            for fixture, position, place, _ in cell["differs"]:
                if fixture not in at[position]:
                    at[position].append(fixture)
            told = {"runs": cell["runs"], "differ": len(cell["differs"])}
            if cell["differs"]:
                whats = [what for *_, what in cell["differs"]]
                told |= {"at": dict(sorted(at.items())), "what": min(whats, key=lambda what: (-whats.count(what), what))[:160]}
            forms[form] = told
        unread = collections.defaultdict(list)
        for fixture, position in self.unread:
            unread[fixture].append(position)
        rare = {fixture: dict(sorted(at.items())) for fixture, at in self.rare.items()}
        return {"forms": forms, "rare": rare, "unread": {fixture: sorted(set(at)) for fixture, at in sorted(unread.items())}}


def complaints(client, cells, recorded):
    """What must not be: a broken driver, a difference under `auto` that another form would spare, one that is new."""
    for api in client["apis"]:
        if not cells.read[api]:
            yield f"decodes nothing of {api}, also without heartbeats: {next(iter(cells.unread.values()), 'no run')}"
    auto = cells.forms["auto"]["differs"]
    if auto and cells.safe() and "auto" not in client.get("not", {}):
        fixture, position, place, what = auto[0]
        yield f"auto differs in {len(auto)} runs, though {', '.join(cells.safe())} would not: {fixture} {position} at {place.name}: {what}"
    for form, cell in (recorded or {}).get("forms", {}).items():
        now = cells.forms[form]["differs"]
        if now and not cell["differ"]:
            fixture, position, place, what = now[0]
            yield f"{form} differs, and docs/compat/results.json says it does not: {fixture} {position} at {place.name}: {what}"
