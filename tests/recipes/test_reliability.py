"""The kill loops of `recipes/reliability` in a short form, and the catalogue of faults."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import chdir, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import save_models
from support.programs import Forks
from support.world import ROOT, World

RECIPE = ROOT / "recipes" / "reliability"
WORDS = tuple(f"w{n}" for n in range(300))
NAMES = ("out.txt", "out.json", "out.gz")
LISTS = "--kbest {0}/dev.kbest --docs {0}/dev.docs --lm lm={0}/model --deterministic --threads 1"
COMMANDS = {
    "decode": f"decode {LISTS} --weights {{0}}/w.json --out {NAMES[0]} --summary {NAMES[1]} "
    f"--kbest-out {NAMES[2]}",
    "tune-mert": f"tune-mert {LISTS} --ref {{0}}/dev.ref --out weights.json",
    "train-lm": "train-lm --model codclm --train {0}/text --valid {0}/text --embed 8 --hidden 8 "
    "--epochs 1 --validations 4 --streams 2 --threads=1 --out=model --resume",
}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(tmp_path_factory.mktemp("streams"), OMP_NUM_THREADS="1") as server:
        yield server


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the recipe by its name."""
    monkeypatch.syspath_prepend(RECIPE)
    return import_module


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of six documents, references, a text, weights and a model."""
    world, rng = World(tmp_path_factory.mktemp("files")), np.random.default_rng(2)
    sentences = [[*rng.choice(WORDS, rng.integers(4, 9))] for _ in range(30)]
    lines = []
    for t, words in enumerate(sentences):
        for k in range(8):
            text = [w if rng.random() > 0.1 * k else str(rng.choice(WORDS)) for w in words]
            lines.append(f"{t} ||| {' '.join(text)} ||| LM0= {-k / 4 + rng.random():.3f} ||| 0")
    world.write("dev.kbest", lines)
    world.write("dev.docs", [f"d{t // 5}" for t in range(30)])
    world.write("dev.ref", [" ".join(words) for words in sentences])
    world.write("text", [" ".join(rng.choice(WORDS, 6)) if n % 6 else "" for n in range(200)])
    world.weights("w.json", {"LM0": 1.0, "lm": 0.5, "lmoov": 0.0})
    save_models({"codclm": world.folder / "model"}, WORDS, 8, 8, oov_rate=0.0)
    return world.folder


class Fork:
    """A fork as a process of the loop."""

    def __init__(
        self, forks: Forks, in_place: Path | None, arguments: Sequence[str], work: Path
    ) -> None:
        options: dict[str, Any] = {"in_place": in_place, "RERANK_CACHE": str(work / "cache")}
        with chdir(work):
            self.forks, self.program = forks, forks.start(*arguments, together=1, **options)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.program.process, signal.SIGKILL)

    def wait(self) -> tuple[int, str]:
        done = self.forks.wait(self.program)
        return done.code, done.told


def rounds(
    loops: Any, command: str, files: Path, work: Path, forks: Forks, n: int, seed: int, **how: bool
) -> Any:
    """Rounds of a command that is killed at random moments."""
    words = COMMANDS[command].format(files).split()
    outputs = {"decode": NAMES, "tune-mert": ("weights.json",), "train-lm": ()}[command]
    more: Any = {"folder": "model"} if command == "train-lm" else {"writers": 4}
    start = partial(Fork, forks, RECIPE / "in_place.py" if how else None)
    made = loops.Job(command, tuple(words), outputs, **more)
    return loops.kill_loop(made, start, work, n, np.random.default_rng(seed))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_killed_leaves_whole_files_and_ends_with_equal_bytes(
    command: str, recipe: Any, files: Path, tmp_path: Path, forks: Forks
) -> None:
    n, loops = 1 if command == "train-lm" else 3, recipe("kill_loops")
    for i in range(10):  # on a fast machine a run may end before it is killed
        found = rounds(loops, command, files, tmp_path / str(i), forks, n, i)
        assert (found.rounds, found.torn, found.equal, found.forgotten) == (n, 0, n, 0)
        assert not found.refused
        assert found.temporary <= 4
        if found.kills:
            return
    pytest.fail("no run was killed")


@pytest.mark.parametrize("command", ["decode", "train-lm"])  # the two writers that there are
def test_a_command_that_writes_in_place_is_found_out(
    command: str, recipe: Any, files: Path, tmp_path: Path, forks: Forks
) -> None:
    """The negative control: a writer without temporary files must fail the loop."""
    loops = recipe("kill_loops")
    assert any(
        rounds(loops, command, files, tmp_path / str(n), forks, 1, n, in_place=True).torn
        for n in range(20)
    )


def test_files_that_are_not_whole_are_named(recipe: Any, files: Path, tmp_path: Path) -> None:
    loops = recipe("kill_loops")
    made, expected = loops.Job("x", (), ("out",), "model"), {"out": b"new"}
    (tmp_path / "out").write_bytes(b"new")
    (tmp_path / "model").mkdir()
    for path in (files / "model").iterdir():
        (tmp_path / "model" / path.name).write_bytes(path.read_bytes())
    assert loops.torn_files(made, tmp_path, expected) == []
    for path in [tmp_path / "out", *(tmp_path / "model").iterdir()]:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        assert path.name in loops.torn_files(made, tmp_path, expected)
        path.write_bytes(whole)
    shard = tmp_path / "cache" / "0123456789abcdef" / "0123456789abcdef.scores"
    shard.parent.mkdir(parents=True)
    shard.write_bytes(b"x" * 99)
    assert loops.torn_files(made, tmp_path, expected) == [shard.name]


def test_documents_in_the_other_order_give_equal_bytes_and_other_bytes_are_found_out(
    recipe: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    determinism = recipe("determinism")
    options = ("--weights", f"{files}/w.json", "--lm", f"lm={files}/model")
    lists = (files / "dev.kbest", files / "dev.docs")
    usual = determinism.Decoding(*lists, options, tmp_path)
    exact = determinism.Decoding(*lists, (*options, "--deterministic"), tmp_path)
    names = ["documents in the other order", "another first line"]
    wrong = {names[1]: lambda decoding: b"another\n" + decoding.again().partition(b"\n")[2]}
    monkeypatch.setattr(determinism, "CIRCUMSTANCES", {**determinism.CIRCUMSTANCES, **wrong})
    assert determinism.matrix(exact, usual, names) == [
        (names[0], "equal", 0),
        (names[1], "DIFFERENT", 1),
    ]


def test_each_row_of_the_catalogue_of_faults_is_held_by_tests_that_exist_or_says_why_not(
    recipe: Any,
) -> None:
    rows = recipe("fault_rows")
    held = rows.evidence()
    others = {*rows.NOT_APPLICABLE, *rows.OPEN}
    assert {*held} | others == {*range(1, 101)}
    assert not {*held} & others
    for test in (test for tests in held.values() for test in tests):
        if "::" in test:
            file, _, name = test.partition("::")
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", text, re.MULTILINE), test
