"""Commands on a disk of which the n-th system call fails, for every n: row 81 of the catalogue.

Calls are counted in the two modules that write files (`support/disk.py`). After a fault every
final name holds an old file or a whole new one, there is no temporary file, and the same command
ends with the bytes of a run without a fault.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.disk import Disk
from support.files import write, write_weights
from support.language_models import made_up

from rerank.cli import run

ERRORS = (errno.ENOSPC, errno.EIO)
OLD = b"of an earlier run\n"
LISTS = "--kbest dev.kbest --docs dev.docs"
MODEL = "--lm lm={model} --deterministic --device cpu"
COMMANDS = {
    f"decode {LISTS} {MODEL} --weights w.json --out a --summary b --kbest-out c.gz": "a b c.gz",
    f"decode {LISTS} --weights start.json --out a --trace b": "a b",
    f"score {LISTS} {MODEL} --out a": "a",
    f"tune-mert {LISTS} {MODEL} --ref dev.ref --select none --out a.json": "a.json",
    f"tune-mert {LISTS} --ref dev.ref --start start.json --out a.json": "a.json",
    f"tune-mbr {LISTS} --ref dev.ref --weights start.json --out a.json": "a.json",
    "convert --kbest dev.kbest --to jsonl --out a": "a",
    f"first {LISTS} --out a": "a",
    f"check {LISTS} --fix a": "a",
    "weights start.json --to ini --out a.ini": "a.ini",
    "train-ngram --train text --out a.gz --discount-fallback": "a.gz",
    "report --trace trace --docs dev.docs --ref dev.ref --out a.html": "a.html",
}
TRAINING = (
    "train-lm --model rnnlm --train text --valid text --embed 4 --hidden 4 --epochs 1 "
    "--validations 2 --device cpu --curve a --out lm --resume"
)


@pytest.fixture
def here(tuning_lists: Path, model_folders: Mapping[str, Path]) -> Path:
    """The current folder, with weights and a text beside the lists."""
    write_weights("w.json", {"LM0": [0.5], "TM0": [0.25, 0.25], "lm": [1.5], "lmoov": [-0.5]})
    write("text", made_up(1, 6).splitlines())
    assert run(f"decode {LISTS} --weights start.json --out hyp --trace trace -q".split()) == 0
    return tuning_lists


def temporary() -> list[str]:
    roots = [Path(), Path(os.environ["RERANK_CACHE"])]
    return [str(path) for root in roots for path in root.rglob(".*.tmp")]


def ran(command: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(command.split())
    return code, capfd.readouterr().err


def check_failure(code: int, told: str, number: int) -> None:
    """A message about the disk, or the work without what could only have been kept."""
    assert "Traceback" not in told
    assert code in (0, 1), told
    found = {errno.ENOSPC: "no space left", errno.EIO: "input/output error"}[number]
    if code == 1:
        assert re.search(f"^rerank: .*{found}", told, re.MULTILINE), told


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words.split()[0])
def test_a_disk_that_fails_at_any_call_leaves_whole_files(
    words: str,
    here: Path,
    model_folders: Mapping[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    command, names = words.format(model=model_folders["codclm"]), COMMANDS[words].split()
    assert run(command.split()) == 0
    expected = {name: Path(name).read_bytes() for name in names}
    # most calls of a model or of a tuning are those of shards, one like another
    for n in itertools.count(1, 7 if "--lm" in words else 3 if "tune" in words else 1):
        number = ERRORS[n % 3 % 2]
        shutil.rmtree(os.environ["RERANK_CACHE"], ignore_errors=True)
        for name in names:
            Path(name).write_bytes(OLD)
        with monkeypatch.context() as patch:
            disk = Disk(patch, number, n)
            code, told = ran(command, capfd)
        assert temporary() == []
        if not disk.failed:
            break
        check_failure(code, told, number)
        for name in names:
            assert Path(name).read_bytes() in (expected[name], *([OLD] if code else []))
        assert ran(command, capfd)[0] == 0
        assert {name: Path(name).read_bytes() for name in names} == expected
    assert n >= 3 * len(names)
    assert code == 0


def test_a_training_on_a_disk_that_fails_at_any_call_is_resumed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(TRAINING.split()) == 0
    expected = model_files()
    for n in itertools.count(1, 7):
        number = ERRORS[n % 3 % 2]
        shutil.rmtree("lm")
        Path("a").unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            disk = Disk(patch, number, n)
            code, told = ran(TRAINING, capfd)
        assert temporary() == []
        if not disk.failed:
            break
        check_failure(code, told, number)
        assert_whole(Path("lm"))
        assert ran(TRAINING, capfd)[0] == 0
        assert model_files() == expected
    assert n > 20


def model_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("lm").iterdir() if path.is_file()}


def assert_whole(folder: Path) -> None:
    from lm.checkpoint import load_model
    from lm.shards import read_tensors

    if (folder / "config.json").exists():
        load_model(folder)
    if (folder / "resume" / "state.json").exists():
        read_tensors(folder / "resume" / "state.json")
    for path in folder.rglob("*.json"):
        json.loads(path.read_bytes())
