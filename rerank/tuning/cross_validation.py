"""Cross-validation of tuned weights: which share of the way to them holds on new documents.

Tuned weights fit the tuning documents too well: on new documents, weights on the way from the start
weights to the tuned ones are often better than either end. PRO goes a fixed share of the way in
each round (Hopkins and May 2011, https://aclanthology.org/D11-1125, section 5); here
cross-validation chooses the share (`rerank.tuning.selection`). Each fold is held out once, and
weights are tuned on the others. Their mean takes the place of a tuning of the whole set: a longer
search reaches better local optima of the tuning documents, not of new ones, and the mean of several
tunings is steadier than each of them (Clark, Dyer, Lavie and Smith 2011,
https://aclanthology.org/P11-2031).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.objective import Objective, Sums, free_length
from rerank.tuning.plan import NONE
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.rounds import MOST_ROUNDS, DecodedWeights, TuningLists, tune_in_rounds
from rerank.tuning.selection import (
    BLOCKS_OF_LINES,
    DOCUMENTS,
    Anchor,
    Length,
    Selection,
    beside,
    compared,
    nested,
)
from rerank.tuning.tuners.ascent import Axes, Optimum
from rerank.tuning.tuners.mert import map_in_threads

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
DECODED_SHARES = (0.2, 0.5, 1.0)  # where a search asks scorers for scores after other histories
FOLDS, ROUNDS = 5, 2  # units are held out once in each round of folds
FOLD_PATIENCE = 1  # rounds of tuning in a row without a gain, after which a fold is tuned
ASKED_ROUNDS = 1  # of a fold, where decoding asks scorers for scores
FEWEST = 4  # documents; with fewer, blocks of lines are held out
BLOCKS = 10
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """The way from where it begins to tuned weights (F,), in each fold.

    new: whether features that begin at 0 were tuned alone before
    """

    starts: Sequence[Floats]
    begins: Sequence[Anchor]
    ends: Sequence[Floats]
    new: bool

    def at(self, share: float) -> list[Floats]:
        """The weights (F,) of each fold at a share of the way."""
        return [
            begin.towards(end, share) for begin, end in zip(self.begins, self.ends, strict=True)
        ]

    def mean(self, anchor: Anchor) -> tuple[Anchor, Floats]:
        """Where the way of the whole pool begins, `anchor` without new features, and its end."""
        if self.new:
            weights = anchor.mean([begin.weights for begin in self.begins])
            return replace(anchor, weights=weights), anchor.mean(self.ends)
        return anchor, anchor.mean(self.ends)


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """Units of lists that are held out in turn, and the search for weights on the others.

    Features that begin at 0, such as those of a scorer that is new beside a decoder's, are tuned
    alone first: one or two weights fit what they are tuned on no better than other text. The way
    begins there. Where that gains nothing on held-out text, the way on which they keep 0 is tried,
    too.

    Where features depend on context, held-out documents are searched as a whole with the weights of
    their fold and share, and folds are tuned in rounds: what a pool predicts in the context of
    other weights' choices is not what these weights decode. Rounds begin twice, after the choices
    of the start weights, which may know nothing of the context, and after the best candidates.
    Where a search asks scorers for scores, which takes nearly all of the time, what a fold is tuned
    on is searched with a narrow beam, and what is held out as it is to be decoded.

    parts: places of the units of each fold; threads: folds that are searched at a time
    """

    lists: TuningLists
    parts: Sequence[Indices]
    start: Floats
    search: PoolSearch
    threads: int

    def ways(self, new: Indices, objective: Objective) -> list[Way]:
        """The ways that are compared, with and without weights of the features `new`."""
        if not 0 < 2 * len(new) <= len(self.start):
            return [self.way()]
        way = self.way(new)
        sums = self.held_out([*zip(way.starts, way.at(0.0), strict=True)])
        gains = compared([(0.0, False), (0.0, True)], sums, objective)[0][1].difference > 0
        return [way] if gains else [replace(self, lists=self.lists.without(new)).way(), way]

    def way(self, new: Indices | None = None) -> Way:
        """The way from the start weights, or from these with the features `new` tuned alone."""
        folds = self._each(lambda part: self._tuned(part, new), self.parts)
        starts, begins, ends = zip(*folds, strict=True)
        return Way([start.weights for start in starts], begins, ends, new is not None)

    def _tuned(self, part: Indices, new: Indices | None) -> tuple[Anchor, Anchor, Floats]:
        """Start weights on the units that are not held out, where the way begins, and its end."""
        lists = self.lists.part(~np.isin(self.lists.pool.places, part)).narrowed()
        start = begin = Anchor.of(lists, self.start, self.search)
        path = lists.choose(start.weights)
        decoded = DecodedWeights(self.start, lists.sums(path), path)
        search = replace(self.search, goal=self.search.goal.at(decoded.statistics))
        paths = lists.beginnings(path)
        if new is not None:
            alone = _in_rounds(lists, search, decoded, paths, new)
            begin, paths = replace(begin, weights=alone.weights), [alone.path]
            if not lists.at_hand:  # scorers are asked where the end of the way is held out
                return start, begin, search.best(lists.after(alone.path), self.start).weights
        return start, begin, _in_rounds(lists, search, decoded, paths).weights

    def held_out(self, weights: Sequence[Sequence[Floats]]) -> Sums:
        """Statistics (C, U, W) of all units, each decoded by the C weights (F,) of its fold."""

        def decode(fold: int) -> list[Sums]:
            lists = self.lists.part(np.isin(self.lists.pool.places, self.parts[fold]))
            return [lists.decode(candidate) for candidate in weights[fold]]

        decoded = self._each(decode, range(len(self.parts)))
        shape = len(weights[0]), self.lists.pool.n_documents, decoded[0][0].shape[1]
        sums = np.zeros(shape, decoded[0][0].dtype)
        for part, statistics in zip(self.parts, decoded, strict=True):
            sums[:, part] += statistics
        return sums

    def _each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Results of work(item); where documents are searched, one after the other."""
        if len(self.lists.contextual):
            return [work(item) for item in items]
        with ThreadPoolExecutor(self.threads) as threads:
            return map_in_threads(threads, work, items)


