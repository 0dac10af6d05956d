"""What a decoder sees: a document as sentences with scored candidates, and no model behind them.

Dimensions: `T` sentences with candidates, `K_t` candidates of sentence t, `N` histories held at
once. All scores are natural logarithms (or weighted sums of them); −inf is a score, NaN and +inf
are faults. A path takes one candidate of every sentence; its score is the float64 sum of its
candidates' scores from the first sentence to the last, in every decoder, so that equal paths have
equal bits.

**Ties.** Of paths with equal scores the one wins that is lexicographically smallest read from the
*last* sentence: first the lower candidate of sentence T−1, then of T−2, … That is the path which
backpointers to the first maximum find. Where no sum is rounded (dyadic scores) all decoders that
see the same paths agree; where two sums are equal only by rounding, a decoder that drops prefixes
may go by an earlier difference. When every path scores −inf, the rule leaves the first candidate
of every sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Indices: TypeAlias = NDArray[np.intp]
States: TypeAlias = Any  # a batch of N histories, as the problem keeps them; opaque to decoders
Successors: TypeAlias = Any  # what `extend` hands to `select`; opaque to decoders
Request: TypeAlias = "tuple[DocumentProblem, States, int]"  # a problem, histories, t
Answer: TypeAlias = tuple[Floats, Successors]  # what `extend` says to it


class ScoreError(ValueError):
    """Scores that are none: NaN, +inf, or an array of the wrong shape.

    `sentence` counts from 0 inside the document; `candidate`, `part` (the position of the scorer
    in a `WeightedSum`) and `problem` (the position of the document among those scored or searched
    together; not in the message) are None where they are not known.
    """

    def __init__(
        self,
        fault: str,
        *,
        sentence: int,
        candidate: int | None = None,
        part: int | None = None,
        problem: int | None = None,
    ) -> None:
        self.fault, self.problem = fault, problem
        self.sentence, self.candidate, self.part = sentence, candidate, part
        where = f"sentence {sentence}"
        where += "" if candidate is None else f", candidate {candidate}"
        where += "" if part is None else f", scorer {part}"
        super().__init__(f"{where} (counted from 0): {fault}")


class UnsuitedDecoder(ValueError):
    """A decoder that cannot serve this problem; the message names decoders that can."""


class DocumentProblem(Protocol):
    """Scores of the candidates of one document, given what was chosen before.

    `lengths` holds K_t >= 1 of each sentence (sentences without candidates are left out by the
    caller; T may be 0). `order` is the number of earlier sentences a score depends on, None when
    all of them. Every problem has `initial`, `extend` and `select`; order 0 adds `unary`, order 1
    adds `pairwise`. Classes that inherit get refusing or broadcasting defaults for these two, and
    an `extend_together` that asks `extend` of one problem after the other.
    """

    @property
    def lengths(self) -> Sequence[int]:
        """K_t of each of the T sentences."""
        ...

    @property
    def order(self) -> int | None:
        """How many earlier sentences a score depends on: 0, 1, n, or None for all."""
        ...

    def initial(self) -> States:
        """The one state before the first sentence, a batch of N = 1."""
        ...

    def extend(self, states: States, t: int) -> tuple[Floats, Successors]:
        """Scores (N, K_t) of each candidate of sentence t after each of N states."""
        ...

    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        """The M states after candidate `choices[m]` was taken from state `parents[m]`."""
        ...

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Self, States, int]]) -> list[Answer]:
        """What `extend` says to each request (problem, states, t), in their order.

        For problems that score many states at less cost than one after the other. The problems
        are of this class, and may differ in everything else: document, t, N, the model behind
        them. Errors: ScoreError with `problem`, the position of the request.
        """
        answers: list[Answer] = []
        for n, (problem, states, t) in enumerate(requests):
            try:
                answers.append(problem.extend(states, t))
            except ScoreError as fault:
                fault.problem = n
                raise
        return answers

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t; order 0 only."""
        raise UnsuitedDecoder(f"scores of sentence {t} depend on earlier sentences; use beam")

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) after each candidate of sentence t−1, (1, K_0) at t = 0."""
        before = self.lengths[t - 1] if t else 1
        return np.broadcast_to(self.unary(t), (before, self.lengths[t]))


@dataclass(frozen=True, slots=True)
class Path:
    """One candidate of every sentence, and the sum of their scores."""

    choices: tuple[int, ...]
    score: float


class Chain(DocumentProblem):
    """A problem of order 0 or 1: the state is the last choice.

    Subclasses give `lengths`, `order` and one of `unary` and `pairwise`.
    """

    def initial(self) -> Indices:
        """Row 0 of `pairwise(0)`."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
        """Rows of `pairwise(t)`, O(N K_t)."""
        return self.pairwise(t)[states], None

    def select(self, successors: None, parents: Indices, choices: Indices) -> Indices:
        """The choices themselves."""
        return choices


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Chain):
    """Order 0: `scores[t]: (K_t,)`, whatever the other sentences say."""

    scores: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for t, scores in enumerate(self.scores):
            _expect(scores.ndim == 1 and scores.size > 0, t, "(K_t,)", scores)
        object.__setattr__(self, "lengths", tuple(len(scores) for scores in self.scores))

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t."""
        return self.scores[t]


@dataclass(frozen=True, slots=True, eq=False)
class Pairwise(Chain):
    """Order 1: `matrices[t]: (K_{t-1}, K_t)`, the first of them (1, K_0)."""

    matrices: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        before = 1
        for t, matrix in enumerate(self.matrices):
            fits = matrix.ndim == 2 and len(matrix) == before and matrix.size > 0
            _expect(fits, t, f"({before}, K_t)", matrix)
            before = matrix.shape[1]
        object.__setattr__(self, "lengths", tuple(m.shape[1] for m in self.matrices))

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t."""
        return self.matrices[t]


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSum(DocumentProblem):
    """Several problems over the same candidates as one: score = Σ_i weight_i · score_i.

    Sums run over the parts in their order, in float64, also where the parts hold float32. Parts of
    weight 0 are never evaluated (so 0 · −inf does not arise) and do not count for the order, which
    is the highest of the others; with all weights 0 every path scores 0. Errors: ScoreError with
    the part for NaN, +inf, and −inf under a negative weight.
    """

    parts: Sequence[tuple[float, DocumentProblem]]
    lengths: tuple[int, ...] = field(init=False)
    order: int | None = field(init=False)
    _active: tuple[tuple[int, float, DocumentProblem], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a weighted sum needs at least one part")
        lengths = tuple(self.parts[0][1].lengths)
        for i, (weight, part) in enumerate(self.parts):
            if not np.isfinite(weight):
                raise ValueError(f"scorer {i}: expected a finite weight, found {weight}")
            if tuple(part.lengths) != lengths:
                raise ValueError(f"scorer {i}: its sentences have other numbers of candidates")
        active = tuple((i, w, part) for i, (w, part) in enumerate(self.parts) if w != 0)
        active = active or ((0, 1.0, Unary([np.zeros(k) for k in lengths])),)
        orders = [part.order for _, _, part in active]
        order = None if None in orders else max(o for o in orders if o is not None)
        for name, value in (("lengths", lengths), ("order", order), ("_active", active)):
            object.__setattr__(self, name, value)

    def initial(self) -> tuple[States, ...]:
        """The parts' initial states."""
        return tuple(part.initial() for _, _, part in self._active)

    def extend(
        self, states: tuple[States, ...], t: int
    ) -> tuple[NDArray[np.float64], tuple[Successors, ...]]:
        """Weighted scores (N, K_t), and the parts' successors."""
        parts = zip(self._active, states, strict=True)
        return self._answer([part.extend(of_part, t) for (_, _, part), of_part in parts], t)

    @classmethod
    def extend_together(
        cls, requests: Sequence[tuple[Self, tuple[States, ...], int]]
    ) -> list[Answer]:
        """What `extend` says to each request; parts of one class, of all problems, in one call."""
        asked: list[Request] = []
        owners: list[int] = []
        for n, (problem, states, t) in enumerate(requests):
            parts = zip(problem._active, states, strict=True)
            asked += [(part, of_part, t) for (_, _, part), of_part in parts]
            owners += [n] * len(states)
        found = iter(extended(asked, owners))
        answers: list[Answer] = []
        for n, (problem, states, t) in enumerate(requests):
            try:
                answers.append(problem._answer(list(islice(found, len(states))), t))
            except ScoreError as fault:
                fault.problem = n
                raise
        return answers

    def select(
        self, successors: tuple[Successors, ...], parents: Indices, choices: Indices
    ) -> tuple[States, ...]:
        """The parts' states."""
        return tuple(
            part.select(after, parents, choices)
            for (_, _, part), after in zip(self._active, successors, strict=True)
        )

    def unary(self, t: int) -> NDArray[np.float64]:
        """Weighted scores (K_t,) of sentence t; order 0 only."""
        shape = (self.lengths[t],)
        parts = self._active
        return self._sum((checked(p.unary(t), t, shape=shape, part=i) for i, _, p in parts), t)

    def pairwise(self, t: int) -> Floats:
        """Weighted scores (K_{t-1}, K_t) of sentence t; order 0 and 1 only."""
        if self.order == 0:
            return DocumentProblem.pairwise(self, t)  # its own unary, broadcast
        shape = (self.lengths[t - 1] if t else 1, self.lengths[t])
        scores = (  # of order 0 one row, until a matrix meets it
            checked(part.unary(t), t, shape=shape[1:], part=i)[None]
            if part.order == 0
            else checked(part.pairwise(t), t, shape=shape, part=i)
            for i, _, part in self._active
        )
        return self._sum(scores, t)

    def _answer(
        self, found: Sequence[Answer], t: int
    ) -> tuple[NDArray[np.float64], tuple[Successors, ...]]:
        """The parts' answers as one."""
        shape = (len(found[0][0]), self.lengths[t])
        scores = (
            checked(values, t, shape=shape, part=i)
            for (i, _, _), (values, _) in zip(self._active, found, strict=True)
        )
        return self._sum(scores, t), tuple(successors for _, successors in found)

    def _sum(self, scores: Iterable[NDArray[np.float64]], t: int) -> NDArray[np.float64]:
        """Σ weight · scores in the order of the parts, which fixes the bits."""
        total: NDArray[np.float64] | None = None
        for (i, weight, _), values in zip(self._active, scores, strict=True):
            if weight < 0 and values.min() == -np.inf:
                raise ScoreError("−inf under a negative weight", sentence=t, part=i)
            term = weight * values
            # a single row may meet a matrix: the larger array, ours either way, takes the sum
            total = term if total is None else np.add(total, term, out=max(total, term, key=len))
        return np.zeros(self.lengths[t]) if total is None else total


def extended(requests: Sequence[Request], owners: Sequence[int]) -> list[Answer]:
    """Answers to requests to problems of any class: one `extend_together` of each class.

    `owners[n]` is the position, in the caller's batch, of the problem behind request n; a
    ScoreError leaves with that as its `problem`.
    """
    groups: dict[type[DocumentProblem], list[int]] = {}
    for n, (problem, _, _) in enumerate(requests):
        groups.setdefault(type(problem), []).append(n)
    answers: dict[int, Answer] = {}
    for kind, members in groups.items():
        try:
            found = kind.extend_together([requests[n] for n in members])
        except ScoreError as fault:
            if fault.problem is not None:
                fault.problem = owners[members[fault.problem]]
            raise
        answers.update(zip(members, found, strict=True))
    return [answers[n] for n in range(len(requests))]


def checked(
    scores: Floats, t: int, *, shape: tuple[int, ...], part: int | None = None
) -> NDArray[np.float64]:
    """`scores` as float64 when they are scores of sentence t: of this shape, no NaN, no +inf.

    float32 is widened, float64 not copied. One pass, no temporary arrays unless it raises
    ScoreError.
    """
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


def forced(problem: DocumentProblem, choices: Sequence[int]) -> list[NDArray[np.float64]]:
    """Scores (K_t,) of all candidates of each sentence t after the path `choices[:t]`.

    O(Σ K_t) scores. Errors: ValueError when `choices` is no path of the problem, ScoreError.
    """
    check_path(problem, choices)
    seen: list[NDArray[np.float64]] = []
    states = problem.initial()
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        scores, successors = problem.extend(states, t)
        seen.append(checked(scores, t, shape=(1, length))[0])
        if t + 1 < len(choices):
            states = problem.select(successors, np.zeros(1, np.intp), np.array([choice]))
    return seen


def check_path(problem: DocumentProblem, choices: Sequence[int]) -> None:
    """ValueError unless `choices` is a path of the problem."""
    if len(choices) != len(problem.lengths):
        raise ValueError(f"expected {len(problem.lengths)} choices, found {len(choices)}")
    for t, (choice, length) in enumerate(zip(choices, problem.lengths, strict=True)):
        if not 0 <= choice < length:
            raise ValueError(f"sentence {t} has {length} candidates, no candidate {choice}")


def _expect(fits: bool, t: int, shape: str, scores: Floats) -> None:
    if not fits:
        fault = f"expected scores of shape {shape} with K_t >= 1, found {scores.shape}"
        raise ScoreError(fault, sentence=t)
