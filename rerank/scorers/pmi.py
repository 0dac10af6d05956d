"""The PMI form of a language model: what the context adds to a sentence's log-probability.

PMI(s; c) = log p(s | c) − log p(s | null), the pointwise mutual information of a sentence and its
context; the null context is the one in which documents begin. It keeps the order of the model, and
is 0 for the first sentence of a document. Sugiyama & Yoshinaga 2021 rerank translations by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.batching import Extend, Rescore, answer_all
from decoders.problem import Answer, Array, DocumentProblem, Floats, Indices, States, Successors
from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.scorers import ContextualSource, FeatureSource, ScoredDocument

Named: TypeAlias = tuple[str, KBest]


class PmiForm(FeatureSource):
    """Features `NAMEpmi` and `NAMEnull`, log p(s | null), in place of a scorer's feature `NAME`.

    Their sum is `NAME`, so that tuning weights context and fluency separately. Of the two only
    `NAMEpmi` depends on the context. The scorer's other features stay as they are.
    """

    def __init__(self, scorer: ContextualSource) -> None:
        super().__init__(f"{scorer.name}pmi")
        self.columns = (f"{scorer.name}null", *scorer.columns)
        self.side_information = scorer.side_information
        self._scorer, self.order, self.runs_on = scorer, scorer.order, scorer.runs_on
        self.error, self.kept = 2 * scorer.error, scorer.kept

    @property
    def digest(self) -> str:
        """Digest of the model."""
        return self._scorer.digest

    @property
    def seconds(self) -> float:
        """Time that the model has computed so far."""
        return self._scorer.seconds

    def without_context(self, name: str, kbest: KBest) -> NDArray[np.floating]:
        """Zeros (n,): no context adds nothing."""
        return np.zeros(kbest.n)

    def passes(self, k: float) -> float:
        """Cost of exact search with the model."""
        return self._scorer.passes(k)

    def lazily(self) -> None:
        """Have the model score only after the histories that a search reaches."""
        self._scorer.lazily()
        self.order = self._scorer.order

    def remembers(self, kbest: KBest) -> bool:
        """Whether scores of these lists in context, and those without, are in the cache."""
        return self._scorer.remembers(kbest) and self._scorer.remembers_null(kbest)

    def forgetful(self) -> PmiForm:
        """The form of a copy for measuring time."""
        return PmiForm(self._scorer.forgetful())

    def finish(self, source: str, notices: Notices) -> None:
        """Add the model's warnings."""
        self._scorer.finish(source, notices)

    def report(self) -> str:
        """What the model did."""
        return self._scorer.report()

    def details(self) -> str:
        """Counters of the model's engine."""
        return self._scorer.details()

    def score(self, documents: Sequence[Named]) -> list[ScoredDocument]:
        """Problem of each document, and (n, 1 + C) null scores and columns of the scorer.

        The null scores of a first sentence are its scores in the problem, so that its PMI is 0
        and not a rounding error.
        """
        scored = self._scorer.score(documents)
        nulls = self._scorer.null_scores(documents)
        problems = [one.problem for one in scored]
        firsts = answer_all(
            [[(p, Extend(p.initial(), 0))] if len(p.lengths) else [] for p in problems]
        )
        found = []
        for one, scores, first in zip(scored, nulls, firsts, strict=True):
            null = scores.astype(np.float64)
            for at_first, _ in first:
                null[: at_first.shape[1]] = at_first[0]
            columns = np.column_stack([null, one.columns])
            found.append(ScoredDocument(PmiProblem(one.problem, null), columns, one.keep))
        return found


class PmiProblem(DocumentProblem):
    """A problem's scores less null scores (n,) of all its candidates, in float64."""

    lengths: tuple[int, ...] = ()
    order: int | None = None
    causal: bool = True

    def __init__(self, problem: DocumentProblem, null: NDArray[np.float64]) -> None:
        self.problem, self.lengths = problem, tuple(problem.lengths)
        self.order, self.causal = problem.order, problem.causal
        self._null = np.split(null, np.cumsum(self.lengths)[:-1])

    def initial(self) -> States:
        """That of the problem."""
        return self.problem.initial()

    def extend(self, states: States, t: int) -> Answer:
        """PMI (N, K_t) after each of N states."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Self, States, int]]) -> list[Answer]:
        """What `extend` returns for each request; problems of one class in one call."""
        answers = answer_all([[(own.problem, Extend(states, t))] for own, states, t in requests])
        return [
            (scores - own._null[t], successors)
            for (own, _, t), ((scores, successors),) in zip(requests, answers, strict=True)
        ]

    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        """The next states of the problem."""
        return self.problem.select(successors, parents, choices)

    def average(self, successors: Successors, weights: Array) -> States:
        """The mean states of the problem."""
        return self.problem.average(successors, weights)

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) of PMI along each path."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Array]:
        """What `rescore` returns for each request; problems of one class in one call."""
        answers = answer_all(
            [[(own.problem, Rescore(paths, t, horizon))] for own, paths, t, horizon in requests]
        )
        return [
            sums - own._along(paths, t, horizon)
            for (own, paths, t, horizon), (sums,) in zip(requests, answers, strict=True)
        ]

    def pairwise(self, t: int) -> Floats:
        """PMI (K_{t-1}, K_t) of sentence t; order 1 only."""
        return self.problem.pairwise(t) - self._null[t]

    def _along(self, paths: Indices, t: int, horizon: int) -> Array:
        """Null scores summed along sentences t … t + horizon of paths (N, T)."""
        sums = np.zeros(len(paths))
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            sums += self._null[s][paths[:, s]]
        return sums
