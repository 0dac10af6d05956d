"""Rules that choose a share, compared on documents and domains that no weights were tuned on.

    python recipes/new-documents/rules.py --data DATA --work WORK [--seeds 3] [--scored FOLDER]

Weights are tuned on sets of five domains and on parts of them, with and without the length of the
start held. Each rule then chooses a share by what was held out, and the table has the difference to
the start weights on the tests: the mean of each domain, the mean of all domains, the worst test,
and how many are below −0.1 and above 0. The last lines choose the constants of the rule on all
domains but one. FOLDER: lists NAME.nbest with more features, in place of those of DATA.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from run import MOSES, TED, Set, pool, sets, weights_of
from scipy.stats import t as student
from systems import LLM

from rerank.commands.systems import PREFIX
from rerank.notices import Notices
from rerank.scorers.agreement import AGREEMENT
from rerank.tuning.goal import BLEU_GOAL
from rerank.tuning.objective import Objective, bleu_of
from rerank.tuning.plan import MertSettings, Plan
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.selection import beside, cross_validate
from rerank.tuning.tuners.ascent import Bounds

Floats = NDArray[np.float64]
LECTURES, SUBTITLES = ("dev2010", "tst2010"), ("tune", "test3ref")

Case = tuple[Pool, Floats, list[tuple[str, Pool]]]  # start weights; tests with their domains


class HeldOut(NamedTuple):
    """Held-out statistics (C, U, W) at all shares (C,), and the differences (C,) to the start."""

    shares: Floats
    sums: NDArray[np.int64]
    objective: Objective
    gain: Floats
    error: Floats


def evidence(least: float, farther: float, held: HeldOut) -> int:
    """The largest gain within an error of the best; more errors above 0, the farther away."""
    return similar("largest", held, (least + farther * held.shares) * held.error)


def similar(which: str, held: HeldOut, above: Floats | float = 0.0) -> int:
    """The smallest, median or largest share of which the gain is within an error of the best."""
    sums, good = held.sums, np.where(held.gain > above, held.gain, -np.inf)
    best = int(good.argmax())
    error = [beside(sums[best], own, held.objective).difference_error for own in sums]
    near = np.flatnonzero((held.gain > above) & (good >= good[best] - error)).tolist()
    places = {"smallest": 0, "median": (len(near) - 1) // 2, "largest": -1}
    return near[places[which]] if near else 0


def surely(confidence: float, held: HeldOut) -> int:
    """The largest gain of those that are above 0 by a one-sided t-test."""
    bound = student.ppf(confidence, min(held.sums.shape[1], 50) - 1)
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


CONSTANTS = tuple(product((0.0, 0.5, 1.0), (2.0, 3.0, 4.0, 5.0)))
LINEAR = "{:g} + {:g} · share errors"
RULES: dict[str, Callable[[HeldOut], int]] = {
    "the tuned weights": lambda held: len(held.shares) - 1,
    **{f"share {share:g}": partial(fixed, share) for share in (0.1, 0.2, 0.3)},
    "median within an error (before)": partial(similar, "median"),
    "smallest within an error": partial(similar, "smallest"),
    **{f"best at t {q:g}": partial(surely, q) for q in (0.75, 0.84, 0.9, 0.975)},
    **{f"best gain − {k:g} errors": partial(bounded, k) for k in (0.5, 1.0, 1.5, 2.0)},
    "shrunk": shrunk,
    **{LINEAR.format(*one): partial(evidence, *one) for one in CONSTANTS},
}


def cases(by_name: dict[str, Set], start: Floats) -> Iterator[Case]:
    """All tuning sets."""
    found = {name: pool(by_name[name])[0] for name in (*LECTURES, *SUBTITLES)}
    kinds = dict.fromkeys(LECTURES, "lectures") | dict.fromkeys(SUBTITLES, "subtitles")
    for name, ends in (("dev2010", (4, 8)), ("tst2010", (5, 11)), ("tune", (4, 8, 12))):
        kind = kinds[name]
        tests = [(f"{kind} → {kinds[one]}", own) for one, own in found.items() if one != name]
        yield (found[name], start, tests)
        for first, end in pairwise((0, *ends)):
            own = (found[name].places >= first) & (found[name].places < end)
            more = [(f"{kind} → {kind}", found[name].take(~own)), *tests]
            yield (found[name].take(own), start, more)
    for name, half in product(("wmt23", "nmt", *LLM), (0, 1)):
        own, labels = pool(by_name[f"{name}.{half}"])
        alone = {one.name: unit for one, unit in zip(labels, np.eye(len(labels)), strict=True)}
        systems = [unit for one, unit in alone.items() if one.startswith(PREFIX)]
        best = max(systems, key=lambda one: bleu_of(own.decode(one)))
        other, _ = pool(by_name[f"{name}.{1 - half}"])
        yield (own, best + alone[AGREEMENT], [(name, other)])


def measured(case: Case, seed: int, held: bool) -> tuple[HeldOut, list[tuple[str, Floats]]]:
    """What was held out, and of each test its domain and the difference at each share."""
    units, first, pools = case
    names, start = [str(f) for f in range(len(first))], units.decode(first)
    goal = BLEU_GOAL.held(start) if held else BLEU_GOAL
    plan = Plan(settings=MertSettings(seed=seed))
    search = PoolSearch(plan, goal, Bounds.none(len(names)), names)
    found = cross_validate(units, first, search, Notices())
    if found is None:
        raise click.ClickException("too few lists")
    sums, shares = found.held_out, np.array([one.share for one in found.candidates])
    several = [replace(found, chosen=one).weights(found.tuned) for one in found.candidates]
    tests = [(kind, np.array([bleu_of(own.decode(one)) for one in several])) for kind, own in pools]
    found_gains = [(one.difference, one.difference_error) for one in found.candidates]
    judged = HeldOut(shares, sums, goal.objective, *np.array(found_gains).T)
    return judged, [(domain, values - values[0]) for domain, values in tests]


Found = dict[str, dict[str, list[float]]]  # differences to the start by rule and domain


def print_table(found: Found, what: str) -> None:
    """A row for each rule: the mean of each domain, of all domains, and the worst test."""
    domains = [*found["shrunk"]]
    heads = [what, *domains, "mean", "worst", "< −0.1", "> 0"]
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for rule, own in found.items():
        every = np.concatenate([own[domain] for domain in domains])
        means = [float(np.mean(own[domain])) for domain in domains]
        cells = [*map("{:+.2f}".format, [*means, float(np.mean(means)), float(every.min())])]
        cells += [str(int((every < -0.1).sum())), f"{int((every > 0).sum())}/{len(every)}"]
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)


def rank(own: dict[str, list[float]], left: str) -> tuple[int, float]:
    """Fewest tests below −0.1, then the largest mean of domains, all but one."""
    rest = [gains for domain, gains in own.items() if domain != left]
    below = sum(gain < -0.1 for gains in rest for gain in gains)
    return -below, float(np.mean([np.mean(gains) for gains in rest]))


@click.command()
@click.option("--data", type=click.Path(path_type=Path), required=True)
@click.option("--work", type=click.Path(path_type=Path), required=True)
@click.option("--seeds", default=3, show_default=True)
@click.option("--top", default=20, show_default=True, help="Candidates of a list.")
@click.option("--scored", type=click.Path(exists=True, path_type=Path))
def main(data: Path, work: Path, seeds: int, top: int, scored: Path | None) -> None:
    """Print tables of rules for tuning with and without the length held."""
    by_name = sets(data, work)
    for name in (*LECTURES, *SUBTITLES):
        lists = replace(by_name[name].lists, top=top)
        if scored:
            lists = replace(lists, kbest=scored / f"{name}.nbest")
        by_name[name] = replace(by_name[name], lists=lists)
    start = weights_of(data / TED / MOSES, by_name["dev2010"])
    for held in (False, True):
        found: Found = {rule: defaultdict(list) for rule in RULES}
        for case, seed in product(cases(by_name, start), range(1, seeds + 1)):
            judged, tests = measured(case, seed, held)
            for (rule, choose), (domain, gains) in product(RULES.items(), tests):
                found[rule][domain].append(float(gains[choose(judged)]))
        print_table(found, f"length {'held' if held else 'free'}")
        for left in found["shrunk"]:
            rules = [LINEAR.format(*one) for one in CONSTANTS]
            best = max(rules, key=lambda one: rank(found[one], left))
            own = found[best][left]
            print(f"without {left}: {best}; there {np.mean(own):+.2f}, worst {min(own):+.2f}")


if __name__ == "__main__":
    main()