def _in_rounds(
    lists: TuningLists,
    search: PoolSearch,
    start: DecodedWeights,
    paths: Sequence[object],
    new: Indices | None = None,
) -> DecodedWeights:
    """The best weights of rounds that begin at the pools after paths.

    new: features that are tuned alone, beside the scores of the start weights, which are fixed.
    A later round is one climb: a search from many points leads where the first one led. Where
    decoding asks scorers for scores there is one round, for it takes nearly all of the time.
    """
    searched = search if new is None else search.of_features(new)

    def optimise(pool: Pool, weights: Floats, history: Sequence[Floats]) -> Optimum:
        reach = searched.climb if history else searched.best
        if new is None:
            return reach(pool, weights)
        fixed = pool.scores(start.weights)
        optimum = reach(replace(pool, features=pool.features[:, new], fixed=fixed), weights[new])
        beside = start.weights.copy()
        beside[new] = optimum.weights
        return replace(optimum, weights=beside)

    rounds = [
        tune_in_rounds(
            lists,
            replace(start, path=path),
            optimise,
            FOLD_PATIENCE,
            settled=new is not None or bool(lists.pool.fixed.any()),
            value=searched.goal.value,
            most=MOST_ROUNDS if lists.at_hand else ASKED_ROUNDS,
        )[0]
        for path in paths
    ]
    return max(rounds, key=lambda best: best.value).result


def cross_validate(
    lists: TuningLists,
    start: Floats,
    search: PoolSearch,
    notices: Notices,
    announce: Callable[[str], None] = lambda line: None,
    *,
    start_name: str = "start weights",
) -> Selection | None:
    """The candidate that is chosen by cross-validation from weights `start` (F,), if the plan asks.

    None where it does not, where BLEU does not depend on the weights and, with a notice, where the
    lists are too few for folds. Candidates are the start weights, these with new features tuned
    alone where there are any, and weights at `SHARES` of the way from there to the tuned ones.
    O(n F) memory for each thread, and O(C G U W) time for C candidates and G ≤ 50 groups of the
    jackknife.
    """
    settings, pool = search.plan.settings, lists.pool
    if search.plan.select == NONE or Axes.of(pool).why_flat:
        return None
    unit = DOCUMENTS
    if pool.documents is None or pool.n_documents < FEWEST:
        lists = replace(lists, pool=replace(pool, documents=_blocks(pool)))
        unit = BLOCKS_OF_LINES
    units = lists.pool
    n_units = units.n_documents
    if n_units < FEWEST:
        notices.add("too-few-lists")
        return None
    rng, n_folds = np.random.default_rng(settings.seed), min(FOLDS, n_units)
    # with as few units as folds, others would hold out the same units again
    rounds = ROUNDS if n_units > FOLDS and lists.at_hand else 1
    orders = [rng.permutation(n_units) for _ in range(rounds)]
    parts = [np.sort(order[fold::n_folds]) for order in orders for fold in range(n_folds)]
    anchor, objective = Anchor.of(lists, start, search, start_name), search.goal.objective
    threads = settings.threads or 1
    quick = search.quick(threads if len(lists.contextual) else 1)
    folds = Folds(lists, parts, start, quick, threads)
    ways = folds.ways(np.flatnonzero((start == 0) & (anchor.spreads > 0)), objective)
    tried = SHARES if lists.at_hand else DECODED_SHARES
    points = [(share, way) for share in (0.0, *tried) for way in ways if share or way.new]
    weights = [ways[0].starts, *(way.at(share) for share, way in points)]
    sums = folds.held_out([*zip(*weights, strict=True)])
    shares = [(0.0, False), *((share, way.new) for share, way in points)]
    candidates, chosen = compared(shares, sums, objective)
    first, free = rounds * units.first, free_length(objective)
    held = nested(shares, sums, objective) if chosen else sums[0]
    selection = Selection(
        candidates,
        candidates[chosen],
        sums,
        first=beside(first, first, free),
        choice=beside(sums[0], held, objective, shares[chosen]),
        statistics=held,
        beside_first=beside(first, held, free, shares[chosen]),
        objective=free.name,
        maximised=objective.name,
        anchor=anchor,
        ways={way.new: way.mean(anchor) for way in ways},
        of_folds=tuple(anchor.mean([fold]) for fold in weights[chosen]),
        unit=unit,
        n_folds=n_folds,
        length=Length.of(lists.after(lists.choose(anchor.weights)), anchor.weights, objective),
    )
    for line in selection.table():
        announce(line)
    return selection


def _blocks(pool: Pool) -> Indices:
    """Block of each list (S,), of lines in the order of the documents."""
    n_lists = len(pool.offsets) - 1
    blocks, order = np.zeros(n_lists, dtype=np.int64), np.arange(n_lists)
    if pool.documents is not None:
        order = np.argsort(pool.documents, kind="stable")
    filled = order[np.diff(pool.offsets)[order] > 0]
    number = min(BLOCKS, len(filled))
    blocks[filled] = np.arange(len(filled)) * number // max(len(filled), 1)
    return blocks
