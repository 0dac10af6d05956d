"""The tutorials: what they show runs, in this order, and prints what they show."""

import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.world import ROOT, World

PAGES = ("docs/TEN-MINUTES.md", "docs/moses-lists.md", "docs/plug-in.md", "adapters/README.md")
BLOCK = re.compile(r"```(sh|python|toml)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)

Jobs = list[subprocess.Popen[bytes]]


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    """What runs in the background, until the end at most."""
    started: Jobs = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def printed(world: World, command: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line of the shell prints."""
    first, *words = command.split()
    if first == "source":
        return ""
    if first == "cd":
        monkeypatch.chdir(words[0])
        return ""
    if first == "rerank":
        run = world.ok(command.removeprefix("rerank"))
        return run.err + run.out
    if command == "pip install .":
        install(Path.cwd(), monkeypatch)
        return ""
    if command == "kill %1":
        jobs[0].kill()
        return ""
    if first == "python":
        script = ROOT / words.pop(0).removeprefix("../")
        if words[-1] == "&":
            jobs.append(subprocess.Popen([sys.executable, script, *words[:-1]]))
            while not answers(int(words[0])):
                assert jobs[-1].poll() is None
                time.sleep(0.02)
            return ""
        command = shlex.join([sys.executable, str(script), *words])
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip writes of a package's entry points: tests need no network."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    made = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (made / "entry_points.txt").write_text("\n".join(lines))


def shell(world: World, commands: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> str:
    """What lines of the shell print."""
    joined = re.sub(r" +#.*", "", commands).replace("\\\n", " ").splitlines()
    return "".join(printed(world, command, jobs, monkeypatch) for command in joined)


def python(code: str, names: dict[str, Any]) -> str:
    """What code prints; that with a file's name in its first line is written to this file."""
    if named := re.match(r"# (\S+)\n", code):
        Path(named[1]).write_text(code)
        return ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def pattern(shown: str) -> str:
    """What matches an output as a page shows it: `…` is any lines, or the rest of a line."""
    found = ""
    for line in shown.splitlines():
        rest = ".*" if line.endswith("…") else " *"
        found += r"(?:.*\n)*" if line == "…" else f"{re.escape(line.removesuffix('…'))}{rest}\n"
    return found


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_what_is_done(
    page: str, world: World, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "recipes" / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(re.sub(r"\b8000\b", str(free_port()), text))
    assert len(blocks) > 5
    monkeypatch.syspath_prepend(world.folder)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    names: dict[str, Any] = {}
    for language, code, shown in blocks:
        result = shell(world, code, jobs, monkeypatch) if language == "sh" else python(code, names)
        assert not shown or re.fullmatch(pattern(shown), result), result
