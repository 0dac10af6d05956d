"""Minimum error rate training: the weights of a pool's features with the best value of a goal.

Och (2003), https://aclanthology.org/P03-1021. There are many local optima. Coordinate ascents begin
at the given weights, at the maximum of expected BLEU, and at zeros, earlier optima and random
points, of which the best after a short heat go on. Small random kicks of the weights follow
(iterated local search), in two chains: from the optimum of the given weights and from the best of
the others, because which of them ends higher depends on the pool. The maximum of expected BLEU
hardly depends on where its search begins; on large pools no other start leads higher, and thanks to
it different seeds end at the same weights. Random points have led higher on no real pool that we
know, so by default there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH
from rerank.tuning.goal import BLEU_GOAL, GAIN, SearchGoal
from rerank.tuning.plan import MertSettings
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import (
    Axes,
    Bounds,
    Optimum,
    PoolPoint,
    Strategy,
    coordinates,
    in_turn,
)
from rerank.tuning.tuners.expected_bleu import expected_bleu

_HEAT = 3  # searches of each feature in the heat that the starts run: two moves, then each once
_LEADERS = 4  # starts that go on after it; the best of all has been among them on real pools
_KICKED = 3_000_000  # candidates of a chain's kicks, each of which goes through the whole pool
_KICK = 0.1  # length of a kick ÷ length of the weights, both in spreads of the features
_LONGEST = 0.1  # seconds of a wait for a thread
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class PoolResult:
    """The best weights for a pool, what the given weights choose, and all optima, in order."""

    best: Optimum
    start: Optimum
    optima: tuple[Optimum, ...] = ()


Report = Callable[[Optimum], None]
"""Called with each local optimum as it is found; with several threads in any order."""


def optimise(
    pool: Pool,
    start: NDArray[np.float64],
    *,
    settings: MertSettings,
    goal: SearchGoal = BLEU_GOAL,
    bounds: Bounds | None = None,
    history: Sequence[NDArray[np.float64]] = (),
    report: Report = lambda optimum: None,
) -> PoolResult:
    """Best weights (F,) for a pool; their value is at least `start`'s.

    One exception: an all-zero start without fixed scores is not a result; any weights replace it.

    Weights have L1 norm 1, unless fixed scores or bounds settle their scale. Features that vary in
    no list keep their share of the norm. `start` is returned where no weights change a choice.

    start: within `bounds`; history: more weights to start from, clipped to them. About 40 line
    searches for each start and kick.
    """
    axes = Axes.of(pool)
    bounds = bounds or Bounds.none(len(start))
    given = Optimum.at(pool, start, goal)
    if silence(axes):
        return PoolResult(given, given)
    optima = _Search(axes, goal, bounds, settings, report).optima(start, history)
    if not pool.fixed.any():  # all-zero weights choose the first candidates; they are not a result
        optima = [o for o in optima if o.weights[axes.features].any()]
    if not bounds.settle_scale(pool):
        unit = partial(unit_norm, start=start, varying=axes.features)
        optima = [replace(o, weights=unit(o.weights)) for o in optima]
    best = max(optima, key=lambda optimum: optimum.value, default=given)
    best = replace(Optimum.at(pool, best.weights, goal), searches=best.searches)
    no_start = not (start.any() or pool.fixed.any())
    taken = no_start or best.value >= given.value - GAIN
    return PoolResult(best if taken else given, given, tuple(optima))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Ascents on one pool for one goal."""

    axes: Axes
    goal: SearchGoal
    bounds: Bounds
    settings: MertSettings
    report: Report
    stopped: Event = field(default_factory=Event)

    def optima(
        self, start: NDArray[np.float64], history: Sequence[NDArray[np.float64]]
    ) -> list[Optimum]:
        """Local optima: from the given weights and its kicks, the best starts, the kicks of theirs.

        The last of the starts is the maximum of expected BLEU. All random numbers are drawn first,
        so that nothing depends on threads.
        """
        rng = np.random.default_rng(self.settings.seed)
        starts = [*history, *_starts(self.axes, start, self.bounds, self.settings, rng)]
        kicks = rng.standard_normal((2, self.settings.kicks, len(self.axes.features)))
        pool = self.axes.pool
        kicks = kicks[:, : max(1, _KICKED // len(pool.features))]
        heat = partial(self._climb, most_searches=_HEAT * len(self.axes.features))
        go_on = partial(self._climb, strategy=in_turn)
        with ThreadPoolExecutor(self.settings.threads or 1) as threads:
            try:
                from_given = threads.submit(lambda: self._chain(self._climb(start), kicks[0]))
                smooth = threads.submit(lambda: go_on(expected_bleu(pool, start, rng=rng)))
                heated = map_in_threads(threads, heat, starts)
                heated.sort(key=lambda optimum: -optimum.value)
                leaders = [one.weights for one in heated[:_LEADERS]]
                others = [*map_in_threads(threads, go_on, leaders), result_of(smooth)]
                best = max(others, key=lambda optimum: optimum.value)
                return [*result_of(from_given), *others, *self._chain(best, kicks[1])[1:]]
            except BaseException:  # a signal, after which the threads' ascents are not waited for
                self.stopped.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _climb(
        self,
        weights: NDArray[np.float64],
        strategy: Strategy = coordinates,
        most_searches: float = np.inf,
    ) -> Optimum:
        """The local optimum from the nearest weights within bounds."""
        if self.stopped.is_set():
            raise CancelledError
        start = self.bounds.clipped(weights)
        point = PoolPoint(
            self.axes, start, self.goal, bounds=self.bounds, most_searches=most_searches
        )
        found = strategy(point)
        self.report(found)
        return found

    def _chain(self, best: Optimum, kicks: NDArray[np.float64]) -> list[Optimum]:
        """An optimum, and those after kicks (k, G), each from the best one so far."""
        found = [best]
        for kick in kicks:
            found.append(self._climb(kicked(best.weights, self.axes.scale, kick), in_turn))
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
    """Why the statistics do not depend on the weights, if so."""
    if not axes.pool.statistics[:, 3].any() and axes.pool.statistics.shape[1] == WIDTH:
        return "on lists without a 4-gram match, where BLEU is nothing but its smoothing"
    return "" if axes.directions else "without a feature that varies within a list"


def unit_norm(
    weights: NDArray[np.float64], *, start: NDArray[np.float64], varying: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weights of L1 norm 1; constant features keep the share of the norm that they had at start."""
    given = float(np.linalg.norm(start, 1))
    found = float(np.linalg.norm(weights[varying], 1))
    if found == 0:
        return weights
    share = 1.0 if given == 0 else float(np.linalg.norm(start[varying], 1)) / given
    unit = start / given if given > 0 else start.copy()
    unit[varying] = weights[varying] * (share or 1.0) / found
    return np.asarray(unit / np.linalg.norm(unit, 1))


def _starts(
    axes: Axes,
    base: NDArray[np.float64],
    bounds: Bounds,
    settings: MertSettings,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Zeros, and random weights: uniform within bounds, elsewhere N(0, 1) ÷ spread."""
    starts = [base.copy() for _ in range(1 + settings.random_starts)]
    starts[0][axes.features] = 0.0
    low, high = bounds.low[axes.features], bounds.high[axes.features]
    boxed = np.isfinite(low) & np.isfinite(high)
    for weights in starts[1:]:
        drawn = rng.standard_normal(len(axes.features)) / axes.spreads
        drawn[boxed] = rng.uniform(low[boxed], high[boxed])
        weights[axes.features] = drawn
    return starts


def result_of(future: Future[R]) -> R:
    """The future's result, or its exception; or that of a signal's handler, a moment after it.

    Python handles signals in the main thread, between two instructions. A signal that comes as the
    main thread begins to wait for another, or that the system delivers to another, does not end
    that wait. So no wait is longer than a tenth of a second.
    """
    while not wait([future], _LONGEST).done:
        pass
    return future.result()


def map_in_threads(threads: Executor, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results of work(item), in order of the items.

    After an exception, or one of a signal's handler, no further item begins.
    """
    futures = [threads.submit(work, item) for item in items]
    try:
        return [result_of(future) for future in futures]
    finally:
        for future in futures:
            future.cancel()
