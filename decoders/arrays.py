"""Problems whose scores are given as arrays, and the weighted sum of problems.

`Unary` has a vector per sentence, `Pairwise` a matrix per pair of neighbours, `HistoryTable` an
array with an axis for each sentence of the history. `WeightedSum` makes one problem of several
scorers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from decoders.batching import Extend, Rescore, answer_all
from decoders.problem import (
    Answer,
    Array,
    Chain,
    DocumentProblem,
    Floats,
    Indices,
    ScoreError,
    States,
    Successors,
    apply_to_each,
    checked,
)
from decoders.reversal import reversed_problem


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Chain):
    """A problem of order 0: `scores[t]: (K_t,)`, independent of the other sentences."""

    scores: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for t, scores in enumerate(self.scores):
            _check_shape(scores.ndim == 1 and scores.size > 0, t, "(K_t,)", scores)
        object.__setattr__(self, "lengths", tuple(len(scores) for scores in self.scores))

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t."""
        return self.scores[t]


@dataclass(frozen=True, slots=True, eq=False)
class Pairwise(Chain):
    """A problem of order 1: `matrices[t]: (K_{t-1}, K_t)`, the first of them (1, K_0)."""

    matrices: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        before = 1
        for t, matrix in enumerate(self.matrices):
            fits = matrix.ndim == 2 and len(matrix) == before and matrix.size > 0
            _check_shape(fits, t, f"({before}, K_t)", matrix)
            before = matrix.shape[1]
        object.__setattr__(self, "lengths", tuple(m.shape[1] for m in self.matrices))

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t."""
        return self.matrices[t]


@dataclass(frozen=True, slots=True, eq=False)
class HistoryTable(DocumentProblem):
    """A problem of any order: `tables[t]: (K_s, …, K_t)` with s = max(0, t − order).

    With order None s is 0: a score after every history. The state is the row of the table of
    sentence t, without its last axis. O(Σ Π K) memory.
    """

    tables: Sequence[Floats]
    order: int | None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        lengths: tuple[int, ...] = ()
        for t, table in enumerate(self.tables):
            window = lengths[self._first(t) :]
            fits = table.ndim == len(window) + 1 and table.shape[:-1] == window and table.size
            expected = ", ".join((*map(str, window), "K_t"))
            _check_shape(bool(fits), t, f"({expected})", table)
            lengths += table.shape[-1:]
        object.__setattr__(self, "lengths", lengths)

    def initial(self) -> Indices:
        """The empty history."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, tuple[Indices, int]]:
        """Rows of the table of sentence t, O(N K_t)."""
        rows = self.tables[t].reshape(-1, self.lengths[t])
        return rows[states], (states, t)

    def select(
        self, successors: tuple[Indices, int], parents: Indices, choices: Indices
    ) -> Indices:
        """Positions of the longer histories, without choices beyond the order."""
        states, t = successors
        positions: Indices = states[parents] * self.lengths[t] + choices
        return positions % math.prod(self.lengths[self._first(t + 1) : t + 1])

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t; order 0 only."""
        return self.tables[t] if self.order == 0 else DocumentProblem.unary(self, t)

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t; order 0 and 1 only."""
        if self.order == 1:
            return self.tables[t].reshape(-1, self.lengths[t])
        return DocumentProblem.pairwise(self, t)

    def _first(self, t: int) -> int:
        """The first sentence that the scores of sentence t depend on."""
        return 0 if self.order is None else max(0, t - self.order)


