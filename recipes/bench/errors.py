"""What float32 and bfloat16 cost: our scores against float64, over all lists of a set.

    python recipes/bench/errors.py --data DATA --lm MODELS/rnnlm --lm MODELS/codclm

The truth is the same engine in float64, which is itself compared with the obvious script in
float64 on the first sentences. Prints the largest error of a sentence's score in nats, over
all candidates (order 0) or all pairs of candidates (order 1), the mean, and how many
normalisers of pairs the guard formed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import click
import numpy as np
import torch
from lists import FILES, Set, Text
from measuring import difference
from numpy.typing import NDArray
from obvious import ContextLM
from tabulate import tabulate
from tasks import TASKS

from lm.backend import Backend
from lm.checkpoint import load_model
from lm.model import DocumentLM
from lm.scoring import ScoringEngine

DTYPES = ("float32", "bfloat16")


def _documents(data: Set) -> Iterator[Set]:
    """One document after the other, so that memory is bounded by the largest."""
    for lists in data.documents():
        yield Set(data.name, lists, [t == 0 for t in range(len(lists))])


def _errors(
    model: DocumentLM, data: Set
) -> tuple[dict[str, list[NDArray[np.float64]]], ScoringEngine]:
    """|error| of each score by dtype, and the float32 scorer."""
    ours = TASKS[model.config.model].ours
    truth = ScoringEngine.of(deepcopy(model).double())
    scorers = {dtype: ScoringEngine.of(model, Backend(dtype=dtype)) for dtype in DTYPES}
    found: dict[str, list[NDArray[np.float64]]] = {dtype: [] for dtype in DTYPES}
    for document in _documents(data):
        expected = ours(truth, document)
        for dtype, scorer in scorers.items():
            scores = ours(scorer, document)
            found[dtype] += [np.abs(a - b).ravel() for a, b in zip(scores, expected, strict=True)]
    return found, scorers["float32"]


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--set", "sets", multiple=True, type=click.Choice(list(FILES)))
@click.option("--lm", "folders", multiple=True, required=True, type=click.Path(path_type=Path))
@click.option("--sentences", default=1_000_000, help="Of each set  [default: all]")
@click.option("--sample", default=5, show_default=True, help="Sentences of the script.")
def main(
    data: Path, sets: tuple[str, ...], folders: tuple[Path, ...], sentences: int, sample: int
) -> None:
    """Print the errors of our scores."""
    rows = []
    for folder in folders:
        saved = load_model(folder)
        model = saved.model
        for name in sets or FILES:
            lists = Text.read(data, name, sentences).encoded(saved.vocabulary)
            task, head = TASKS[model.config.model], lists.head(sample)
            script = task.peers["script"].scores(ContextLM.of(model).double(), head, 100)
            agree = difference(task.ours(ScoringEngine.of(deepcopy(model).double()), head), script)
            errors, scorer = _errors(model, lists)
            work = scorer.counts
            for dtype, found in errors.items():
                flat = np.concatenate(found)
                rows.append(
                    {
                        "data": name,
                        "model": model.config.model,
                        "dtype": dtype,
                        "sentences": len(lists.lists),
                        "scores": flat.size,
                        "largest error": f"{flat.max():.1e}",
                        "mean": f"{flat.mean():.1e}",
                        "formed again": f"{work.recomputed / max(1, work.normalisers):.2%}",
                        "float64, to the script": f"{agree:.0e}",
                    }
                )
            click.echo(f"{folder.name}, {name}: done", err=True)
    print(tabulate(rows, "keys", intfmt=",", disable_numparse=False))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
