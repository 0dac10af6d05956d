"""Runs of `decode` and `tune-mert` on drawn lists with a language model: commands and outputs."""

import os
import re
import sys
from pathlib import Path

import pytest
from support.world import Outcome, World, without_command

MODELS = ("rnnlm", "codclm", "ccdclm")  # of order 0, of order 1, unbounded
OUTPUTS = ("out.txt", "out.json", "out.kbest")
DOCUMENTS = 4  # with candidates, of those that `World.draw` makes
STOPPED = "finished work kept in the cache: the same command goes on from there"


def decoding(model: str, options: str = "--deterministic") -> str:
    """A command that writes all outputs."""
    outputs = "--out out.txt --summary out.json --kbest-out out.kbest"
    lists = "--kbest dev.kbest --docs dev.docs --weights w.json --device cpu"
    return f"decode {lists} --lm lm={model} {outputs} {options}"


def tuning(model: str | None, options: str = "") -> str:
    """A command that writes weights; without a model, of the list's features."""
    files = "--kbest dev.kbest --docs dev.docs --ref dev.ref --seed 7 --starts 3 --out tuned.json"
    return f"tune-mert {files} {'' if model is None else f'--lm lm={model}'} {options}"


def taken(world: World) -> dict[str, bytes]:
    """The outputs that are there, without the commands that they state; they are removed."""
    paths = [path for name in (*OUTPUTS, "tuned.json") if (path := world.folder / name).exists()]
    result = {path.name: without_command(path.read_bytes()) for path in paths}
    for path in paths:
        path.unlink()
    return result


def cache() -> Path:
    return Path(os.environ["RERANK_CACHE"])


def shards() -> list[Path]:
    return sorted(cache().glob("*/*.scores"))


def recalled(outcome: Outcome) -> int:
    """Documents from the cache."""
    result = re.search(r"lm: (\d+) documents from the cache", outcome.err)
    return int(result[1]) if result else 0


def replaced_everywhere(patch: pytest.MonkeyPatch, real: object, other: object) -> None:
    """Put something in the place of a function of another package wherever `rerank` imported it."""
    for module in [one for name, one in sys.modules.items() if name.startswith("rerank")]:
        for name, value in vars(module).copy().items():
            if value is real:
                patch.setattr(module, name, other)