def _check_shape(fits: bool, t: int, shape: str, scores: Floats) -> None:
    """ScoreError unless the array of sentence t fits the arrays before it."""
    if not fits:
        fault = f"expected scores of shape {shape} with K_t >= 1, found {scores.shape}"
        raise ScoreError(fault, sentence=t)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSum(DocumentProblem):
    """The weighted sum of several problems over the same candidates: Σ_i weight_i · score_i.

    Sums run over the parts in their order, in float64. Parts of weight 0 are never evaluated (so
    0 · −inf does not arise) and do not count for the order, the highest of the others; with all
    weights 0 it is 0 and every path scores 0. Errors: ScoreError with the part for NaN, +inf, and
    −inf under a negative weight.
    """

    parts: Sequence[tuple[float, DocumentProblem]]
    lengths: tuple[int, ...] = field(init=False)
    order: int | None = field(init=False)
    # those of the parts with weights other than 0; their positions and weights
    _problems: tuple[DocumentProblem, ...] = field(init=False, repr=False)
    _weights: tuple[tuple[int, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a weighted sum needs at least one part")
        lengths = tuple(self.parts[0][1].lengths)
        for i, (weight, part) in enumerate(self.parts):
            if not np.isfinite(weight):
                raise ValueError(f"scorer {i}: expected a finite weight, found {weight}")
            if tuple(part.lengths) != lengths:
                raise ValueError(f"scorer {i}: its sentences have other numbers of candidates")
        weights = tuple((i, weight) for i, (weight, _) in enumerate(self.parts) if weight != 0)
        problems = tuple(self.parts[i][1] for i, _ in weights)
        if not weights:
            weights, problems = ((0, 1.0),), (Unary([np.zeros(k) for k in lengths]),)
        orders = [part.order for part in problems]
        order = None if None in orders else max(o for o in orders if o is not None)
        facts = {"lengths": lengths, "order": order, "_problems": problems, "_weights": weights}
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    @property
    def causal(self) -> bool:
        """Whether all parts of non-zero weight are causal."""
        return all(part.causal for part in self._problems)

    @property
    def given_later(self) -> bool:
        """Whether scores are given later sentences, in each part that depends on others."""
        return any(part.given_later for part in self._problems if part.order != 0)

    @property
    def on_demand(self) -> bool:
        """Whether a part of non-zero weight is scored on demand."""
        return any(part.on_demand for part in self._problems)

    def mirror(self) -> WeightedSum:
        """The weighted sum of the reversed parts."""
        return WeightedSum([(weight, reversed_problem(part)) for weight, part in self.parts])

    def causal_part(self) -> WeightedSum | None:
        """The sum of the causal parts, the others with weight 0."""
        return WeightedSum([(weight * part.causal, part) for weight, part in self.parts])

    def initial(self) -> tuple[States, ...]:
        """The initial states of the parts."""
        return tuple(part.initial() for part in self._problems)

    def extend(self, states: tuple[States, ...], t: int) -> Answer:
        """Weighted scores (N, K_t), and the parts' successors."""
        (answer,) = self.extend_together([(self, states, t)])
        return answer

    @classmethod
    def extend_together(
        cls, requests: Sequence[tuple[Self, tuple[States, ...], int]]
    ) -> list[Answer]:
        """What `extend` returns for each request; parts of one class, of all sums, in one call."""
        of_parts = [
            [(part, Extend(state, t)) for part, state in zip(total._problems, states, strict=True)]
            for total, states, t in requests
        ]
        answered = zip(requests, answer_all(of_parts), strict=True)
        sums = [(total, answers, t) for (total, _, t), answers in answered]
        return apply_to_each(sums, lambda total, answers, t: total._answer(answers, t))

    def select(
        self, successors: tuple[Successors, ...], parents: Indices, choices: Indices
    ) -> tuple[States, ...]:
        """The next states of the parts."""
        parts = zip(self._problems, successors, strict=True)
        return tuple(part.select(after, parents, choices) for part, after in parts)

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Weighted sums (N,) along each path."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Self, Indices, int, int]]) -> list[Array]:
        """What `rescore` returns for each request, batched as in `extend_together`."""
        of_parts = [
            [(part, Rescore(paths, t, horizon)) for part in total._problems]
            for total, paths, t, horizon in requests
        ]
        answered = zip(requests, answer_all(of_parts), strict=True)
        sums = [(total, answers, t) for (total, _, t, _), answers in answered]
        # plus 0: a sum of −0.0 alone would be −0.0
        return apply_to_each(sums, lambda total, answers, t: 0.0 + total._sum(answers, t))

    def average(self, successors: tuple[Successors, ...], weights: Array) -> tuple[States, ...]:
        """The mean states of the parts."""
        parts = zip(self._problems, successors, strict=True)
        return tuple(part.average(after, weights) for part, after in parts)

    def unary(self, t: int) -> Array:
        """Weighted scores (K_t,) of sentence t; order 0 only."""
        shape = (self.lengths[t],)
        parts = zip(self._weights, self._problems, strict=True)
        return self._sum((checked(p.unary(t), t, shape=shape, part=i) for (i, _), p in parts), t)

    def pairwise(self, t: int) -> Floats:
        """Weighted scores (K_{t-1}, K_t) of sentence t; order 0 and 1 only."""
        if self.order == 0:
            return DocumentProblem.pairwise(self, t)  # its own unary, broadcast
        shape = (self.lengths[t - 1] if t else 1, self.lengths[t])
        scores = (  # of order 0 one row, until a matrix meets it
            checked(part.unary(t), t, shape=shape[1:], part=i)[None]
            if part.order == 0
            else checked(part.pairwise(t), t, shape=shape, part=i)
            for (i, _), part in zip(self._weights, self._problems, strict=True)
        )
        return self._sum(scores, t)

    def _answer(self, of_parts: Sequence[Answer], t: int) -> tuple[Array, tuple[Successors, ...]]:
        """The sum of what `extend` of each part returned."""
        shape = (len(of_parts[0][0]), self.lengths[t])
        scores = (
            checked(values, t, shape=shape, part=i)
            for (i, _), (values, _) in zip(self._weights, of_parts, strict=True)
        )
        return self._sum(scores, t), tuple(successors for _, successors in of_parts)

    def _sum(self, scores: Iterable[Array], t: int) -> Array:
        """Σ weight · scores in the order of the parts, which fixes the bits."""
        total = np.zeros(0)
        for n, ((i, weight), values) in enumerate(zip(self._weights, scores, strict=True)):
            if weight < 0 and values.min() == -np.inf:
                raise ScoreError("−inf under a negative weight", sentence=t, part=i)
            term = weight * values
            # a single row may meet a matrix: the larger array, ours either way, takes the sum
            total = np.add(total, term, out=max(total, term, key=len)) if n else term
        return total
