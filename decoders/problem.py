"""What a decoder sees: a document as sentences with scored candidates, without the model.

Dimensions: `T` sentences with candidates, `K_t` candidates of sentence t, `N` histories held at
once. All scores are natural logarithms (or weighted sums of them); −inf is a valid score, NaN and
+inf are errors. A path takes a candidate of every sentence; its score is the float64 sum of its
candidates' scores from the first sentence to the last, the same bits in every decoder.

**Ties.** Of paths with equal scores the path wins that is lexicographically smallest read from the
*last* sentence, as backpointers to the first maximum find it. Where two sums are equal only by
rounding, a decoder that drops prefixes may decide by an earlier difference. When every path scores
−inf, the rule leaves the first candidate of every sentence.

**Reversed problems.** Where sentences depend on later sentences only, `decoders.search` searches
the reversed problem: sums run from the last sentence to the first, ties are read from the *first*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Indices: TypeAlias = NDArray[np.intp]
Array: TypeAlias = NDArray[np.float64]
States: TypeAlias = Any  # a batch of N histories, in the problem's own form; opaque to decoders
Successors: TypeAlias = Any  # what `extend` hands to `select`; opaque to decoders
Answer: TypeAlias = tuple[Floats, Successors]  # what `extend` returns
Returned = TypeVar("Returned")


class ScoreError(ValueError):
    """Invalid scores: NaN, +inf, or an array of the wrong shape.

    `sentence` counts from 0 inside the document; `candidate`, `part` (position of the scorer in a
    `WeightedSum`) and `position` (of the document in a batch; not in the message) may be None.
    """

    def __init__(
        self, fault: str, *, sentence: int, candidate: int | None = None, part: int | None = None
    ) -> None:
        self.fault = fault
        self.position: int | None = None
        self.sentence, self.candidate, self.part = sentence, candidate, part
        where = f"sentence {sentence}"
        where += "" if candidate is None else f", candidate {candidate}"
        where += "" if part is None else f", scorer {part}"
        super().__init__(f"{where} (counted from 0): {fault}")


class UnsuitedDecoder(ValueError):
    """A decoder that cannot serve this problem; the message names decoders that can."""


class DocumentProblem(ABC):
    """Scores of the candidates of one document, given the choices of earlier sentences.

    `lengths` holds K_t >= 1 of each sentence (the caller leaves out sentences without candidates;
    T may be 0). Causal problems have `initial`, `extend` and `select`; order 0 adds `unary`, order
    1 `pairwise`, unless `on_demand`. `rescore` evaluates changes inside a path, and is all that a
    problem has whose scores depend on later sentences, too (order None, not `causal`). If they
    depend on later sentences only, the problem in reverse, its mirror, is causal.
    """

    @property
    @abstractmethod
    def lengths(self) -> Sequence[int]:
        """K_t of each of the T sentences."""

    @property
    @abstractmethod
    def order(self) -> int | None:
        """How many earlier sentences a score depends on: 0, 1, n, or None for all."""

    @property
    def causal(self) -> bool:
        """Whether scores depend on earlier sentences only, so that `extend` can give them."""
        return True

    @property
    def given_later(self) -> bool:
        """Whether a candidate's score is given the sentences after it, not those before."""
        return False

    @property
    def on_demand(self) -> bool:
        """Whether a problem of order 1 has scores after the histories that a search visits only."""
        return False

    def mirror(self) -> DocumentProblem | None:
        """These scores in reverse order; None if `reversal.reversed_problem` is to make them."""
        return None

    def causal_part(self) -> DocumentProblem | None:
        """Those of the scores that depend on earlier sentences only; None if there are none."""
        return self if self.causal else None

    @abstractmethod
    def initial(self) -> States:
        """The one state before the first sentence, a batch of N = 1."""

    @abstractmethod
    def extend(self, states: States, t: int) -> tuple[Floats, Successors]:
        """Scores (N, K_t) of each candidate of sentence t after each of N states."""

    @abstractmethod
    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        """The M states after candidate `choices[m]` was taken from state `parents[m]`."""

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Self, States, int]]) -> list[Answer]:
        """What `extend` returns for each request (problem, states, t), in their order.

        For problems that score many states in a batch at less cost. The problems are of this class,
        and may differ in all else. Errors: ScoreError with the `position` of the request.
        """
        return apply_to_each(requests, lambda problem, states, t: problem.extend(states, t))

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) of the scores of sentences t … t + horizon of each path, cut at the last one.

        `paths: (N, T)`. Paths that differ only in sentences t … u differ in score by the difference
        of these sums, if `horizon` reaches `order` sentences beyond u, or the end. (Problems that
        are not `causal` add the scores of the sentences before t that depend on later sentences,
        perhaps cut off `horizon` before t: both ends must be within it.) The default scores from
        the first sentence on: O(N Σ K_s), s <= t + horizon.
        """
        states, totals = self.initial(), np.zeros(len(paths))
        rows = np.zeros(len(paths), dtype=np.intp)
        end = min(t + horizon + 1, len(self.lengths))
        for s in range(end):
            scores, successors = self.extend(states, s)
            if s >= t:
                shape = (len(paths) if s else 1, self.lengths[s])
                totals += checked(scores, s, shape=shape)[rows, paths[:, s]]
            if s + 1 < end:
                states = self.select(successors, rows, paths[:, s])
                rows = np.arange(len(paths))
        return totals

    def scores_within(self, choices: Sequence[int]) -> Sequence[Floats]:
        """Scores (K_t,) of each sentence, given the others of a path; only if not `causal`."""
        raise UnsuitedDecoder("this problem has no scores of candidates within a path")

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Self, Indices, int, int]]) -> list[Array]:
        """What `rescore` returns for each (problem, paths, t, horizon), as in `extend_together`."""
        return apply_to_each(requests, lambda problem, *arguments: problem.rescore(*arguments))

    def average(self, successors: Successors, weights: Array) -> States:
        """The K_t means of N vector states by `weights: (N, K_t)`, whose columns sum to 1."""
        raise UnsuitedDecoder("states of this problem have no mean; merge by max or sample")

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t; order 0 only."""
        raise UnsuitedDecoder(f"scores of sentence {t} depend on earlier sentences; use beam")

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) after each candidate of sentence t−1, (1, K_0) at t = 0."""
        before = self.lengths[t - 1] if t else 1
        return np.broadcast_to(self.unary(t), (before, self.lengths[t]))


class Chain(DocumentProblem):
    """A problem of order 0 or 1, by `unary` or `pairwise`; the state is the last choice."""

    def initial(self) -> Indices:
        """The state before the first sentence: row 0 of `pairwise(0)`."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
        """Rows of `pairwise(t)`, O(N K_t)."""
        return self.pairwise(t)[states], None

    def select(self, successors: None, parents: Indices, choices: Indices) -> Indices:
        """The choices themselves."""
        return choices

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path (`DocumentProblem`), O(N horizon) beside the matrices."""
        totals, before = np.zeros(len(paths)), self.lengths[t - 1] if t else 1
        rows = paths[:, t - 1] if t else np.zeros(len(paths), dtype=np.intp)
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            shape = (before, self.lengths[s])
            totals += checked(self.pairwise(s), s, shape=shape)[rows, paths[:, s]]
            rows, before = paths[:, s], self.lengths[s]
        return totals

    def average(self, successors: None, weights: Array) -> Indices:
        """The candidates: all histories that end in a candidate share its state."""
        return np.arange(weights.shape[1])


@dataclass(frozen=True, slots=True)
class Path:
    """A candidate of every sentence, and the sum of their scores."""

    choices: tuple[int, ...]
    score: float


def checked(scores: Floats, t: int, *, shape: tuple[int, ...], part: int | None = None) -> Array:
    """`scores` of sentence t as float64; ScoreError for NaN, +inf or another shape."""
    if scores.shape != shape:
        fault = f"expected scores of shape {shape}, found {scores.shape}"
        raise ScoreError(fault, sentence=t, part=part)
    if not scores.size:
        raise ScoreError("no candidates; leave the sentence out", sentence=t, part=part)
    if not scores.max() < np.inf:  # NaN passes through max, and is not below inf
        *_, candidate = np.argwhere(~(scores < np.inf))[0].tolist()
        fault = "the score is NaN" if np.isnan(scores.max()) else "the score is +inf"
        raise ScoreError(fault, sentence=t, candidate=candidate, part=part)
    return np.asarray(scores, dtype=np.float64)


def checked_sums(sums: Floats, t: int, n: int) -> Array:
    """Sums (n,) of paths from t on as float64; ScoreError at t for NaN, +inf, another shape."""
    if sums.shape != (n,):
        raise ScoreError(f"expected sums of shape ({n},), found {sums.shape}", sentence=t)
    if not (sums < np.inf).all():
        fault = "NaN" if np.isnan(sums).any() else "+inf"
        raise ScoreError(f"a sum of the scores from here on is {fault}", sentence=t)
    return np.asarray(sums, dtype=np.float64)


def check_path(problem: DocumentProblem, choices: Sequence[int]) -> None:
    """Raises ValueError unless `choices` is a path of the problem."""
    if len(choices) != len(problem.lengths):
        raise ValueError(f"expected {len(problem.lengths)} choices, found {len(choices)}")
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        if not 0 <= choice < length:
            raise ValueError(f"sentence {t} has {length} candidates, no candidate {choice}")


def path_at(position: int, lengths: Sequence[int]) -> tuple[int, ...]:
    """The path at a position of the flat (K_{T-1}, …, K_0) array, the order of the tie rule."""
    choices = []
    for length in lengths:
        position, choice = divmod(position, length)
        choices.append(choice)
    return tuple(choices)


def apply_to_each(
    requests: Iterable[tuple[Any, ...]], method: Callable[..., Returned]
) -> list[Returned]:
    """What the method returns for each request; a ScoreError gets the position of its request."""
    returned: list[Returned] = []
    try:
        for request in requests:
            returned.append(method(*request))
    except ScoreError as fault:
        fault.position = len(returned)
        raise
    return returned
