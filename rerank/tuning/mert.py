"""Minimum error rate training: the weights of a pool's features with the best value of a goal.

Och (2003), https://aclanthology.org/P03-1021. Local optima are many. They are reached from the
given weights, from the maximum of expected BLEU, from zeros, earlier weights and random starts
(those that lead after a heat), and then from small kicks (iterated local search). The maximum of
expected BLEU is much the same from wherever it is sought: on large pools no other start leads
higher, and with it different seeds end at the same weights. Two chains are kicked, from the given
weights' optimum and from the best start's: which of them ends higher depends on the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH
from rerank.notices import Notices
from rerank.tuning.ascent import Axes, Optimum, Strategy, climb
from rerank.tuning.bounds import Bounds
from rerank.tuning.criterion import BLEU_ALONE, Criterion
from rerank.tuning.expected_bleu import expected_bleu
from rerank.tuning.goals import GAIN, SearchGoal
from rerank.tuning.pool import Pool
from rerank.tuning.strategies import in_turn, strategy

Norm = Literal["l1", "l2"]
_HEAT = 3  # searches of each feature in the heat that the starts run: two moves, then each once
_LEADERS = 4  # starts that go on after it; the best of all has been among them on real pools
_KICK = 0.1  # length of a kick ÷ length of the weights, both in spreads of the features


@dataclass(frozen=True, slots=True)
class Settings:
    """What to maximise, how long to search, and whence. Results are the same for any `threads`.

    kicks: number in each of the two chains; directions: a name of `rerank.tuning.strategies`
    """

    criterion: Criterion = BLEU_ALONE
    random_starts: int = 10
    kicks: int = 15
    seed: int = 1
    threads: int = 1
    directions: str = "coordinates"
    norm: Norm = "l1"


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The optimum taken, what the given weights choose, and all optima found, in order."""

    best: Optimum
    start: Optimum
    optima: tuple[Optimum, ...] = ()


Report = Callable[[Optimum], None]
"""Is told of each local optimum when it is found; of several threads, as they come."""


def optimise(
    pool: Pool,
    start: NDArray[np.float64],
    notices: Notices,
    *,
    names: Sequence[str],
    settings: Settings,
    bounds: Bounds | None = None,
    goal: SearchGoal | None = None,
    history: Sequence[NDArray[np.float64]] = (),
    report: Report = lambda optimum: None,
) -> Tuned:
    """Best weights (F,) of the features `names` for a pool; never worth less than `start`.

    Two exceptions: a start of zeros with nothing fixed is no weights, and yields to any; where the
    goal smooths, smoothed values do not fall, each taken along its own line.

    Weights have norm 1, unless fixed scores or bounds settle their scale. Features that vary in no
    list keep their share of the norm. Where nothing tells weights apart, `start` comes back.

    goal: instead of that of the settings' criterion on this pool; history: more weights to start
    from, clipped to `bounds`. ValueError where `start` is outside them. About 40 line searches for
    each start and kick.
    """
    axes = Axes.of(pool)
    bounds = bounds or Bounds.none(len(start))
    if not bounds.hold(start):
        outside = np.flatnonzero(bounds.clipped(start) != start)
        raise ValueError(
            f"start weight {start[outside[0]]:g} of {names[outside[0]]} is not between "
            f"{bounds.low[outside[0]]:g} and {bounds.high[outside[0]]:g}"
        )
    goal = goal or settings.criterion.goal(pool.first, start, axes.scale)
    given = Optimum.at(pool, start, goal)
    report_features(axes, names, notices)
    silent = silence(axes)
    if silent:
        notices.add(f"tuning {silent}: the weights stay as given")
        return Tuned(given, given)
    search = _Search(axes, goal, bounds, strategy(settings.directions), settings, report)
    optima = search.optima(start, history)
    if not pool.fixed.any():  # zeros choose the first candidates, but are no weights
        optima = [o for o in optima if o.weights[axes.features].any()]
    if not pool.fixed.any() and bounds.free_of_scale:
        unit = partial(unit_norm, start=start, varying=axes.features, norm=settings.norm)
        optima = [replace(o, weights=unit(o.weights)) for o in optima]
    best = max(optima, key=lambda optimum: optimum.value, default=given)
    best = replace(Optimum.at(pool, best.weights, goal), searches=best.searches)
    no_weights = not (start.any() or pool.fixed.any())
    taken = no_weights or goal.smoothed or best.value >= given.value - GAIN
    return Tuned(best if taken else given, given, tuple(optima))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Climbs on one pool towards one goal."""

    axes: Axes
    goal: SearchGoal
    bounds: Bounds
    strategy: Strategy
    settings: Settings
    report: Report

    def optima(
        self, start: NDArray[np.float64], history: Sequence[NDArray[np.float64]]
    ) -> list[Optimum]:
        """Local optima from the given weights, its kicks, the leading starts, their best's kicks.

        The last of the leading starts is the optimum of expected BLEU. Every climb draws from a
        generator of its own: nothing depends on threads.
        """
        rng = np.random.default_rng(self.settings.seed)
        starts = [self.bounds.clipped(weights) for weights in history]
        starts += _starts(self.axes, start, self.bounds, self.settings, rng)
        kicks = rng.standard_normal((2, self.settings.kicks, len(self.axes.features)))
        with ThreadPoolExecutor(self.settings.threads) as threads:
            first, second = rng.spawn(2)
            from_given = threads.submit(
                lambda: self._chain(self._climb(start, self.strategy, first), kicks[0], first)
            )
            third = rng.spawn(1)[0]
            smooth = threads.submit(
                lambda: self._climb(self._smooth(start, third), self._on, third)
            )
            heat = partial(self._climb, most_searches=_HEAT * len(self.axes.features))
            begun = list(threads.map(heat, starts, repeat(self.strategy), rng.spawn(len(starts))))
            leaders = sorted(begun, key=lambda optimum: -optimum.value)[:_LEADERS]
            ends = [optimum.weights for optimum in leaders]
            led = list(threads.map(self._climb, ends, repeat(self._on), rng.spawn(len(ends))))
            led.append(smooth.result())
            best = max(led, key=lambda optimum: optimum.value)
            from_led = self._chain(best, kicks[1], second)
            return [*from_given.result(), *led, *from_led[1:]]

    def _smooth(self, start: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The best weights for expected BLEU, within bounds."""
        return self.bounds.clipped(expected_bleu(self.axes.pool, start, rng=rng))

    @property
    def _on(self) -> Strategy:
        """The strategy of a point that has left its start behind."""
        return in_turn if self.settings.directions == "coordinates" else self.strategy

    def _climb(
        self,
        weights: NDArray[np.float64],
        strategy: Strategy,
        rng: np.random.Generator,
        most_searches: float = np.inf,
    ) -> Optimum:
        found = climb(
            self.axes,
            weights,
            self.goal,
            strategy,
            rng,
            bounds=self.bounds,
            most_searches=most_searches,
        )
        self.report(found)
        return found

    def _chain(
        self, best: Optimum, kicks: NDArray[np.float64], rng: np.random.Generator
    ) -> list[Optimum]:
        """An optimum, and those after kicks (k, G), each away from the best until then."""
        found = [best]
        for kick in kicks:
            weights = kicked(best.weights, self.axes.scale, kick)
            found.append(self._climb(self.bounds.clipped(weights), self._on, rng))
            best = max(best, found[-1], key=lambda optimum: optimum.value)
        return found


