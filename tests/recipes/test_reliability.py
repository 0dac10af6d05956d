"""`recipes/bench/reliability` in short: kill loops, determinism, and the catalogue of faults."""

import os
import re
import shlex
import signal
from collections.abc import Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.forked import Fork, start
from support.world import ROOT, World

LISTS = "--kbest {0}/dev.kbest --docs {0}/dev.docs --weights {0}/lm.json --lm lm={1} --threads 1"
OUTPUTS = ("out.txt", "out.json", "out.gz")


class Starts:
    """Forks as processes of the loop: two that nothing disturbs, one that is killed, one that ends.

    at: the write before which the third one is killed.
    """

    def __init__(self, at: int = 0) -> None:
        self.number, self.at = 0, at

    def __call__(self, arguments: Sequence[str], work: Path) -> Any:
        self.number += 1
        with chdir(work):
            at = (signal.SIGKILL, self.at) if self.number == 3 else None
            fork = start(shlex.join(arguments), at, RERANK_CACHE=str(work / "cache"))
        return SimpleNamespace(kill=lambda: None, wait=lambda: end(fork))


def end(fork: Fork) -> tuple[int, str]:
    done = fork.wait()
    return done.exit, done.err


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the recipe by its name."""
    monkeypatch.syspath_prepend(ROOT / "recipes" / "bench" / "reliability")
    return import_module


@pytest.fixture
def lists(world: World, model_folders: Any) -> str:
    """Options of a decoding, whose modules and kernels have been loaded."""
    world.draw()
    world.weights("lm.json", {"LM0": 1.0, "TM0": [0.5, 0.5], "lm": 0.5, "lmoov": 0.0})
    options = LISTS.format(world.folder, model_folders["codclm"])
    world.ok(f"decode {options} --no-cache --out o --summary s --kbest-out k.gz")
    return options


def killed(recipe: Any, lists: str, work: Path, starts: Starts) -> Any:
    """What a round of a decoding shows."""
    loops = recipe("kill_loops")
    command = f"decode {lists} --deterministic --out {OUTPUTS[0]} --summary {OUTPUTS[1]}"
    words = f"{command} --kbest-out {OUTPUTS[2]}".split()
    job = loops.Job("decode", tuple(words), OUTPUTS, writers=4)
    result = loops.kill_loop(job, starts, work, 1, SimpleNamespace(uniform=lambda *between: 0.0))
    assert (starts.number, result.rounds, result.kills, result.refused) == (4, 1, 1, [])
    return result


def test_a_command_that_is_killed_leaves_whole_files_and_ends_with_equal_bytes(
    recipe: Any, lists: str, tmp_path: Path
) -> None:
    result = killed(recipe, lists, tmp_path / "work", Starts(5))
    assert (result.torn, result.equal, result.forgotten) == (0, 1, 0)
    assert 1 <= result.temporary <= 4


def test_a_command_that_writes_in_place_is_found_out(
    recipe: Any, lists: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: a writer without temporary files, killed in the middle of one."""
    control, starts = recipe("in_place"), Starts()

    def middle(seconds: float) -> None:
        if starts.number == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(control.outputs, "_TemporaryFile", control.FileInPlace)
    monkeypatch.setattr(control, "time", SimpleNamespace(sleep=middle))
    assert killed(recipe, lists, tmp_path / "work", starts).torn


def test_documents_in_the_other_order_give_equal_bytes_and_other_bytes_are_found_out(
    recipe: Any, lists: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    determinism = recipe("determinism")

    def run(words: list[str], env: dict[str, str], **streams: Any) -> Any:
        found = world.run(words[3:])
        return SimpleNamespace(returncode=found.exit, stdout=found.stdout, stderr=found.stderr)

    monkeypatch.setattr(determinism, "subprocess", SimpleNamespace(run=run))
    options = tuple(lists.split()[4:-2])
    files = (world.folder / "dev.kbest", world.folder / "dev.docs")
    usual = determinism.Decoding(*files, options, world.folder)
    exact = determinism.Decoding(*files, (*options, "--deterministic"), world.folder)
    names = ["documents in the other order", "another first line"]
    wrong = {names[1]: lambda decoding: b"another\n" + decoding.again().partition(b"\n")[2]}
    monkeypatch.setattr(determinism, "CIRCUMSTANCES", {**determinism.CIRCUMSTANCES, **wrong})
    expected = [(names[0], "equal", 0), (names[1], "DIFFERENT", 1)]
    assert determinism.matrix(exact, usual, names) == expected


def test_each_row_of_the_catalogue_of_faults_is_held_by_tests_that_exist(recipe: Any) -> None:
    rows = recipe("fault_rows")
    held = rows.evidence()
    others = {*rows.NOT_APPLICABLE, *rows.OPEN}
    assert {*held} | others == {*range(1, 101)}
    assert not {*held} & others
    for test in (test for tests in held.values() for test in tests if "::" in test):
        file, _, name = test.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), test
