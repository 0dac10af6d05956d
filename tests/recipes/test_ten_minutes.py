"""The page "Ten minutes with three engines": its commands run, and print what it shows."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from support.world import ROOT, World

PAGE = (ROOT / "recipes" / "systems" / "TEN-MINUTES.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)


def printed(world: World, command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line of the page prints."""
    first, *words = command.split()
    if first == "source":
        return ""
    if first == "cd":
        monkeypatch.chdir(words[0])
        return ""
    if first == "rerank":
        found = world.ok(command.removeprefix("rerank"))
        return found.err + found.out
    if first == "python":
        command = f"{sys.executable} {ROOT / words[0]} {words[1]}"
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout


def pattern(shown: str) -> str:
    """What matches an output as a page shows it: `…` is any lines, or the rest of a line."""
    found = ""
    for line in shown.splitlines():
        rest = ".*" if line.endswith("…") else " *"
        found += r"(?:.*\n)*" if line == "…" else f"{re.escape(line.removesuffix('…'))}{rest}\n"
    return found


def test_every_command_of_the_page_prints_what_the_page_shows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(BLOCKS) > 8
    for commands, shown in BLOCKS:
        joined = re.sub(r" *#.*", "", commands).replace("\\\n", " ").splitlines()
        text = "".join(printed(world, command, monkeypatch) for command in joined)
        assert not shown or re.fullmatch(pattern(shown), text), text
