"""Commands on a disk of which the n-th system call fails, for many n: row 81 of the catalogue.

Counted are the calls that open a file for writing, write, sync and rename, in the folder of the
test and in the score cache. After a fault every final name holds an old file or a whole new one,
there is no temporary file, and the same command ends with the bytes of a run without a fault.
"""

import builtins
import errno
import io
import itertools
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.server import STUB
from support.world import Outcome, World

from lm.checkpoint import load_model, read_tensors

ERRORS = (errno.ENOSPC, errno.EIO)
OLD = b"of an earlier run\n"
LISTS = "--kbest dev.kbest --docs dev.docs"
MODEL = "--lm lm=lm --deterministic --device cpu"
COMMANDS = {  # command: its outputs
    f"decode {LISTS} {MODEL} --weights w.json --out a --summary b --kbest-out c.gz": "a b c.gz",
    f"decode {LISTS} --weights start.json --out a --trace b": "a b",
    f"score {LISTS} --scores q=dev.m --out a.gz": "a.gz",
    f"score {LISTS} --lm g=openai:{STUB.url()},model=toy,sentences=0 --out a": "a",
    f"convert {LISTS} --to jsonl --out a --docs-out b": "a b",
    "weights start.json --to ini --out a": "a",
    "train-ngram --train text --order 2 --discount-fallback --out a": "a",
    f"tune-mert {LISTS} --ref dev.ref --select none --out a.json": "a.json",
    "report --trace trace --docs dev.docs --ref dev.ref --out a.html": "a.html",
}
TRAINING = (
    "train-lm --model rnnlm --train text --valid text --embed 4 --hidden 4 --epochs 1 "
    "--validations 2 --device cpu --curve a --out model --resume"
)


class Disk:
    """From now on the n-th call that writes in some folders fails; failed: whether it has."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int, n: int, folders: list[Path]) -> None:
        self.failed = False
        self._number, self._n, self._calls = number, n, itertools.count(1)
        disk, open_file = self, builtins.open
        roots = tuple(map(str, folders))

        class File(io.FileIO):
            def write(self, data: Any, /) -> int:
                disk._call()
                return super().write(data)

        def opened(path: Any, mode: str = "r", buffering: int = -1, *given: Any, **opt: Any) -> Any:
            ours = isinstance(path, str | Path) and os.path.abspath(path).startswith(roots)
            if not ours or not set(mode) & set("wxa") or "b" not in mode:
                return open_file(path, mode, buffering, *given, **opt)
            disk._call()
            raw = File(path, mode.replace("b", ""))
            return raw if buffering == 0 else io.BufferedWriter(raw)

        patch.setattr(builtins, "open", opened)
        for name in ("fsync", "replace"):
            patch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, function: Callable[..., None]) -> Callable[..., None]:
        def called(*arguments: Any) -> None:
            self._call()
            function(*arguments)

        return called

    def _call(self) -> None:
        if next(self._calls) == self._n:
            self.failed = True
            raise OSError(self._number, os.strerror(self._number))


@pytest.fixture
def lists(world: World) -> World:
    world.draw()
    world.model("codclm", "lm")
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.25], "lm": 1.5, "lmoov": -0.5})
    world.write("text", "the lamp is lit\nit burns\n\nshe gives light\nno one is lit\n" * 3)
    world.ok(f"decode {LISTS} --weights start.json --out hyp --trace trace -q")
    return world


def failing(world: World, command: str, number: int, n: int) -> tuple[Disk, Outcome]:
    """The command on a disk whose n-th call fails, from an empty cache; a message if it does."""
    cache = Path(os.environ["RERANK_CACHE"])
    shutil.rmtree(cache, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, number, n, [world.folder, cache])
        run = world.run(command)
    roots = (world.folder, cache)
    assert [path for root in roots for path in root.rglob(".*.tmp")] == []
    assert "Traceback" not in run.err
    assert run.exit in (0, 1), run.err
    cause = {errno.ENOSPC: "no space left", errno.EIO: "input/output error"}[number]
    assert run.exit == 0 or re.search(f"^rerank: .*{cause}", run.err, re.MULTILINE), run.err
    return disk, run


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words.split()[0])
def test_a_disk_that_fails_at_any_call_leaves_whole_files(command: str, lists: World) -> None:
    names = COMMANDS[command].split()
    lists.ok(command)
    expected = {name: lists.content(name) for name in names}
    # most calls of a model or of a tuning are those of shards, one like another
    for n in itertools.count(1, 11 if "--lm" in command else 5 if "tune" in command else 2):
        for name in names:
            lists.write(name, OLD)
        disk, result = failing(lists, command, ERRORS[n % 3 % 2], n)
        if not disk.failed:
            break
        for name in names:
            assert lists.content(name) in (expected[name], *([OLD] if result.exit else []))
        lists.ok(command)
        assert {name: lists.content(name) for name in names} == expected
    assert n >= 3 * len(names)
    assert result.exit == 0


def test_a_training_on_a_disk_that_fails_at_any_call_is_resumed(lists: World) -> None:
    def model() -> dict[str, bytes]:
        paths = (path for path in (lists.folder / "model").iterdir() if path.is_file())
        return {path.name: path.read_bytes() for path in paths}

    lists.ok(TRAINING)
    expected = model()
    for n in itertools.count(1, 23):
        shutil.rmtree(lists.folder / "model")
        (lists.folder / "a").unlink(missing_ok=True)
        disk, _ = failing(lists, TRAINING, ERRORS[n % 3 % 2], n)
        if not disk.failed:
            break
        if (lists.folder / "model/config.json").exists():
            load_model(lists.folder / "model")
        if (state := lists.folder / "model/resume/state.json").exists():
            read_tensors(state)
        lists.ok(TRAINING)
        assert model() == expected
    assert n > 20
