"""Minimum error rate training: the weights of a pool's features with the best corpus BLEU.

Och (2003), https://aclanthology.org/P03-1021. Local optima are many. They are reached from the
given weights, from zeros and random starts (those that lead after a heat), and then from small
kicks (iterated local search), which are worth more BLEU for their time than any start. Two chains
are kicked, from the given weights' optimum and from the best start's: which of them ends higher
depends on the pool.

At almost equal BLEU weights drift towards short output. Among optima within `NEAR` of the best
BLEU, the one whose length ratio is nearest to that of the first candidates is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rerank.bleu import length_ratio
from rerank.notices import Notices
from rerank.tuning.ascent import Axes, Optimum, climb
from rerank.tuning.pool import Pool

NEAR = 0.02
_HEAT = 3  # searches of each feature in the heat that the starts run: two moves, then each once
_LEADERS = 4  # starts that go on after it; the best of all has been among them on real pools
_KICK = 0.1  # length of a kick ÷ length of the weights, both in spreads of the features


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to search, and whence. The result does not depend on the number of threads.

    kicks: number in each of the two chains
    """

    random_starts: int = 20
    kicks: int = 15
    seed: int = 1
    threads: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The optimum taken, what the given weights choose, and all optima found, in order."""

    best: Optimum
    start: Optimum
    optima: tuple[Optimum, ...] = ()


def optimise(
    pool: Pool,
    start: NDArray[np.float64],
    notices: Notices,
    *,
    names: Sequence[str],
    settings: Settings,
) -> Tuned:
    """Best weights (F,) of the features `names` for a pool; BLEU is never below that of `start`.

    (Zeros with nothing fixed are no weights: where they start, it may be.) Weights have L1 norm 1,
    as from Moses, unless fixed scores settle their scale. Features that vary in no list keep their
    share of the norm. Where BLEU says nothing, `start` comes back. About 40 line searches for each
    start and kick.
    """
    given = Optimum.at(pool, start)
    axes = Axes.of(pool)
    _report_features(axes, names, notices)
    silent = _silence(axes)
    if silent:
        notices.add(f"tuning {silent}: the weights stay as given")
        return Tuned(given, given)
    optima = _search(axes, start, settings)
    if not pool.fixed.any():
        unit = partial(_unit, start=start, varying=axes.features)
        optima = [Optimum.at(pool, unit(o.weights), o.searches) for o in optima]
        # zeros choose the first candidates, but are no weights
        optima = [o for o in optima if o.weights[axes.features].any()]
    no_weights = not (start.any() or pool.fixed.any())
    at_least = 0.0 if no_weights else given.bleu
    best = nearest_ratio(optima, float(length_ratio(pool.first)), at_least=at_least)
    return Tuned(best or given, given, tuple(optima))


def _search(axes: Axes, start: NDArray[np.float64], settings: Settings) -> list[Optimum]:
    """Local optima from the given weights, from the leading starts, from kicks, in this order."""
    rng = np.random.default_rng(settings.seed)
    starts = _starts(axes, start, settings.random_starts, rng)
    kicks = rng.standard_normal((2, settings.kicks, len(axes.features)))
    with ThreadPoolExecutor(settings.threads) as threads:
        given = threads.submit(climb, axes, start)
        begun = threads.map(partial(climb, axes, most_searches=_HEAT * len(axes.features)), starts)
        leaders = sorted(begun, key=lambda optimum: -optimum.bleu)[:_LEADERS]
        ahead = [optimum.weights for optimum in leaders]
        led = list(threads.map(partial(climb, axes, chosen_moves=0), ahead))
        ends = (given.result(), max(led, key=lambda optimum: optimum.bleu))
        from_given, from_led = threads.map(partial(_chain, axes), ends, kicks)
    return [ends[0], *led, *from_given, *from_led]


def _chain(axes: Axes, best: Optimum, kicks: NDArray[np.float64]) -> list[Optimum]:
    """Local optima after kicks (k, G), each away from the best optimum until then."""
    spreads, found = axes.spreads, []
    for kick in kicks:
        weights = best.weights.copy()
        length = np.linalg.norm(weights[axes.features] * spreads) / np.linalg.norm(kick)
        weights[axes.features] += _KICK * length * kick / spreads
        found.append(climb(axes, weights, chosen_moves=0))
        best = max(best, found[-1], key=lambda optimum: optimum.bleu)
    return found


def nearest_ratio(
    optima: Sequence[Optimum], ratio: float, *, at_least: float = 0.0
) -> Optimum | None:
    """Of the optima within `NEAR` of the best BLEU, and not below `at_least`, one by its length.

    It is the one whose length ratio is nearest to `ratio`; of optima as near that with the better
    BLEU, then the first.
    """
    best = max((optimum.bleu for optimum in optima), default=0.0)
    near = [optimum for optimum in optima if optimum.bleu >= max(best - NEAR, at_least)]
    return min(near, key=lambda o: (abs(o.ratio - ratio), -o.bleu), default=None)


def _silence(axes: Axes) -> str:
    """Why BLEU says nothing about the weights, if so."""
    if not axes.pool.statistics[:, 3].any():
        return "on lists without a 4-gram match, where BLEU is 0 for all weights"
    return "" if axes.directions else "without a feature that varies within a list"


def _report_features(axes: Axes, names: Sequence[str], notices: Notices) -> None:
    """Notices of features that cannot be tuned, or not apart from others."""
    for feature in sorted(set(range(len(names))) - set(axes.features.tolist())):
        notices.add(f"constant feature {names[feature]}: its weight stays as given")
    spreads = axes.spreads
    for g in range(len(axes.features)):
        for h in np.flatnonzero(spreads[:g] == spreads[g]):
            if np.array_equal(axes.columns[h], axes.columns[g]):
                same, this = names[axes.features[h]], names[axes.features[g]]
                notices.add(f"feature {this} equals {same}: only the sum of their weights counts")
                break


def _unit(
    weights: NDArray[np.float64], *, start: NDArray[np.float64], varying: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weights of L1 norm 1; constant features keep the share of the norm that they had at start."""
    given, found = np.abs(start).sum(), np.abs(weights[varying]).sum()
    if found == 0:
        return weights
    share = 1.0 if given == 0 else np.abs(start[varying]).sum() / given
    unit = start / given if given > 0 else start.copy()
    unit[varying] = weights[varying] * (share or 1.0) / found
    return np.asarray(unit / np.abs(unit).sum())


def _starts(
    axes: Axes, base: NDArray[np.float64], n_random: int, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Zeros, and random weights: N(0, 1) over the spread of each feature."""
    starts = [base.copy() for _ in range(1 + n_random)]
    starts[0][axes.features] = 0.0
    for weights in starts[1:]:
        weights[axes.features] = rng.standard_normal(len(axes.features)) / axes.spreads
    return starts
