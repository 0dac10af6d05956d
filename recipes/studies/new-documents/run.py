"""Tuned weights on documents that were not tuned on: with and without cross-validation.

    python recipes/studies/new-documents/run.py --data DATA --work WORK [--seeds 5] [--pair NAME …]
        [--no-none]

For each pair of a tuning set and test sets the table has BLEU of the start weights (of the system
that is best on the tuning set, where there are none), and mean and spread over seeds of the weights
of `tune-mert --select none` and `--select cv`; and the length ratios of what the start weights and
those of `cv` choose. Files that are made of halves of sets are in WORK.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np
from numpy.typing import NDArray
from systems import LLM, halves, wmt23_halves

from rerank.corpus.columns import Label
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import vector
from rerank.metrics import metric
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices
from rerank.options import settings_of
from rerank.runs.lists import Lists, read_targets
from rerank.runs.opening import open_run
from rerank.runs.options import RunOptions
from rerank.runs.search import SearchOptions, search_documents
from rerank.runs.systems import PREFIX
from rerank.runs.tuning_set import read_set
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objective import bleu_of, length_of
from rerank.tuning.plan import CV, NONE, Plan
from rerank.tuning.pool import Pool, TuningSet
from rerank.tuning.run import tune

TVSUB, TED = "tvsub-zh-en", "ted-zh-en"
MOSES = "moses.rescore.ini"
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Set:
    """K-best lists, or systems of whose outputs they are made, with documents and references."""

    lists: Lists
    references: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class Pair:
    """A tuning set, its start weights if there are any, and sets to test on."""

    tuning: Set
    tests: dict[str, Set]
    start: Path | None


def sets(data: Path, work: Path) -> dict[str, Set]:
    """All sets by name; lists of systems are made where they are not there."""
    found = dict[str, Set]()
    for folder, name, form in (
        (TVSUB, "tune", "xz"),
        (TVSUB, "test", "xz"),
        (TVSUB, "test3ref", "gz"),
        (TED, "dev2010", "gz"),
        (TED, "tst2010", "gz"),
    ):
        stem = data / folder / name
        several = tuple(stem.parent / f"{name}.en.{i}" for i in range(3))
        references = several if several[0].exists() else (stem.with_suffix(".en"),)
        lists = Lists(Path(f"{stem}.nbest.{form}"), stem.with_suffix(".docids"))
        found[name] = Set(lists, references)
    work.mkdir(parents=True, exist_ok=True)
    of_systems = {name: halves(data, work, name) for name in ("nmt", *LLM)}
    for name, both in {**of_systems, "wmt23": wmt23_halves(data, work)}.items():
        for half, (lists, reference) in enumerate(both):
            found[f"{name}.{half}"] = Set(lists, (reference,))
    return found


def pairs(data: Path, work: Path) -> dict[str, Pair]:
    """The pairs by the name of their tuning set."""
    by_name = sets(data, work)

    def pair(tuning: str, *tests: str, start: Path | None = None) -> Pair:
        return Pair(by_name[tuning], {test: by_name[test] for test in tests}, start)

    return {
        "dev2010": pair("dev2010", "tst2010", "test", "test3ref", start=data / TED / MOSES),
        "tune": pair("tune", "test", "test3ref", "tst2010", start=data / TVSUB / MOSES),
        **{
            f"{name}.{half}": pair(f"{name}.{half}", f"{name}.{1 - half}")
            for name in ("nmt", "wmt23", *LLM)
            for half in (0, 1)
        },
    }


@cache
def tuning_set(of: Set, *metrics: str) -> tuple[TuningSet, dict[str, str]]:
    """A set as `tune-mert` reads it, and the names of its systems by the label of their feature.

    metrics: those whose statistics stand behind BLEU's
    """
    notices = Notices()
    documents, lines = read_targets(of.lists, of.references, notices)
    run = settings_of(RunOptions)
    run = run.with_agreement() if of.lists.systems else run
    with open_run(of.lists, notices, run, documents=documents) as source:
        references = documents.split(lines)
        counted = [Bleu(), *map(metric, metrics)]
        corpus = read_set(source, references, counted, TunedFeatures(), lambda line: None)
        return corpus, dict(source.systems)


@cache
def pool(of: Set, *metrics: str) -> tuple[Pool, tuple[Label, ...]]:
    """All candidates of a set with their statistics, and the features."""
    corpus, _ = tuning_set(of, *metrics)
    space = corpus.documents[0].space
    every, zeros = np.arange(space.width), np.zeros(space.width)
    return corpus.pool(corpus.first, every, zeros), tuple(space.labels)


def weights_of(path: Path, of: Set) -> Floats:
    """Weights (F,) of a file for a set."""
    return vector(read_weights(path, Notices()), pool(of)[1], default=0.0, source=str(path))


def bleu(weights: Floats, of: Set) -> float:
    """BLEU of the choices of weights (F,)."""
    return bleu_of(pool(of)[0].decode(weights))


def ratio(weights: Floats, of: Set) -> float:
    """Length ratio of the choices of weights (F,)."""
    return length_of(pool(of)[0].decode(weights))


def start_of(pair: Pair) -> tuple[str, Floats]:
    """The start weights, or those of the system that is best on the tuning set."""
    if pair.start is not None:
        return "start weights", weights_of(pair.start, pair.tuning)
    found, labels = pool(pair.tuning)
    names = [label.name for label in labels]
    systems = [f for f, name in enumerate(names) if name.startswith(PREFIX)]
    best = max(np.eye(len(names))[systems], key=lambda one: bleu_of(found.decode(one)))
    return names[int(best.argmax())], best


@dataclass(frozen=True, eq=False)
class Result:
    """Tuned weights (F,), their held-out gain in BLEU, and the weights at every share."""

    weights: Floats
    gain: float = 0.0
    at_shares: tuple[Floats, ...] = ()


@cache
def result(pair: Pair, select: str, seed: int) -> Result:
    """What `tune-mert --select SELECT --seed SEED` finds."""
    corpus, systems = tuning_set(pair.tuning)
    start = None if pair.start is None else read_weights(pair.start, Notices())
    found = tune(
        corpus,
        [Bleu()],
        decode=lambda group, full, _: [
            one.choices
            for one in search_documents(group, full, settings_of(SearchOptions).chosen())
        ],
        features=TunedFeatures(initial=start, systems=systems),
        plan=settings_of(Plan, select=select, seed=seed),
        notices=Notices(),
    )
    weights, own = found.task.full(found.weights), found.selection
    if own is None:
        return Result(weights)
    gain = bleu_of(own.statistics) - bleu_of(own.held_out[0])
    chosen = [replace(own, chosen=candidate) for candidate in own.candidates]
    several = (found.task.full(one.weights(one.tuned)) for one in chosen)
    return Result(weights, gain, tuple(several))


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=5, show_default=True)
@click.option("--pair", "chosen", multiple=True, help="Name of a tuning set [default: all].")
@click.option("--none/--no-none", "plain", default=True, help="Tune with --select none, too.")
def main(
    data: Path,
    work: Path,
    seeds: int,
    chosen: tuple[str, ...],
    plain: bool,
) -> None:
    """Print BLEU on new documents, without and with cross-validation."""
    kinds = [*([NONE] if plain else []), CV]
    heads = ["tuned on", "tested on", "start", *kinds, *(f"cv − {kind}" for kind in kinds[:-1])]
    heads += ["cv − start", "worst seed", "best share", "length: tuning set", "start", "cv"]
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|", flush=True)
    gains = list[list[float]]()
    for name, pair in pairs(data, work).items():
        if chosen and name not in chosen:
            continue
        what, start = start_of(pair)
        numbers = range(1, seeds + 1)
        results = [result(pair, CV, n) for n in numbers]
        found = {CV: [one.weights for one in results]}
        if plain:
            found[NONE] = [result(pair, NONE, n).weights for n in numbers]
        for test, of in pair.tests.items():
            begin = bleu(start, of)
            scores = [np.array([bleu(one, of) for one in found[kind]]) for kind in kinds]
            means = [float(score.mean()) for score in scores]
            gains.append([means[-1] - other for other in (*means[:-1], begin)])
            cells = [name, test, f"{begin:.2f} ({what})"]
            cells += [f"{score.mean():.2f} ± {score.std():.2f}" for score in scores]
            cells += map("{:+.2f}".format, [*gains[-1], float(scores[-1].min()) - begin])
            best = [max(bleu(share, of) for share in every.at_shares) for every in results]
            cells.append(f"{np.mean(best) - begin:+.2f}")
            lengths = ratio(start, pair.tuning), ratio(start, of)
            lengths += (float(np.mean([ratio(one, of) for one in found[CV]])),)
            cells += map("{:.3f}".format, lengths)
            print("| " + " | ".join(cells) + " |", flush=True)
    empty = [""] * (len(kinds) + 2)
    for how, values in (("mean", np.mean(gains, axis=0)), ("worst", np.min(gains, axis=0))):
        print("| " + " | ".join([how, *empty, *map("{:+.2f}".format, values)]) + " |")


if __name__ == "__main__":
    main()
