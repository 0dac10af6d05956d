"""Cross-validation of tuned weights: which share of the way to them holds on new documents.

Tuned weights fit the tuning documents too well: on new documents, weights on the way from the start
weights to the tuned ones are often better than either end. PRO goes a fixed share of the way in
each round (Hopkins and May 2011, https://aclanthology.org/D11-1125, section 5); here
cross-validation chooses the share (`rerank.tuning.selection`). Each fold is held out once, and
weights are tuned on the others. Their mean takes the place of a tuning of the whole set: a longer
search finds better local optima of the tuning documents, not of new ones, and the mean of several
tunings is steadier than each of them (Clark, Dyer, Lavie and Smith 2011,
https://aclanthology.org/P11-2031).

Features that begin at 0, such as those of a scorer that is new beside a decoder's, are tuned alone
first: one or two weights fit what they are tuned on no better than other text. The way begins
there. Where that gains nothing on held-out text, the way on which they keep 0 is tried, too.

Where features depend on context, held-out documents are searched as a whole with the weights of
their fold and share, and folds are tuned in rounds: what a pool predicts in the context of other
weights' choices is not what these weights decode. Rounds begin twice, after the choices of the
start weights, which may know nothing of the context, and after the best candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.lists import TuningLists
from rerank.tuning.objective import Objective, Sums, free_length
from rerank.tuning.plan import NONE
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch, SearchAlone
from rerank.tuning.rounds import DecodedWeights, conditional, tune_in_rounds
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
from rerank.tuning.tuners.mert import map_in_threads, silence

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
DECODED_SHARES = (0.2, 0.5, 1.0)  # where a search asks scorers for scores after other histories
FOLDS, ROUNDS = 5, 2  # units are held out once in each round of folds
FOLD_PATIENCE = 1  # rounds of tuning in a row without a gain, after which a fold is tuned
FEWEST = 4  # documents; with fewer, blocks of lines are held out
BLOCKS = 10
Floats: TypeAlias = NDArray[np.float64]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """The way from where it begins to tuned weights (F,), in each fold.

    starts: the start weights (F,) of each fold; new: whether features that begin at 0 have others
    """

    starts: Sequence[Floats]
    begins: Sequence[Anchor]
    ends: Sequence[Floats]
    new: bool = False

    def at(self, share: float) -> list[Floats]:
        """The weights (F,) of each fold at a share of the way."""
        several = zip(self.begins, self.ends, strict=True)
        return [begin.towards(end, share) for begin, end in several]

    def mean(self, anchor: Anchor) -> tuple[Anchor, Floats]:
        """Where the way of the whole pool begins, `anchor` without new features, and its end."""
        begin = anchor.mean([own.weights for own in self.begins]) if self.new else anchor.weights
        return replace(anchor, weights=begin), anchor.mean(self.ends)


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """Units of lists that are held out in turn, and the search for weights on the others.

    parts: places of the units of each fold; threads: folds that are searched at a time
    """

    lists: TuningLists
    parts: Sequence[NDArray[np.int64]]
    start: Floats
    start_name: str
    search: PoolSearch
    threads: int

    def ways(self, new: NDArray[np.int64], objective: Objective) -> list[Way]:
        """The ways that are compared, with and without weights of the features `new`."""
        if not 0 < 2 * len(new) <= len(self.start):
            return [self.way()]
        way = self.way(new)
        sums = self.held_out([*zip(way.starts, way.at(0.0), strict=True)])
        gains = compared([(0.0, False), (0.0, True)], sums, objective)[0][1].difference > 0
        return [way] if gains else [replace(self, lists=self.lists.without(new)).way(), way]

    def way(self, new: NDArray[np.int64] | None = None) -> Way:
        """The way from the start weights, or from these with the features `new` tuned alone."""
        folds = self._each(lambda part: self._tuned(part, new), self.parts)
        starts, begins, ends = zip(*folds, strict=True)
        return Way([start.weights for start in starts], begins, ends, new is not None)

    def _tuned(
        self, part: NDArray[np.int64], new: NDArray[np.int64] | None
    ) -> tuple[Anchor, Anchor, Floats]:
        """Start weights on the units that are not held out, where the way begins, and its end."""
        rest = self.lists.part(~np.isin(self.lists.pool.places, part))
        start = begin = Anchor.of(rest, self.start, self.search, self.start_name)
        path = rest.choose(begin.weights)
        decoded = DecodedWeights(self.start, rest.sums(path), path)
        search = replace(self.search, goal=self.search.goal.at(decoded.statistics))
        paths = rest.beginnings(path)
        if new is not None:
            alone = self._in_rounds(rest, search.alone(self.start, new), decoded, paths)
            begin, paths = replace(begin, weights=alone.weights), [alone.path]
        return start, begin, self._in_rounds(rest, search, decoded, paths).weights

    def _in_rounds(
        self,
        lists: TuningLists,
        search: PoolSearch | SearchAlone,
        start: DecodedWeights,
        paths: Sequence[object],
    ) -> DecodedWeights:
        """The best weights of rounds that begin at the pools after paths; one climb a later round.

        A search from many points takes most of the time, and leads where the first one led.
        """

        def optimise(pool: Pool, weights: Floats, history: Sequence[Floats]) -> Optimum:
            return search.climb(pool, weights) if history else search.best(pool, weights, Notices())

        def value(found: DecodedWeights) -> float:
            return search.goal.value(found.statistics, found.weights)

        return max(
            (
                tune_in_rounds(
                    conditional(lists, replace(start, path=path), optimise),
                    FOLD_PATIENCE,
                    fixed=search.settled(lists.pool),
                    value=search.goal.value,
                ).best.result
                for path in paths
            ),
            key=value,
        )

    def held_out(self, several: Sequence[Sequence[Floats]]) -> Sums:
        """Statistics (C, U, W) of all units, each decoded by the C weights (F,) of its fold."""

        def decode(fold: int) -> list[Sums]:
            lists = self.lists.part(np.isin(self.lists.pool.places, self.parts[fold]))
            return [lists.decode(weights) for weights in several[fold]]

        found = self._each(decode, range(len(self.parts)))
        shape = len(several[0]), self.lists.pool.n_documents, found[0][0].shape[1]
        sums = np.zeros(shape, found[0][0].dtype)
        for part, own in zip(self.parts, found, strict=True):
            sums[:, part] += own
        return sums

    def _each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Results of work(item); where documents are searched, one after the other."""
        if len(self.lists.contextual):
            return [work(item) for item in items]
        with ThreadPoolExecutor(self.threads) as threads:
            return map_in_threads(threads, work, items)


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
    start_name: what the start weights are, for people. Results do not depend on the number of
    threads. O(n F) memory for each thread, and O(C G U W) time for C candidates and G ≤ 50 groups
    of the jackknife.
    """
    settings, pool = search.plan.settings, lists.pool
    if search.plan.select == NONE or silence(Axes.of(pool)):
        return None
    unit = DOCUMENTS
    if pool.documents is None or pool.n_documents < FEWEST:
        lists, unit = lists.by_units(_blocks(pool)), BLOCKS_OF_LINES
    units = lists.pool
    n_units = units.n_documents
    if n_units < FEWEST:
        notices.add("too-few-lists")
        return None
    rng, n_folds = np.random.default_rng(settings.seed), min(FOLDS, n_units)
    # with as few units as folds, others would hold out the same units again
    rounds = ROUNDS if n_units > FOLDS and lists.at_hand else 1
    permuted = [rng.permutation(n_units) for _ in range(rounds)]
    parts = [np.sort(own[fold::n_folds]) for own in permuted for fold in range(n_folds)]
    anchor, objective = Anchor.of(lists, start, search, start_name), search.goal.objective
    threads = settings.threads or 1
    quick = search.quick(threads if len(lists.contextual) else 1)
    folds = Folds(lists, parts, start, start_name, quick, threads)
    first = rounds * units.sums(np.where(np.diff(units.offsets) > 0, units.offsets[:-1], -1))
    new = np.flatnonzero((start == 0) & (anchor.spreads > 0))
    ways = folds.ways(new, objective)
    tried = SHARES if lists.at_hand else DECODED_SHARES
    points = [(share, way) for share in (0.0, *tried) for way in ways if share or way.new]
    several = [ways[0].starts, *(way.at(share) for share, way in points)]
    sums = folds.held_out([*zip(*several, strict=True)])
    shares = [(0.0, False), *((share, way.new) for share, way in points)]
    candidates, chosen = compared(shares, sums, objective)
    free = free_length(objective)
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
        of_folds=tuple(anchor.mean([weights]) for weights in several[chosen]),
        unit=unit,
        n_folds=n_folds,
        length=Length.of(lists.after(lists.choose(anchor.weights)), anchor.weights, objective),
    )
    for line in selection.table():
        announce(line)
    return selection


def _blocks(pool: Pool) -> NDArray[np.int64]:
    """Block of each list (S,), of lines in the order of the documents."""
    n_lists = len(pool.offsets) - 1
    blocks = np.zeros(n_lists, dtype=np.int64)
    order = np.arange(n_lists)
    if pool.documents is not None:
        order = np.argsort(pool.documents, kind="stable")
    filled = order[np.diff(pool.offsets)[order] > 0]
    number = min(BLOCKS, len(filled))
    blocks[filled] = np.arange(len(filled)) * number // max(len(filled), 1)
    return blocks
