"""Minimum error rate training: the weights of a pool's features with the best value of a goal.

Och (2003), https://aclanthology.org/P03-1021. There are many local optima. Coordinate ascents begin
at the start weights and at the maximum of expected BLEU. Zeros, earlier optima and random points
run a short heat, and the best four of them go on. Small random kicks of the weights follow
(iterated local search), in two chains: from the optimum of the start weights and from the best of
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
from rerank.tuning.tuners.gradient import expected_bleu

_HEAT = 3  # searches of each feature in the heat that the starts run: two moves, then each once
_LEADERS = 4  # starts that go on after it; the best of all has been among them on real pools
_KICKED = 3_000_000  # candidates of a chain's kicks, each of which goes through the whole pool
_KICK = 0.1  # length of a kick ÷ length of the weights, both in spreads of the features
_LONGEST = 0.1  # seconds of a wait for a thread
T = TypeVar("T")
R = TypeVar("R")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class PoolResult:
    """The best weights for a pool, what the start weights choose, and all optima, in order."""

    best: Optimum
    start: Optimum
    optima: tuple[Optimum, ...] = ()


Report = Callable[[Optimum], None]
"""Called with each local optimum as it is reached; with several threads in any order."""


def optimise(
    pool: Pool,
    start: Floats,
    *,
    settings: MertSettings,
    goal: SearchGoal = BLEU_GOAL,
    bounds: Bounds | None = None,
    history: Sequence[Floats] = (),
    report: Report = lambda optimum: None,
) -> PoolResult:
    """Best weights (F,) for a pool, no worse than the start weights but for rounding.

    One exception: all-zero start weights without fixed scores are no result; any weights replace
    them. The norm of the weights is that of `Axes.normalised`. The start weights are returned where
    no weights change a choice.

    start: within `bounds`; history: more weights to start from, clipped to them. About 40 line
    searches for each start and kick.
    """
    axes = Axes.of(pool)
    bounds = bounds or Bounds.none(len(start))
    before = Optimum.at(pool, start, goal)
    if axes.why_flat:
        return PoolResult(before, before)
    optima = _Search(axes, goal, bounds, settings, report).optima(start, history)
    if not pool.fixed.any():  # all-zero weights choose the first candidates; they are not a result
        optima = [optimum for optimum in optima if optimum.weights[axes.features].any()]
    optima = [
        replace(optimum, weights=axes.normalised(optimum.weights, start, bounds))
        for optimum in optima
    ]
    best = max(optima, key=_value, default=before)
    best = replace(Optimum.at(pool, best.weights, goal), searches=best.searches)
    no_start = not (start.any() or pool.fixed.any())
    better = no_start or best.value >= before.value - GAIN
    return PoolResult(best if better else before, before, tuple(optima))


def _value(optimum: Optimum) -> float:
    return optimum.value


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Ascents on one pool for one goal."""

    axes: Axes
    goal: SearchGoal
    bounds: Bounds
    settings: MertSettings
    report: Report
    stopped: Event = field(default_factory=Event)

    def optima(self, start: Floats, history: Sequence[Floats]) -> list[Optimum]:
        """Local optima, in order: the starts' and those of kicks of the weights.

        From the start weights and kicks of their optimum; from the best of the other starts, and
        last from the maximum of expected BLEU; from kicks of the best of these. All random numbers
        are drawn first, so that nothing depends on threads.
        """
        pool = self.axes.pool
        rng = np.random.default_rng(self.settings.seed)
        starts = [*history, *self._starts(start, rng)]
        kicks = rng.standard_normal((2, self.settings.kicks, len(self.axes.features)))
        kicks = kicks[:, : max(1, _KICKED // len(pool.features))]
        heat = partial(self._climb, most_searches=_HEAT * len(self.axes.features))
        go_on = partial(self._climb, strategy=in_turn)
        with ThreadPoolExecutor(self.settings.threads or 1) as threads:
            try:
                from_start = threads.submit(lambda: self._chain(self._climb(start), kicks[0]))
                smooth = threads.submit(lambda: go_on(expected_bleu(pool, start, rng=rng)))
                heated = map_in_threads(threads, heat, starts)
                heated.sort(key=_value, reverse=True)
                leaders = [optimum.weights for optimum in heated[:_LEADERS]]
                others = [*map_in_threads(threads, go_on, leaders), _result_of(smooth)]
                best = max(others, key=_value)
                return [*_result_of(from_start), *others, *self._chain(best, kicks[1])[1:]]
            except BaseException:  # a signal, after which the threads' ascents are not waited for
                self.stopped.set()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _starts(self, start: Floats, rng: np.random.Generator) -> list[Floats]:
        """Zeros, and random weights: uniform within bounds, elsewhere N(0, 1) ÷ spread."""
        features, bounds = self.axes.features, self.bounds
        starts = [start.copy() for _ in range(1 + self.settings.random_starts)]
        starts[0][features] = 0.0
        low, high = bounds.low[features], bounds.high[features]
        boxed = np.isfinite(low) & np.isfinite(high)
        for weights in starts[1:]:
            drawn = rng.standard_normal(len(features)) / self.axes.spreads
            drawn[boxed] = rng.uniform(low[boxed], high[boxed])
            weights[features] = drawn
        return starts

    def _climb(
        self, weights: Floats, strategy: Strategy = coordinates, most_searches: float = np.inf
    ) -> Optimum:
        """The local optimum from the nearest weights within bounds, or where the search stops."""
        if self.stopped.is_set():
            raise CancelledError
        start = self.bounds.clipped(weights)
        point = PoolPoint(
            self.axes, start, self.goal, bounds=self.bounds, most_searches=most_searches
        )
        optimum = strategy(point)
        self.report(optimum)
        return optimum

    def _chain(self, best: Optimum, kicks: Floats) -> list[Optimum]:
        """An optimum, and those after kicks (k, G), in spreads, each from the best one so far."""
        optima = [best]
        for kick in kicks:
            moved, varying, spreads = best.weights.copy(), self.axes.features, self.axes.spreads
            length = np.linalg.norm(moved[varying] * spreads) / np.linalg.norm(kick)
            moved[varying] += _KICK * length * kick / spreads
            optima.append(self._climb(moved, in_turn))
            best = max(best, optima[-1], key=_value)
        return optima


def _result_of(future: Future[R]) -> R:
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
        return [_result_of(future) for future in futures]
    finally:
        for future in futures:
            future.cancel()
