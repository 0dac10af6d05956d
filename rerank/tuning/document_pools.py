"""Pools of documents: lists of whole paths, which grow with every decoding.

A pool of paths knows the decoder's choice only near weights that were decoded. The n best paths at
one point differ from each other in a sentence or two, so that a tuner is soon where the pool is
wrong: it predicts a gain and loses several BLEU. Two things mend that. Each round decodes at
weights all around the best ones known, nearer and nearer to them, whose paths are what the decoder
finds there; and of the way to the optimum that the pool then predicts, no more is taken than
decoding confirms.

Each decoding tells all there is to know at its point, so this is a cutting-plane method (Kelley
1960, https://doi.org/10.1137/0108053) for the scores of documents, and a backtracking line search
(Armijo 1966, https://doi.org/10.2140/pjm.1966.16.1) for their BLEU. It works at any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.path_pool import PathPool, Paths
from rerank.tuning.rounds import Find, Step, Steps, Value, bleu

NEIGHBOURS = 20  # points decoded around the best weights in every round
RADIUS = 0.1  # their distance ÷ length of the weights, both in spreads of the features, at first
SHRINK = 0.5**0.5  # of that distance, after a round without gain
WIDEST = 2.0  # to which it is doubled where all paths around are known
SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of the way to the optimum, while they do not gain

Decode = Callable[[NDArray[np.float64]], Sequence[Paths]]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPools:
    """A pool of paths that grows from round to round.

    first: the pool to begin with; decode: paths of each document that weights (F,) choose, best
    first; spreads: (F,) of the features, 0 for those that do not vary; fixed_spread: of the part
    that is not tuned; value: what is maximised. A round takes at most 25 decodings and one search
    for weights.
    """

    first: PathPool
    decode: Decode
    find: Find
    spreads: NDArray[np.float64]
    fixed_spread: float
    seed: int
    value: Value = bleu
    patience: int = 5

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """Rounds until one adds no path to the pool; each tells the best point that it decoded.

        Where it adds none and gains nothing, points farther away are tried before the end.
        """
        rng = np.random.default_rng([self.seed, 3])  # a stream of its own, not that of `find`
        pool, best = self._decoded(self.first, start)
        yield best
        radius = RADIUS
        while True:
            known, before, tried = len(pool), self.value(best), list[Step]()
            for weights in self._around(best.weights, radius, rng):
                pool, step = self._decoded(pool, weights)
                tried.append(step)
            best = max([best, *tried], key=self.value)
            found = self.find(pool.pool(), best.weights)
            there = None
            for weights in self._between(best.weights, found.weights):
                pool, step = self._decoded(pool, weights)
                there = step.statistics if there is None else there
                tried.append(step)
                if self.value(step) > self.value(best):
                    break
            last = max(tried, key=self.value)
            best = max([best, last], key=self.value)
            new, gained = len(pool) - known, self.value(best) > before
            if new or gained:
                yield Step(last.weights, last.statistics, found, there, new)
                radius *= 1.0 if gained else SHRINK
            elif radius < WIDEST:
                radius *= 2
            else:
                return "no new paths"

    def _decoded(self, pool: PathPool, weights: NDArray[np.float64]) -> tuple[PathPool, Step]:
        """The pool with the paths that these weights choose, and the first of them as a step."""
        found = self.decode(weights)
        return pool.joined(found), Step(weights, pool.sums(found))

    def _around(
        self, weights: NDArray[np.float64], radius: float, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float64]]:
        """Random points on a sphere around weights (F,), in spreads; around zeros, any points."""
        weights, vary = self._unit(weights), self.spreads > 0
        length = float(np.hypot(np.linalg.norm(weights * self.spreads), self.fixed_spread))
        distance = radius * length if length > 0 else 1.0
        for way in rng.standard_normal((NEIGHBOURS, len(weights))):
            away = np.divide(way, self.spreads, out=np.zeros_like(way), where=vary)
            away *= distance / max(float(np.linalg.norm(way[vary])), np.finfo(float).tiny)
            yield self._unit(weights + away)

    def _between(
        self, here: NDArray[np.float64], there: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Points on the way from here to there, from its end."""
        here, there = self._unit(here), self._unit(there)
        for share in SHARES:
            yield self._unit((1 - share) * here + share * there)

    def _unit(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of L1 norm 1, unless they are zeros or fixed scores settle their scale."""
        norm = np.abs(weights).sum()
        return weights if norm == 0 or self.fixed_spread > 0 else weights / norm
