"""A page of docs/ as something to run: its sections, and the commands in their console blocks."""

import os
import re
import shlex
import subprocess

from kit import ROOT, must


class Section:
    """What stands under one heading."""

    def __init__(self, title, text):
        self.title, self.text = title, text

    @property
    def name(self):
        """The heading as a check is called."""
        return re.sub(r"[^a-z0-9]+", "_", self.title.lower()).strip("_")

    def commands(self, words):
        """The commands of the console blocks that begin with `words`."""
        blocks = re.findall(r"^```console\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)
        lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
        found = [line for line in lines if line.startswith(words)]
        must(found, f"'{self.title}' shows no command that begins with '{words}'")
        return found

    def proxy(self, which=0, **scaled):
        """The flags of a `heartline proxy` that the section shows, but for its engine; `scaled` are values for a test's time."""
        words = shlex.split(self.commands("heartline proxy ")[which])[2:]
        shown = dict(zip(words[::2], words[1::2], strict=True))
        must(shown.pop("--upstream", None), f"'{self.title}': the command names no engine")
        for name, value in scaled.items():
            flag = "--" + name.replace("_", "-")
            must(flag in shown, f"'{self.title}' does not show {flag}")
            shown[flag] = value
        return [word for pair in shown.items() for word in pair]

    def shell(self, words, seconds=60, **variables):
        """Runs the section's one command that begins with `words`; returns its exit code, output and errors."""
        [command] = set(self.commands(words))
        done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], env={**os.environ, **variables},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr


def sections(path):
    """The sections of a page under its second-level headings, by their names."""
    parts = re.split(r"^## (.*)$", (ROOT / path).read_text(), flags=re.MULTILINE)[1:]
    return {section.name: section for section in map(Section, parts[::2], parts[1::2])}
