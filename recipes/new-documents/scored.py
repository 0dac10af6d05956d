"""Gains of a scorer on new documents, beside those of weights tuned on these documents.

    python recipes/new-documents/scored.py --data DATA --work WORK --scored FOLDER [--seeds 5]

FOLDER has lists NAME.nbest of `rerank score --lm …` for the sets of `PAIRS`. Each row has the
difference to the start weights, in which scorers have none, on the test: of weights tuned on the
tuning set, by `--select none` and `--select cv`, and of weights tuned on the test itself. On the
documents that they are tuned on, weights gain more than on new ones; the last column is what `cv`
gains there on documents that were left out, each with weights tuned without it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from run import MOSES, TED, Pair, bleu, result, sets, weights_of

from rerank.tuning.plan import CV, NONE

PAIRS = {
    "dev2010": ("tst2010",),
    "tst2010": ("dev2010",),
    "tune": ("test3ref", "tst2010", "dev2010"),
    "test3ref": ("tune",),
}


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--scored", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--seeds", default=5, show_default=True)
def main(data: Path, work: Path, scored: Path, seeds: int) -> None:
    """Print the gains of scorers on new documents."""
    start, found = data / TED / MOSES, sets(data, work)
    by_name = {
        name: replace(found[name], lists=replace(found[name].lists, kbest=scored / f"{name}.nbest"))
        for name in PAIRS
    }
    pairs = {name: Pair(own, {}, start) for name, own in by_name.items()}
    heads = ["tuned on", "tested on", "none", "cv", "none, there", "cv, there", "held out, there"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    for name, tests in PAIRS.items():
        for test in tests:
            of = by_name[test]
            here, there = pairs[name], pairs[test]
            begin, rows = bleu(weights_of(start, of), of), list[list[float]]()
            for seed in range(1, seeds + 1):
                several = [result(one, how, seed) for one in (here, there) for how in (NONE, CV)]
                rows.append([bleu(one.weights, of) - begin for one in several] + [several[-1].gain])
            means, spreads = np.mean(rows, axis=0), np.std(rows, axis=0)
            cells = [f"{m:+.2f} ± {s:.2f}" for m, s in zip(means, spreads, strict=True)]
            print("| " + " | ".join([name, test, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
