"""How far to go from the start weights: BLEU on new documents at each share, for each tuner.

    python recipes/new-documents/shares.py --data DATA --work WORK

Weights are tuned on eight sets: parts of the subtitles and of the lectures, and whole sets. Each
is tested on three others, or on the rest of its own set. The table has the mean difference to the
start weights over all 24 tests, and the worst of them.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from parts import PARTS, REST
from run import MOSES, TED, bleu_of, pool, sets, weights_of

from rerank.notices import Notices
from rerank.tuning.goal import BLEU_GOAL
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.selection import SHARES, Anchor, cross_validate
from rerank.tuning.tuners.ascent import Bounds

ALGORITHMS = ("mert", "pro", "expected-bleu")


def differences(
    part: Pool, tests: list[Pool], start: NDArray[np.float64], algorithm: str
) -> NDArray[np.float64]:
    """BLEU of each test at each share, less that of the start weights, (shares + 1, tests).

    The last row is that of the weights that cross-validation chooses.
    """
    names = [str(f) for f in range(len(start))]
    plan = Plan(algorithm=algorithm)
    search = PoolSearch(plan, BLEU_GOAL, Bounds.none(len(start)), names)
    anchor = Anchor.of(part, start, search)
    tuned = search.quick().best(part, start, Notices()).weights
    begin = np.array([bleu_of(test.decode(start)) for test in tests])
    found = [anchor.towards(tuned, share) for share in SHARES]
    selection = cross_validate(part, start, search, Notices())
    found.append(tuned if selection is None else selection.weights(selection.tuned))
    return np.array([[bleu_of(test.decode(one)) for test in tests] for one in found]) - begin


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
def main(data: Path, work: Path) -> None:
    """Print the mean and the worst difference to the start weights at all shares."""
    by_name = sets(data, work)
    start = weights_of(data / TED / MOSES, by_name["dev2010"])
    found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in ALGORITHMS}
    for name, first, end, tests in PARTS:
        whole, _ = pool(by_name[name])
        own = (whole.places >= first) & (whole.places < end)
        others = [whole.take(~own) if test == REST else pool(by_name[test])[0] for test in tests]
        for algorithm in ALGORITHMS:
            found[algorithm].append(differences(whole.take(own), others, start, algorithm))
    print(f"| share of the way | {' | '.join(ALGORITHMS)} |")
    print(f"|---|{'---|' * len(ALGORITHMS)}")
    rows = [*(f"{share:g}" for share in SHARES), "chosen by cross-validation"]
    for s, row in enumerate(rows):
        cells = [np.concatenate([one[s] for one in found[name]]) for name in ALGORITHMS]
        shown = " | ".join(f"{cell.mean():+.2f} (worst {cell.min():+.2f})" for cell in cells)
        print(f"| {row} | {shown} |")


if __name__ == "__main__":
    main()
