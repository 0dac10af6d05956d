"""Rules that choose a share, compared on documents and domains that no weights were tuned on.

    python recipes/new-documents/rules.py --data DATA --work WORK [--seeds 2] [--free]
        [--scored FOLDER]

Weights are tuned on lectures, subtitles and outputs of systems, and on parts of them. No set that
tests weights elsewhere takes part. Each rule then chooses a share by what was held out, and the
table has the difference to the start weights on the tests: the mean of each domain, the mean of all
domains, the worst test, and how many are below −0.1 and above 0; last, the best share of each test.
The lines below the table choose the rule on all domains but one. FOLDER: lists NAME.nbest with more
features, in place of those of DATA.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from run import MOSES, TED, Set, pool, sets, weights_of
from scipy.stats import t as student
from systems import LLM

from rerank.notices import Notices
from rerank.runs.systems import PREFIX
from rerank.scorers.agreement import AGREEMENT
from rerank.tuning.cross_validation import cross_validate
from rerank.tuning.goal import BLEU_GOAL
from rerank.tuning.objective import Objective, bleu_of, jackknife, standard_error
from rerank.tuning.plan import MertSettings, Plan
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.rounds import TuningLists
from rerank.tuning.tuners.ascent import Bounds

Floats = NDArray[np.float64]
LECTURES, SUBTITLES = "dev2010", "tune"
TOP = {LECTURES: 50, SUBTITLES: 20}  # candidates of a list
PARTS = {  # of 8 talks and 12 episodes, those that are tuned on
    LECTURES: [(0, 8), (0, 4), (4, 8), (0, 8, 2), (1, 8, 2), (0, 6), (2, 8)],
    SUBTITLES: [
        *((0, 12), (0, 4), (4, 8), (8, 12), (0, 6), (6, 12)),
        *((0, 12, 2), (1, 12, 2), (0, 8), (4, 12)),
    ],
}

Case = tuple[Pool, Floats, list[tuple[str, Pool]]]  # start weights; tests with their domains


class HeldOut(NamedTuple):
    """Gains (C,) on held-out text at all shares (C,), and their standard errors (C, C) to others.

    units: how many documents were held out
    """

    shares: Floats
    gain: Floats
    errors: Floats
    units: int

    @classmethod
    def of(cls, shares: Floats, sums: NDArray[np.int64], objective: Objective) -> HeldOut:
        """Of statistics (C, U, W)."""
        values, without = jackknife(objective, sums)
        errors = np.array([[standard_error(one - own) for own in without] for one in without])
        return cls(shares, values - values[0], errors, sums.shape[1])

    @property
    def error(self) -> Floats:
        """Standard errors (C,) of the gains."""
        return np.asarray(self.errors[0])


def similar(
    which: str, held: HeldOut, *, least: float = 0.0, farther: float = 0.0, within: float = 1.0
) -> int:
    """The smallest, median or largest share whose gain is within an error of the best.

    least, farther: standard errors above 0 that a gain must have, and more of them times the share;
    within: standard errors below the best
    """
    good = held.gain > (least + farther * held.shares) * held.error
    gain = np.where(good, held.gain, -np.inf)
    error = held.errors[int(gain.argmax())]
    near = np.flatnonzero(good & (gain >= gain.max() - within * error)).tolist()
    places = {"smallest": 0, "median": (len(near) - 1) // 2, "largest": -1}
    return near[places[which]] if near else 0


def surely(confidence: float, held: HeldOut) -> int:
    """The largest gain of those that are above 0 by a one-sided t-test."""
    bound = student.ppf(confidence, min(held.units, 50) - 1)
    return int(np.where(held.gain > bound * held.error, held.gain, 0.0).argmax())


def bounded(errors: float, held: HeldOut) -> int:
    """The largest gain less so many standard errors."""
    return int((held.gain - errors * held.error).argmax())


def shrunk(held: HeldOut) -> int:
    """The share of the largest gain, times gain² ÷ (gain² + error²)."""
    best = int(held.gain.argmax())
    square, error = held.gain[best] ** 2, held.error[best] ** 2
    wanted = held.shares[best] * square / (square + error or 1.0)
    return int(np.abs(held.shares - wanted).argmin())


def fixed(share: float, held: HeldOut) -> int:
    """The place of this share."""
    return int(np.flatnonzero(held.shares == share)[-1])


CONSTANTS = tuple(product((0.0, 0.5, 1.0, 2.0), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)))
WHICH = ("smallest", "median", "largest")
RULES: dict[str, Callable[[HeldOut], int]] = {
    "the tuned weights": lambda held: len(held.shares) - 1,
    **{f"share {share:g}": partial(fixed, share) for share in (0.05, 0.1, 0.2, 0.3)},
    **{f"best at t {q:g}": partial(surely, q) for q in (0.75, 0.84, 0.9, 0.975)},
    **{f"best gain − {k:g} errors": partial(bounded, k) for k in (0.5, 1.0, 1.5, 2.0)},
    "shrunk": shrunk,
    **{
        f"smallest within {k:g} errors": partial(similar, "smallest", within=k)
        for k in (0.25, 0.5, 0.75, 1.25, 1.5, 2.0)
    },
    **{
        f"{which}, > {least:g} + {farther:g} · share": partial(
            similar, which, least=least, farther=farther
        )
        for which in WHICH
        for least, farther in CONSTANTS
    },
}
BEST = "best share of each test"


def cases(
    by_name: dict[str, Set],
    start: Floats,
    parts: Mapping[str, Sequence[tuple[int, ...]]] = PARTS,
    metrics: Sequence[str] = (),
) -> Iterator[Case]:
    """All tuning sets; metrics: those whose statistics stand behind BLEU's."""
    for name, other in ((LECTURES, SUBTITLES), (SUBTITLES, LECTURES)):
        (own, _), (others, _) = pool(by_name[name], *metrics), pool(by_name[other], *metrics)
        for part in parts[name]:
            inside = np.isin(own.places, range(*part))
            tests = [(f"{name} → {other}", others)]
            if not inside.all():
                tests.append((f"{name} → {name}", own.take(~inside)))
            yield own.take(inside), start, tests
    for name, half in product(("wmt23", "nmt", *LLM), (0, 1)):
        own, labels = pool(by_name[f"{name}.{half}"], *metrics)
        alone = {one.name: unit for one, unit in zip(labels, np.eye(len(labels)), strict=True)}
        systems = [unit for one, unit in alone.items() if one.startswith(PREFIX)]
        best = max(systems, key=lambda one: bleu_of(own.decode(one)))
        rest, _ = pool(by_name[f"{name}.{1 - half}"], *metrics)
        yield own, best + alone[AGREEMENT], [(name, rest)]


