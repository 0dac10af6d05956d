"""The plan of a tuning run: which weights may move, by which tuner, on which kind of pools.

A kind of pool is a line of `POOLS` and a function here that makes `rerank.tuning.rounds.Pools` of
a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rerank.bleu import Statistics
from rerank.errors import UsageError
from rerank.features import Space
from rerank.kbest import column_names
from rerank.notices import Notices
from rerank.pipeline.lists import Opened
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning_set import Choices, TuningSet, Wanted
from rerank.tuning.ascent import Optimum
from rerank.tuning.document_pools import DocumentPools
from rerank.tuning.envelope import Direction
from rerank.tuning.mert import Settings, optimise
from rerank.tuning.path_pool import PathPool, Paths
from rerank.tuning.pool import Pool
from rerank.tuning.rounds import Find, Pools
from rerank.tuning.sentence_pools import CompletePool, ConditionalPools

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """How weights are tuned.

    pools: a name of `POOLS`; n_best: paths of each document that a decoding adds to pools of
    documents; settings: of minimum error rate training.
    """

    pools: str = "auto"
    n_best: int = 1
    settings: Settings = field(default_factory=Settings)

    def check(self) -> None:
        """UsageError for a kind of pools that is none, and for paths where pools hold none."""
        if self.pools not in POOLS:
            kinds = ", ".join(POOLS)
            raise UsageError(f"--pools {self.pools}: no such kind of pools; there are {kinds}")
        if self.n_best > 1 and self.pools != "documents":
            raise UsageError(
                f"--n-best {self.n_best}: only pools of documents hold paths; add --pools "
                "documents, or leave it out"
            )


USUAL = Plan()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A tuning set, how it is searched, which weights may move, and whence, and how.

    Of F columns the weights of G are tuned.
    """

    opened: Opened
    corpus: TuningSet
    space: Space
    search: Search
    wanted: Wanted
    plan: Plan
    notices: Notices

    @property
    def tuned(self) -> NDArray[np.int64]:
        """Columns (G,) of the weights that may move."""
        return self.wanted.columns(self.space)

    @property
    def start(self) -> Floats:
        """All weights (F,) to start from."""
        return self.wanted.start(self.space)

    @property
    def names(self) -> list[str]:
        """Names of the tuned columns."""
        names = column_names(self.space.labels)
        return [names[column] for column in self.tuned]

    @property
    def contextual(self) -> bool:
        """Whether a feature depends on earlier choices."""
        return any(problem.order != 0 for problem in self.corpus.documents[0].problems)

    @property
    def fixed(self) -> bool:
        """Whether scores have a part that is not tuned."""
        held = np.delete(self.start, self.tuned)
        return bool(held.any()) or any(d.sparse.any() for d in self.corpus.documents)

    def full(self, weights: Floats) -> Floats:
        """All weights (F,) from those of the tuned columns (G,)."""
        full = self.start
        full[self.tuned] = weights
        return full

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.tuned, self.start)

    def decode(self, weights: Floats) -> tuple[Choices, Statistics]:
        """The path that weights (G,) choose, and its summed statistics."""
        with self.opened.searching():
            return self.corpus.decode(self.full(weights), self.search)

    def list_paths(self, weights: Floats) -> tuple[Paths, ...]:
        """The path that weights (G,) choose in each document, and the `n_best` best ones."""
        path, _ = self.decode(weights)
        listed: list[tuple[tuple[int, ...], ...]] = [(choices,) for choices in path]
        if self.plan.n_best > 1:  # a beam is as wide as the list, so its first path may be another
            with self.opened.searching():
                further = self.corpus.list_paths(
                    self.full(weights), self.search.listing(self.plan.n_best)
                )
            listed = [(*first, *rest) for first, rest in zip(listed, further, strict=True)]
        return self.corpus.paths(listed, self.tuned, self.start)

    def mert(self, notices: Notices) -> Find:
        """Minimum error rate training as a tuner of these features."""

        def find(pool: Pool, start: Floats) -> Optimum:
            return optimise(
                pool, start, notices, names=self.names, settings=self.plan.settings
            ).best

        return find


def sentence_pools(task: Task) -> Pools:
    """Lists of candidates: one pool of them all, or one for each context that was decoded."""
    find, first = task.mert(task.notices), task.corpus.first
    if not task.contextual:
        return CompletePool(task.pool(first), find)
    return ConditionalPools(first, task.pool, task.decode, find)


def document_pools(task: Task) -> Pools:
    """Lists of paths, from the first candidates on."""
    first = task.corpus.first
    lists = task.pool(first)
    columns = np.ascontiguousarray(lists.features.T)
    spreads = np.array([Direction.of(lists, column).spread for column in columns])
    for g in np.flatnonzero(spreads == 0):
        task.notices.add(f"constant feature {task.names[g]}: its weight stays as given")
    paths = task.corpus.paths([(choices,) for choices in first], task.tuned, task.start)
    return DocumentPools(
        PathPool(paths, task.corpus.gaps),
        task.list_paths,
        task.mert(Notices()),  # what is constant on a few paths need not be
        spreads,
        Direction.of(lists, lists.fixed).spread,
        task.plan.settings.seed,
    )


def make_pools(task: Task) -> Pools:
    """Pools of the kind that the plan names."""
    return POOLS[task.plan.pools](task)


POOLS: Mapping[str, Callable[[Task], Pools]] = {
    "auto": sentence_pools,
    "conditional": sentence_pools,
    "documents": document_pools,
}
