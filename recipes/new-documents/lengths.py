"""Prices on another length than that of the start weights, on documents that nobody tuned on.

    python recipes/new-documents/lengths.py --data DATA --work WORK [--scored FOLDER]

Weights are tuned by cross-validation on parts of lectures (20 candidates) and subtitles (8), and on
halves of outputs of systems, once for each price of a length ratio that is off by 1. The table has
the differences to the start weights on the other documents, in BLEU, chrF2 and length ratio: means
of each domain, of all domains, and the worst test in BLEU. The last lines choose the price by the
mean of BLEU on all domains but one. FOLDER: lists NAME.nbest with more features, in place of those
of DATA.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from rules import LECTURES, SUBTITLES, Floats, cases
from run import MOSES, TED, sets, weights_of

from rerank.metrics import metric
from rerank.metrics.bleu import WIDTH
from rerank.notices import Notices
from rerank.tuning.cross_validation import cross_validate
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import CORPUS_BLEU, LengthPenalty, Sums, bleu_of, length_of
from rerank.tuning.plan import MertSettings, Plan
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.rounds import TuningLists
from rerank.tuning.tuners.ascent import Bounds

PRICES = (0.0, 5.0, 10.0, 20.0, 50.0)
TOP = {LECTURES: 20, SUBTITLES: 8}  # candidates of a list
PARTS = {LECTURES: [(0, 8), (0, 4), (4, 8)], SUBTITLES: [(0, 4), (4, 8), (8, 12)]}
CHRF = metric("chrf")


def values(sums: Sums) -> Floats:
    """BLEU, chrF2 and length ratio of summed statistics."""
    chrf = float(CHRF.scores(sums.sum(axis=0)[WIDTH:]))
    return np.array([bleu_of(sums), chrf, length_of(sums)])


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--scored", type=click.Path(exists=True, path_type=Path))
def main(data: Path, work: Path, scored: Path | None) -> None:
    """Print the table of prices."""
    by_name = sets(data, work)
    for name, top in TOP.items():
        lists = replace(by_name[name].lists, top=top)
        lists = replace(lists, kbest=scored / f"{name}.nbest") if scored else lists
        by_name[name] = replace(by_name[name], lists=lists)
    start = weights_of(data / TED / MOSES, by_name[LECTURES])
    gains: dict[float, dict[str, list[Floats]]] = {price: defaultdict(list) for price in PRICES}
    for units, first, tests in cases(by_name, start, PARTS, ["chrf"]):
        names, chosen = [str(f) for f in range(len(first))], units.decode(first)
        for price in PRICES:
            held = LengthPenalty(CORPUS_BLEU, 1.0, price, held=True)
            goal = SearchGoal(held if price else CORPUS_BLEU)
            plan = Plan(settings=MertSettings(seed=1))
            search = PoolSearch(plan, goal.at(chosen), Bounds.none(len(names)), names)
            selection = cross_validate(TuningLists(units), first, search, Notices())
            if selection is None:
                raise click.ClickException("too few lists")
            weights = selection.weights(selection.tuned)
            for domain, pool in tests:
                gains[price][domain].append(
                    values(pool.decode(weights)) - values(pool.decode(first))
                )
    domains = [*gains[0.0]]
    heads = ["price", *domains, "mean", "worst"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    means = {p: np.array([np.mean(own[d], axis=0) for d in domains]) for p, own in gains.items()}
    for price, rows in means.items():
        cells = [f"{b:+.2f}, {c:+.2f}, {r:+.3f}" for b, c, r in (*rows, rows.mean(axis=0))]
        worst = min(own[0] for tests in gains[price].values() for own in tests)
        print(f"| {price:g} | {' | '.join(cells)} | {worst:+.2f} |")
    for place, left in enumerate(domains):
        rest = {price: np.delete(rows[:, 0], place).mean() for price, rows in means.items()}
        best = max(PRICES, key=lambda price: rest[price])
        print(f"without {left}: {best:g}; there {means[best][place, 0]:+.2f}")


if __name__ == "__main__":
    main()