def measured(case: Case, seed: int, held: bool) -> tuple[HeldOut, Tests]:
    """What was held out, and of each test its domain and the difference at each share."""
    units, first, pools = case
    names, start = [str(f) for f in range(len(first))], units.decode(first)
    goal = BLEU_GOAL.held(start) if held else BLEU_GOAL
    plan = Plan(settings=MertSettings(seed=seed))
    search = PoolSearch(plan, goal, Bounds.none(len(names)), names)
    found = cross_validate(TuningLists(units), first, search, Notices())
    if found is None:
        raise click.ClickException("too few lists")
    shares = np.array([one.share for one in found.candidates])
    chosen = [replace(found, chosen=one) for one in found.candidates]
    several = [one.weights(one.tuned) for one in chosen]
    tests = [(kind, np.array([bleu_of(own.decode(one)) for one in several])) for kind, own in pools]
    own = HeldOut.of(shares, found.held_out, goal.objective)
    return own, [(domain, values - values[0]) for domain, values in tests]


Tests = list[tuple[str, Floats]]  # of each test its domain and the differences at all shares
Found = dict[str, dict[str, list[float]]]  # differences to the start by rule and domain


def judged(several: Iterable[tuple[HeldOut, Tests]]) -> Found:
    """What all rules gain."""
    found: Found = {rule: defaultdict(list) for rule in (*RULES, BEST)}
    for held, tests in several:
        for domain, gains in tests:
            for rule, choose in RULES.items():
                found[rule][domain].append(float(gains[choose(held)]))
            found[BEST][domain].append(float(gains.max()))
    return found


def print_table(found: Found) -> None:
    """A row for each rule: the mean of each domain, of all domains, and the worst test."""
    domains = [*found[BEST]]
    heads = ["rule", *domains, "mean", "worst", "< −0.1", "> 0"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for rule, own in found.items():
        every = np.concatenate([own[domain] for domain in domains])
        means = [float(np.mean(own[domain])) for domain in domains]
        cells = [*map("{:+.2f}".format, [*means, float(np.mean(means)), float(every.min())])]
        cells += [str(int((every < -0.1).sum())), f"{int((every > 0).sum())}/{len(every)}"]
        print(f"| {rule} | {' | '.join(cells)} |")
    for left in domains:
        best = max(RULES, key=lambda one: rank(found[one], left))
        there = found[best][left]
        print(f"without {left}: {best}; there {np.mean(there):+.2f}, worst {min(there):+.2f}")


def rank(own: dict[str, list[float]], left: str) -> tuple[int, float]:
    """Fewest tests below −0.1, then the largest mean of domains, all but one."""
    rest = [gains for domain, gains in own.items() if domain != left]
    below = sum(gain < -0.1 for gains in rest for gain in gains)
    return -below, float(np.mean([np.mean(gains) for gains in rest]))


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=2, show_default=True)
@click.option("--free", is_flag=True, help="Do not hold the length of the start.")
@click.option("--scored", type=click.Path(exists=True, path_type=Path))
def main(data: Path, work: Path, seeds: int, free: bool, scored: Path | None) -> None:
    """Print a table of rules."""
    by_name = sets(data, work)
    for name, top in TOP.items():
        lists = replace(by_name[name].lists, top=top)
        if scored:
            lists = replace(lists, kbest=scored / f"{name}.nbest")
        by_name[name] = replace(by_name[name], lists=lists)
    start = weights_of(data / TED / MOSES, by_name[LECTURES])
    every = product(cases(by_name, start), range(1, seeds + 1))
    print_table(judged(measured(case, seed, not free) for case, seed in every))


if __name__ == "__main__":
    main()
