"""Problems and results with the sentences of a document in reverse order.

A model may read a document from the last sentence to the first (J. Eisenstein, "The Document
Context Language Model", memo, §3.2: "run this process in the backwards direction and then add both
scores"). Up to order 1 the direction does not restrict the search: score(a before b) is a number
for each pair, whichever of the two it is the score of, so that the sum of both directions is one
chain. Beyond, a problem can be searched in the direction that it reads, and rescored in the other.

T sentences; sentence t of one problem is sentence T − 1 − t of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from decoders.batching import Rescore, answer_all, conditional_scores
from decoders.problem import (
    Array,
    Chain,
    DocumentProblem,
    Floats,
    Indices,
    Path,
    ScoreError,
    States,
    UnsuitedDecoder,
    check_path,
    checked,
)
from decoders.result import Direction, SearchResult

if TYPE_CHECKING:
    from decoders.mbr import Utility


def reversed_problem(problem: DocumentProblem) -> DocumentProblem:
    """The scores of a problem over its sentences in reverse order, in which paths keep theirs.

    Causal up to order 1, and where the problem is not causal, but depends on later sentences only.
    Above order 1 it offers `rescore` alone, unless the problem has a `mirror`.
    """
    if (mirror := problem.mirror()) is not None:
        return mirror
    chain = problem.order in (0, 1) and not problem.on_demand
    kind = ReversedChain if chain else ReversedProblem
    return kind(problem)


def direction_of(problem: DocumentProblem) -> Direction:
    """The direction in which a problem can be searched; FORWARD where it may be either."""
    if problem.causal:
        return Direction.FORWARD
    return Direction.REVERSED if reversed_problem(problem).causal else Direction.BOTH


class _Reversed(DocumentProblem):
    """Another problem with its sentences in reverse order."""

    lengths: tuple[int, ...] = ()
    order: int | None = None

    def __init__(self, problem: DocumentProblem) -> None:
        self._problem, self.lengths = problem, tuple(problem.lengths)[::-1]
        self.order = problem.order if isinstance(self, Chain) else None

    @property
    def given_later(self) -> bool:
        """Whether the other problem's scores are given earlier sentences."""
        return not self._problem.given_later

    def mirror(self) -> DocumentProblem:
        """The other problem."""
        return self._problem


class ReversedChain(_Reversed, Chain):
    """A problem of order 0 or 1 with its sentences in reverse order; causal.

    The matrix of sentences t − 1 and t is that of the same two sentences, transposed; the scores of
    the other problem's first sentence go to the last one here.
    """

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t; order 0 only."""
        return self._problem.unary(len(self.lengths) - 1 - t)

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of the pairs of sentences t − 1 and t; zeros (1, K_0) at t = 0."""
        if self.order == 0:
            return DocumentProblem.pairwise(self, t)
        n = len(self.lengths)
        matrix = self._problem.pairwise(n - t).T if t else np.zeros((1, self.lengths[0]))
        if t < n - 1:
            return matrix
        return matrix + np.asarray(self._problem.pairwise(0), dtype=np.float64)


class ReversedProblem(_Reversed):
    """A problem of order 2 or more, or scored on demand, reversed: it only offers `rescore`."""

    causal = False

    def initial(self, *_: Any, **__: Any) -> States:
        """UnsuitedDecoder: there are no states."""
        raise UnsuitedDecoder("scores depend on later sentences; search the reversed problem")

    extend = select = initial

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) of sentences t − horizon … t + horizon, cut at both ends, of each path."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Array]:
        """What `rescore` returns for each request; problems of one class in one call."""
        mirrored = []
        for problem, paths, t, horizon in requests:
            n = len(problem.lengths)
            last = max(0, min(t + horizon, n - 1))
            turned = np.ascontiguousarray(paths[:, ::-1])
            span = last - max(0, t - horizon)
            mirrored.append([(problem._problem, Rescore(turned, max(0, n - 1 - last), span))])
        return [sums for (sums,) in answer_all(mirrored)]


def own_scores(problem: DocumentProblem, choices: Sequence[int]) -> list[Array]:
    """Scores (K_t,) of all candidates of each sentence, given the other sentences of a path.

    The context is that in which a candidate is read: the sentences before it, where the problem is
    `given_later` those after it, where it is not causal both. Errors: as of `conditional_scores`.
    """
    if problem.given_later:
        return own_scores(reversed_problem(problem), choices[::-1])[::-1]
    chain = problem.order in (0, 1) and not problem.on_demand
    if problem.causal and not chain:
        return conditional_scores(problem, choices)
    check_path(problem, choices)
    if problem.causal:
        before = (0, *choices)[: len(choices)]
        if problem.order == 0:
            chosen = (problem.unary(t) for t in range(len(choices)))
        else:
            chosen = (problem.pairwise(t)[row] for t, row in enumerate(before))
        return [checked(row, t, shape=(problem.lengths[t],)) for t, row in enumerate(chosen)]
    rows = zip(problem.scores_within(choices), problem.lengths, strict=True)
    return [checked(np.asarray(row), t, shape=(k,)) for t, (row, k) in enumerate(rows)]


# Results of a search of the reversed problem, for the document


def in_document_order(result: SearchResult) -> SearchResult:
    """The result of a search of the reversed problem, its sentences in the document's order."""
    paths = tuple(Path(path.choices[::-1], path.score) for path in result.paths)
    posterior = result.posterior
    if posterior is not None:
        marginals, draws = posterior.marginals[::-1], posterior.draws[:, ::-1]
        posterior = replace(posterior, marginals=marginals, draws=draws)
    return replace(result, paths=paths, posterior=posterior)


def reversed_fault(fault: ScoreError, n: int) -> ScoreError:
    """An error in the reversed problem of a document of n sentences, in the document's order."""
    turned = ScoreError(
        fault.fault, sentence=n - 1 - fault.sentence, candidate=fault.candidate, part=fault.part
    )
    turned.position = fault.position
    return turned


@dataclass(frozen=True, slots=True)
class ReversedUtility:
    """The utility of a document of n sentences for its reversed problem."""

    utility: Utility
    n: int

    def expected(self, t: int, marginals: Array) -> Array:
        """Expected utility of each candidate of sentence t of the reversed problem."""
        return self.utility.expected(self.n - 1 - t, marginals)

    def words(self, t: int) -> Array:
        """Number of words of each candidate of sentence t of the reversed problem."""
        return self.utility.words(self.n - 1 - t)
