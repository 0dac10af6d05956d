"""Few documents to tune on: how far combinations of systems can fall below the best single system.

    python recipes/systems/few.py --data DATA [--sizes 2 4 8 16 40] [--sets 10]

Tunes on random documents of each test set as `tune-mert --systems` does, and tests on all the
others. Gains are in BLEU over the system that is best on the tuning documents.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from run import NMT

from rerank.commands.list_run import ListRun
from rerank.commands.lists import Lists, read_targets
from rerank.commands.search import AUTO, search_documents
from rerank.commands.tuning_set import read_set
from rerank.formats.weights import Weights
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS
from rerank.scorers.agreement import DOCUMENT_BLEU
from rerank.tuning.features import TunedFeatures, values_of_systems
from rerank.tuning.objective import bleu_of
from rerank.tuning.plan import Plan
from rerank.tuning.pool import TuningSet
from rerank.tuning.run import tune

Read = tuple[TuningSet, TunedFeatures, Bleu]


def wmt23(data: Path) -> Read:
    """All systems of WMT23 ru-en."""
    xml = data / "wmt23-ru-en" / "wmttest2023.ru-en.all.xml.gz"
    return read(Lists("", systems=((ALL_SYSTEMS, xml),)), xml, "13a")


def nmt(data: Path) -> Read:
    """Five neural systems on TED tst2010."""
    folder = data / "ted-zh-en"
    systems = tuple((one, folder / f"tst2010.nmt.{one}.en") for one in NMT)
    lists = Lists("", folder / "tst2010.docids", systems=systems)
    return read(lists, folder / "tst2010.en", "none")


def read(lists: Lists, reference: Path, tokenize: str) -> Read:
    """All documents with their features and statistics."""
    notices, metric = Notices(), Bleu(tokenize)
    documents, lines = read_targets(lists, [reference], notices)
    with ListRun.open(lists, notices, documents=documents) as source:
        split = documents.split(lines)
        corpus = read_set(source, split, [metric], TunedFeatures(), lambda line: None)
        features = TunedFeatures(systems=source.systems, consensus={DOCUMENT_BLEU: "consensus"})
        return corpus, features, metric


def gains(found: Read, tuning: list[int]) -> tuple[float, float]:
    """BLEU of document MBR and of tuned weights on other documents, over the best system's."""
    corpus, features, metric = found
    others = [d for d in range(len(corpus.documents)) if d not in tuning]
    result = tune(
        corpus.take(tuning),
        [metric],
        decode=lambda documents, weights: [
            one.choices for one in search_documents(documents, weights, AUTO)
        ],
        features=features,
        plan=Plan(),
        notices=Notices(),
    )
    objective = result.task.goal.objective
    values = values_of_systems(features.systems, result.task.corpus, objective)
    best = max(values, key=lambda name: values[name])
    (label,) = (one for one, name in features.systems.items() if name == best)
    rest = result.task.on(others, 1)

    def alone(name: str) -> float:
        given = replace(result.task.features, given=Weights({name: (1.0,)}))
        task = replace(rest, features=given)
        return bleu_of(task.decode(task.start)[1])

    base = alone(label)
    tuned = bleu_of(rest.decode(result.weights)[1])
    return alone(DOCUMENT_BLEU) - base, tuned - base


def main() -> None:
    """Print mean and least gains for each size of the tuning set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8, 16, 40])
    parser.add_argument("--sets", type=int, default=10)
    given = parser.parse_args()
    print("| systems | documents tuned on | document MBR, mean (least) | tuned, mean (least) |")
    print("|---|---|---|---|", flush=True)
    for name, load in (("wmt23", wmt23), ("nmt", nmt)):
        found, rng = load(given.data), np.random.default_rng(1)
        n_documents = len(found[0].documents)
        for size in given.sizes:
            if size > n_documents // 2:
                continue
            sets = [rng.choice(n_documents, size, replace=False) for _ in range(given.sets)]
            rows = np.array([gains(found, sorted(one.tolist())) for one in sets])
            cells = (f"{m:+.2f} ({w:+.2f})" for m, w in zip(rows.mean(0), rows.min(0), strict=True))
            print(f"| {name} | {size} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
