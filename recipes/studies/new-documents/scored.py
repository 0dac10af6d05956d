"""Gains of a scorer on new documents, beside those of weights tuned on these documents.

    python recipes/studies/new-documents/scored.py --data DATA --work WORK [--scored FOLDER]
        [--correlation R …] [--seeds 5] [--top 20] [--draw 0]

FOLDER has lists NAME.nbest of `rerank score --lm …` for the sets of `PAIRS`. R is the correlation
of a made-up scorer with the sentence BLEU of the candidates of a list; its lists, of the first 20
candidates, are written in WORK. Each row has the difference to the start weights, in which scorers
have none, on the test: of weights tuned on the tuning set, by `--select none` and `--select cv`,
and of weights tuned on the test itself. On the documents that they are tuned on, weights gain more
than on new ones; *held out, there* is what `cv` gains there on documents that were left out, each
with weights tuned without it, and the last column is the share of it that `cv` has.
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

import click
import numpy as np
from run import MOSES, TED, Pair, Set, bleu, result, sets, weights_of
from sacrebleu import sentence_bleu

from rerank.tuning.plan import CV, NONE

LEAST = 0.05  # gain that a share of is given
PAIRS = {
    "dev2010": ("tst2010",),
    "tst2010": ("dev2010",),
    "tune": ("test3ref", "tst2010", "dev2010"),
    "test3ref": ("tune",),
}


def with_scorer(of: Set, correlation: float, top: int, out: Path, draw: int) -> Path:
    """A list with the feature `made=`, which correlates with sentence BLEU in each list."""
    rng = np.random.default_rng(draw)
    references = [[*lines] for lines in zip(*map(read, of.references), strict=True)]
    lists = groupby(read(Path(str(of.lists.kbest))), lambda line: int(line.partition(" ||| ")[0]))
    with out.open("w", encoding="utf-8") as file:
        for number, lines in lists:
            parts = [line.split(" ||| ") for line in islice(lines, top)]
            scores = (sentence_bleu(part[1], references[number], tokenize="none") for part in parts)
            quality = np.array([score.score for score in scores])
            quality = (quality - quality.mean()) / (quality.std() or 1.0)
            noise = rng.standard_normal(len(parts)) * np.sqrt(1 - correlation**2)
            for part, value in zip(parts, correlation * quality + noise, strict=True):
                part[2] += f" made= {value:.6f}"
                file.write(" ||| ".join(part) + "\n")
    return out


def read(path: Path) -> Iterator[str]:
    """Lines of a text, which may be compressed."""
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--scored", type=click.Path(exists=True, path_type=Path))
@click.option("--correlation", "correlations", type=float, multiple=True)
@click.option("--seeds", default=5, show_default=True)
@click.option("--top", default=20, show_default=True)
@click.option("--draw", default=0, show_default=True, help="Of the noise of made-up scorers.")
def main(
    data: Path,
    work: Path,
    scored: Path | None,
    correlations: tuple[float, ...],
    seeds: int,
    top: int,
    draw: int,
) -> None:
    """Print the gains of scorers on new documents."""
    found = sets(data, work)
    heads = ["tuned on", "tested on", "none", "cv", "none, there", "cv, there", "held out, there"]
    print("| " + " | ".join(["scorer", *heads, "cv ÷ held out"]) + " |")
    print("|---" * (len(heads) + 2) + "|", flush=True)
    lists = {} if scored is None else {"--lm": {n: scored / f"{n}.nbest" for n in PAIRS}}
    for r in correlations:
        files = {name: work / f"{name}.{r:g}.nbest" for name in PAIRS}
        lists[f"r = {r:g}"] = {
            n: with_scorer(found[n], r, top, file, draw) for n, file in files.items()
        }
    for scorer, of_list in lists.items():
        by_name = {
            name: replace(found[name], lists=replace(found[name].lists, kbest=of_list[name]))
            for name in PAIRS
        }
        for row in rows_of(by_name, data / TED / MOSES, seeds):
            print("| " + " | ".join([scorer, *row]) + " |", flush=True)


def rows_of(by_name: Mapping[str, Set], start: Path, seeds: int) -> Iterator[list[str]]:
    """The cells of each pair."""
    pairs = {name: Pair(own, {}, start) for name, own in by_name.items()}
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
            share = f"{means[1] / means[-1]:.0%}" if means[-1] >= LEAST else "–"
            yield [name, test, *cells, share]


if __name__ == "__main__":
    main()