def kicked(
    weights: NDArray[np.float64], scale: NDArray[np.float64], kick: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights (F,) moved a little: by a tenth of their length, in spreads `scale` (F,) of features.

    kick: a number for each feature of a spread above 0, which give the direction
    """
    moved, varying = weights.copy(), scale > 0
    length = np.linalg.norm(weights[varying] * scale[varying]) / np.linalg.norm(kick)
    moved[varying] += _KICK * length * kick / scale[varying]
    return moved


def silence(axes: Axes) -> str:
    """Why statistics do not tell weights apart, if so."""
    if not axes.pool.statistics[:, 3].any() and axes.pool.statistics.shape[1] == WIDTH:
        return "on lists without a 4-gram match, where BLEU is nothing but its smoothing"
    return "" if axes.directions else "without a feature that varies within a list"


def report_features(axes: Axes, names: Sequence[str], notices: Notices) -> None:
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


def unit_norm(
    weights: NDArray[np.float64],
    *,
    start: NDArray[np.float64],
    varying: NDArray[np.int64],
    norm: Norm = "l1",
) -> NDArray[np.float64]:
    """Weights of norm 1; constant features keep the share of the norm that they had at start."""
    order = {"l1": 1, "l2": 2}[norm]
    given = float(np.linalg.norm(start, order))
    found = float(np.linalg.norm(weights[varying], order))
    if found == 0:
        return weights
    share = 1.0 if given == 0 else float(np.linalg.norm(start[varying], order)) / given
    unit = start / given if given > 0 else start.copy()
    unit[varying] = weights[varying] * (share or 1.0) / found
    return np.asarray(unit / np.linalg.norm(unit, order))


def _starts(
    axes: Axes,
    base: NDArray[np.float64],
    bounds: Bounds,
    settings: Settings,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Zeros, and random weights: uniform in bounds, without them N(0, 1) over the spread."""
    starts = [base.copy() for _ in range(1 + settings.random_starts)]
    starts[0][axes.features] = 0.0
    low, high = bounds.low[axes.features], bounds.high[axes.features]
    boxed = np.isfinite(low) & np.isfinite(high)
    for weights in starts[1:]:
        drawn = rng.standard_normal(len(axes.features)) / axes.spreads
        drawn[boxed] = rng.uniform(low[boxed], high[boxed])
        weights[axes.features] = drawn
    return [bounds.clipped(weights) for weights in starts]
