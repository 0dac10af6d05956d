"""Several scorers as one search problem: the weighted sum of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

import numpy as np
from numpy.typing import NDArray

from decoders.chains import Unary
from decoders.problem import (
    Answer,
    DocumentProblem,
    Floats,
    Indices,
    ScoreError,
    States,
    Successors,
    checked,
)
from decoders.requests import Extend, Request, Rescore, answered


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

    @property
    def causal(self) -> bool:
        """Whether all parts with weight are."""
        return all(part.causal for _, _, part in self._active)

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
        asked: list[tuple[DocumentProblem, Request]] = []
        owners: list[int] = []
        for n, (problem, states, t) in enumerate(requests):
            parts = zip(problem._active, states, strict=True)
            asked += [(part, Extend(of_part, t)) for (_, _, part), of_part in parts]
            owners += [n] * len(states)
        found: Iterator[Answer] = iter(answered(asked, owners))
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

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        """Weighted sums (N,) along each path."""
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(
        cls, requests: Sequence[tuple[Self, Indices, int, int]]
    ) -> list[NDArray[np.float64]]:
        """What `rescore` says to each request, as `extend_together`."""
        asked: list[tuple[DocumentProblem, Request]] = []
        owners: list[int] = []
        for n, (problem, paths, t, horizon) in enumerate(requests):
            asked += [(part, Rescore(paths, t, horizon)) for _, _, part in problem._active]
            owners += [n] * len(problem._active)
        found: Iterator[NDArray[np.float64]] = iter(answered(asked, owners))
        sums = []
        for problem, paths, t, _ in requests:
            total = np.zeros(len(paths))
            for (i, weight, _), values in zip(problem._active, found, strict=False):
                _refuse_infinity(weight, values, t, i)
                total += weight * values
            sums.append(total)
        return sums

    def average(
        self, successors: tuple[Successors, ...], weights: NDArray[np.float64]
    ) -> tuple[States, ...]:
        """The parts' means."""
        return tuple(
            part.average(after, weights)
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
            _refuse_infinity(weight, values, t, i)
            term = weight * values
            # a single row may meet a matrix: the larger array, ours either way, takes the sum
            total = term if total is None else np.add(total, term, out=max(total, term, key=len))
        return np.zeros(self.lengths[t]) if total is None else total


def _refuse_infinity(weight: float, values: NDArray[np.float64], t: int, part: int) -> None:
    """ScoreError where a negative weight would make +inf of −inf."""
    if weight < 0 and values.min() == -np.inf:
        raise ScoreError("−inf under a negative weight", sentence=t, part=part)
