"""A search problem made by somebody's scorer: timed, checked, its errors with their place."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decoders.problem import (
    DocumentProblem,
    Floats,
    Indices,
    ScoreError,
    States,
    Successors,
    UnsuitedDecoder,
    checked,
)
from rerank.errors import RerankError


@dataclass(slots=True)
class Clock:
    """Seconds spent in a scorer so far."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a scorer for one document, whose errors name scorer, document and sentence.

    present: numbers of the document's sentences that have candidates.
    """

    scorer: str
    document: str
    present: Sequence[int]
    clock: Clock

    def error(
        self, message: str, s: int | None = None, candidate: int | None = None
    ) -> RerankError:
        """An error at the s-th sentence that has candidates, or of the whole document."""
        where = f"scorer {self.scorer!r}, document {self.document!r}"
        where += "" if s is None else f", sentence {self.present[s]}"
        where += "" if candidate is None else f", candidate {candidate}"
        return RerankError(f"{where}{'' if s is None else ' (counted from 0)'}: {message}")

    @contextmanager
    def watched(self, s: int | None = None) -> Iterator[None]:
        """A call about the s-th sentence that has candidates, or about the whole document."""
        began = time.perf_counter()
        try:
            yield
        except (RerankError, UnsuitedDecoder):
            raise
        except ScoreError as fault:
            message = fault.fault
            if fault.candidate is not None:
                message = f"expected a number or -inf, but {message}"
            raise self.error(message, fault.sentence, fault.candidate) from None
        except Exception as fault:
            last = traceback.extract_tb(fault.__traceback__)[-1]
            raised = f"{type(fault).__name__} at {Path(last.filename).name}:{last.lineno}"
            message = " ".join(f"expected scores, found {raised}: {fault}".split())
            raise self.error(message, s) from fault
        finally:
            self.clock.seconds += time.perf_counter() - began


class CheckedProblem(DocumentProblem):
    """A problem made by a scorer that states this order, for lists with these counts (T,)."""

    def __init__(
        self, problem: DocumentProblem, calls: Calls, counts: Sequence[int], stated: int | None
    ) -> None:
        self._problem, self._calls = problem, calls
        with calls.watched():
            self._lengths, self._order = tuple(problem.lengths), problem.order
        if self._lengths != tuple(counts):
            raise calls.error(
                f"expected a problem with lengths {tuple(counts)}, the numbers of candidates of "
                f"the sentences that have any, found {self._lengths}"
            )
        if stated is not None and (self._order is None or self._order > stated):
            raise calls.error(
                f"expected a problem of order {stated}, as the scorer states, found {self._order}"
            )

    @property
    def lengths(self) -> tuple[int, ...]:
        """K_t of each sentence."""
        return self._lengths

    @property
    def order(self) -> int | None:
        """Order of the problem."""
        return self._order

    @property
    def causal(self) -> bool:
        """Whether scores depend on earlier sentences only."""
        return self._problem.causal

    def initial(self) -> States:
        """The state before the first sentence."""
        with self._calls.watched():
            return self._problem.initial()

    def extend(self, states: States, t: int) -> tuple[Floats, Successors]:
        """Scores (N, K_t) of sentence t after each of N states."""
        with self._calls.watched(t):
            scores, successors = self._problem.extend(states, t)
            array = np.asarray(scores)
            return checked(array, t, shape=(*array.shape[:1], self._lengths[t])), successors

    def select(self, successors: Successors, parents: Indices, choices: Indices) -> States:
        """States after the chosen candidates."""
        with self._calls.watched():
            return self._problem.select(successors, parents, choices)

    def average(self, successors: Successors, weights: NDArray[np.float64]) -> States:
        """Weighted means of states."""
        with self._calls.watched():
            return self._problem.average(successors, weights)

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        """Sums (N,) of scores along paths from sentence t on."""
        with self._calls.watched(t):
            return self._problem.rescore(paths, t, horizon)

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t at order 0."""
        with self._calls.watched(t):
            return checked(np.asarray(self._problem.unary(t)), t, shape=(self._lengths[t],))

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t at order 0 or 1."""
        with self._calls.watched(t):
            shape = (self._lengths[t - 1] if t else 1, self._lengths[t])
            return checked(np.asarray(self._problem.pairwise(t)), t, shape=shape)
