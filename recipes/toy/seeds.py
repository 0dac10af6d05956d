"""Prints the demo's rows for five examples, each with data and models of a seed of its own.

Run it as `python recipes/toy/seeds.py`; what it makes stays in `recipes/toy/work`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from generate import generate
from tabulate import tabulate

from rerank.commands.demo import Demo, demonstrate
from rerank.example import Example

COLUMNS = (
    "seed",
    "1-best",
    "+ rnnlm",
    "+ codclm",
    "shuffled",
    "oracle",
    "codclm\n− 1-best",
    "codclm\n− rnnlm",
    "shuffled\n− rnnlm",
    "training\ns",
)


def run(folder: Path, seed: int) -> Demo:
    """The demo on the example of a seed, with models of that seed."""
    generate(folder / "example", seed)
    example = Example(folder / "example")
    return demonstrate(folder / "demo", example=example, seed=seed, announce=say)


def say(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)


def row(found: Demo) -> list[str]:
    """A row of the table."""
    first, sentence, document, shuffled = (system.bleu for system in found.evaluation.systems)
    oracle = found.evaluation.oracle
    bleu = [first, sentence, document, shuffled, oracle.bleu if oracle else 0.0]
    gains = [document - first, document - sentence, shuffled - sentence]
    return [
        str(found.seed),
        *(f"{number:.2f}" for number in bleu),
        *(f"{number:+.2f}" for number in gains),
        " + ".join(f"{model.seconds:.0f}" for model in found.models),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    arguments = parser.parse_args()
    rows = [row(run(arguments.work / str(seed), seed)) for seed in arguments.seeds]
    print(tabulate(rows, headers=COLUMNS, colalign=["right"] * len(COLUMNS), disable_numparse=True))
