"""Few documents to tune on: how far combinations of systems can fall below the best single system.

    python recipes/systems/few.py --data DATA [--only llm …] [--sizes 2 4 8 20 40] [--sets 10]

Tunes on random documents of each test set as `tune-mert --systems` does, up to half of them, and
tests on all the others. Gains are over the system that is best on the tuning documents. What the
systems agree on, which needs no references, is counted in all documents once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rules import FOLDERS
from run import NMT

from rerank.formats.weights import Weights, vector
from rerank.metrics.bleu import Bleu
from rerank.metrics.chrf import Chrf
from rerank.notices import Notices
from rerank.options import settings_of
from rerank.registry import ALL_SYSTEMS
from rerank.runs.lists import Lists, read_targets
from rerank.runs.opening import open_run
from rerank.runs.options import RunOptions
from rerank.runs.search import AUTO, search_documents
from rerank.runs.tuning_set import read_set
from rerank.scorers.agreement import AGREEMENT, starts
from rerank.tuning.features import TunedFeatures, values_of_systems
from rerank.tuning.plan import Plan
from rerank.tuning.pool import TuningSet
from rerank.tuning.run import tune

Read = tuple[TuningSet, TunedFeatures, tuple[Bleu, Chrf]]
Rows = NDArray[Any]


def files_of(name: str, data: Path) -> tuple[Lists, Path, str]:
    """Systems and documents of a test set, its reference, and the tokenizer of its words."""
    if name == "wmt23":
        xml = data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
        return Lists("", systems=((ALL_SYSTEMS, xml),)), xml, "13a"
    if name == "nmt":
        folder = data / "ted-zh-en"
        systems = tuple((one, folder / f"tst2010.nmt.{one}.en") for one in NMT)
        docs, reference = folder / "tst2010.docids", folder / "tst2010.en"
        return Lists("", docs, systems=systems), reference, "none"
    folder = data / FOLDERS[name]
    systems = tuple((path.name[4:-3], path) for path in sorted(folder.glob("hyp.*.en")))
    return Lists("", folder / "docids", systems=systems), folder / "ref.en", "13a"


def read(lists: Lists, reference: Path, tokenize: str) -> Read:
    """All documents with their features and statistics."""
    notices, metrics = Notices(), (Bleu(tokenize), Chrf())
    documents, lines = read_targets(lists, [reference], notices, lambda line: None)
    options = settings_of(RunOptions).with_agreement()
    with open_run(lists, notices, options, documents=documents) as source:
        split = documents.split(lines)
        corpus = read_set(source, split, metrics, TunedFeatures(), lambda line: None)
        consensus = starts({metrics[0].name: 1.0})
        return corpus, TunedFeatures(systems=source.systems, consensus=consensus), metrics


def gains(found: Read, tuning: Sequence[int]) -> tuple[Rows, Rows]:
    """BLEU and chrF2 (2,) of agreement, and of tuned weights, on other documents.

    Less those of the system that is best on the tuning documents.
    """
    corpus, features, metrics = found
    result = tune(
        corpus.take(tuning),
        metrics,
        decode=lambda documents, weights: [
            one.choices for one in search_documents(documents, weights, AUTO)
        ],
        features=features,
        plan=Plan(),
        notices=Notices(),
    )
    values = values_of_systems(features.systems, result.task.corpus, result.task.goal.objective)
    best = max(values, key=lambda name: values[name])
    (label,) = (one for one, name in features.systems.items() if name == best)
    rest = corpus.take([d for d in range(len(corpus.documents)) if d not in tuning])
    cuts = np.cumsum([metric.width for metric in metrics])[:-1]

    def scores(weights: Rows) -> Rows:
        path = [one.choices for one in search_documents(rest.documents, weights, AUTO)]
        parts = np.split(rest.sums(tuple(path)).sum(axis=0), cuts)
        return np.array([float(m.scores(own)) for m, own in zip(metrics, parts, strict=True)])

    def alone(name: str) -> Rows:
        return scores(vector(Weights({name: (1.0,)}), corpus.space.labels, default=0.0))

    rival = alone(label)
    return alone(AGREEMENT) - rival, scores(result.task.full(result.weights)) - rival


def main() -> None:
    """Print mean and least gains for each size of the tuning set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    names = ["wmt23", "nmt", *(name for name in FOLDERS if name != "mqm")]
    parser.add_argument("--only", nargs="*", default=names)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8, 20, 40])
    parser.add_argument("--sets", type=int, default=10)
    given = parser.parse_args()
    print(
        "| systems | documents tuned on | agreement: BLEU, mean (least) | chrF2 | tuned | chrF2 |"
    )
    print("|---|---|---|---|---|---|", flush=True)
    for name in given.only:
        found, rng = read(*files_of(name, given.data)), np.random.default_rng(1)
        n_documents = len(found[0].documents)
        half = n_documents // 2
        for size in [*(size for size in given.sizes if size < half), half]:
            draws = [rng.choice(n_documents, size, replace=False) for _ in range(given.sets)]
            rows = np.array([gains(found, sorted(one.tolist())) for one in draws])
            means, least = rows.mean(axis=0), rows.min(axis=0)
            cells = (f"{m:+.2f} ({w:+.2f})" for m, w in zip(means.flat, least.flat, strict=True))
            print(f"| {name} | {size} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
