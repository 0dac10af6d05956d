"""The kill loops of `recipes/reliability` in a short form: a few rounds, of forks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import write, write_weights
from support.models import save_models
from support.programs import Forks

RECIPE = Path(__file__).parents[2] / "recipes" / "reliability"
WORDS = tuple(f"w{n}" for n in range(300))
COMMANDS = ["decode", "tune-mert", "train-lm"]


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with Forks(tmp_path_factory.mktemp("streams"), OMP_NUM_THREADS="1") as server:
        yield server


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(RECIPE)
    return import_module("kill_loops")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists of six documents, references, a text, weights and a model."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(2)
    sentences = [list(rng.choice(WORDS, rng.integers(4, 9))) for _ in range(30)]
    lines = []
    for t, words in enumerate(sentences):
        for k in range(8):
            text = [w if rng.random() > 0.1 * k else str(rng.choice(WORDS)) for w in words]
            lines.append(f"{t} ||| {' '.join(text)} ||| LM0= {-k / 4 + rng.random():.3f} ||| 0")
    write(f"{folder}/dev.kbest", lines)
    write(f"{folder}/dev.docs", [f"d{t // 5}" for t in range(30)])
    write(f"{folder}/dev.ref", [" ".join(words) for words in sentences])
    text = [" ".join(rng.choice(WORDS, 6)) if n % 6 else "" for n in range(200)]
    write(f"{folder}/text", text)
    write_weights(str(folder / "w.json"), {"LM0": [1.0], "lm": [0.5], "lmoov": [0.0]})
    save_models({"codclm": folder / "model"}, WORDS, 8, 8, oov_rate=0.0)
    return folder


def job(loops: Any, command: str, files: Path) -> Any:
    lists = ["--kbest", f"{files}/dev.kbest", "--docs", f"{files}/dev.docs"]
    lists += ["--lm", f"lm={files}/model", "--deterministic", "--threads", "1"]
    if command == "decode":
        names = ("out.txt", "out.json", "out.gz")
        out = ["--out", names[0], "--summary", names[1], "--kbest-out", names[2]]
        arguments = [command, *lists, "--weights", f"{files}/w.json", *out]
        return loops.Job(command, tuple(arguments), names, writers=4)
    if command == "tune-mert":
        arguments = [command, *lists, "--ref", f"{files}/dev.ref", "--out", "weights.json"]
        return loops.Job(command, tuple(arguments), ("weights.json",))
    sizes = [
        "--embed",
        "8",
        "--hidden",
        "8",
        "--epochs",
        "1",
        "--validations",
        "4",
        "--threads",
        "1",
        "--streams",
        "2",
    ]
    text = ["--train", f"{files}/text", "--valid", f"{files}/text"]
    arguments = [
        command,
        "--model",
        "codclm",
        *text,
        *sizes,
        "--threads=1",
        "--out=model",
        "--resume",
    ]
    return loops.Job(command, tuple(arguments), folder="model")


class Fork:
    """A fork as a process of the loop."""

    def __init__(
        self, forks: Forks, in_place: Path | None, arguments: Sequence[str], work: Path
    ) -> None:
        before = os.getcwd()
        os.chdir(work)
        try:
            cache = str(work / "cache")
            options: dict[str, Any] = {"in_place": in_place, "RERANK_CACHE": cache}
            self.forks, self.program = forks, forks.start(*arguments, together=1, **options)
        finally:
            os.chdir(before)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.program.process, signal.SIGKILL)

    def wait(self) -> tuple[int, str]:
        done = self.forks.wait(self.program)
        return done.code, done.told


def rounds_of(
    loops: Any,
    command: str,
    files: Path,
    work: Path,
    forks: Forks,
    *,
    n: int,
    seed: int,
    in_place: bool,
) -> Any:
    start = partial(Fork, forks, RECIPE / "in_place.py" if in_place else None)
    made = job(loops, command, files)
    return loops.kill_loop(made, start, work, n, np.random.default_rng(seed))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_killed_leaves_whole_files_and_ends_with_equal_bytes(
    command: str, loops: Any, files: Path, tmp_path: Path, forks: Forks
) -> None:
    n = 1 if command == "train-lm" else 3
    kills = 0
    for i in range(10):  # on a fast machine a run may end before it is killed
        work = tmp_path / str(i)
        found = rounds_of(loops, command, files, work, forks, n=n, seed=i, in_place=False)
        assert (found.rounds, found.torn, found.equal, found.forgotten) == (n, 0, n, 0)
        assert not found.refused
        assert found.temporary <= job(loops, command, files).writers
        kills += found.kills
        if kills:
            break
    assert kills


@pytest.mark.parametrize("command", ["decode", "train-lm"])  # the two writers that there are
def test_a_command_that_writes_in_place_is_found_out(
    command: str, loops: Any, files: Path, tmp_path: Path, forks: Forks
) -> None:
    """The negative control: a writer without temporary files must fail the loop."""
    torn = 0
    for n in range(20):
        work = tmp_path / str(n)
        found = rounds_of(loops, command, files, work, forks, n=1, seed=n, in_place=True)
        torn += found.torn
        if torn:
            break
    assert torn


def test_files_that_are_not_whole_are_named(loops: Any, files: Path, tmp_path: Path) -> None:
    made, expected = loops.Job("x", (), ("out",), "model"), {"out": b"new"}
    (tmp_path / "out").write_bytes(b"new")
    (tmp_path / "model").mkdir()
    for path in (files / "model").iterdir():
        (tmp_path / "model" / path.name).write_bytes(path.read_bytes())
    assert loops.torn_files(made, tmp_path, expected) == []
    for path in [tmp_path / "out", *(tmp_path / "model").iterdir()]:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        torn = loops.torn_files(made, tmp_path, expected)
        assert path.name in torn
        path.write_bytes(whole)
    (tmp_path / "cache" / "0123456789abcdef").mkdir(parents=True)
    (tmp_path / "cache" / "0123456789abcdef" / "0123456789abcdef.scores").write_bytes(b"x" * 99)
    assert loops.torn_files(made, tmp_path, expected) == ["0123456789abcdef.scores"]


@pytest.fixture
def determinism(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(RECIPE)
    return import_module("determinism")


def test_documents_in_the_other_order_give_equal_bytes_and_other_bytes_are_found_out(
    determinism: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
