"""The result of searching a document: paths, their posterior, and what is known of them.

A posterior is p(path) = exp(α · score) / Z. α is the scale: weights are free up to a positive
factor, probabilities are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import numpy as np

from decoders.problem import Array, Indices, Path


class Direction(StrEnum):
    """How sentences are searched: from the first, from the last, or in no order.

    REVERSED: where they depend on later sentences alone; BOTH: on earlier and on later sentences.
    """

    FORWARD = "forward"
    REVERSED = "reversed"
    BOTH = "both"


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Marginals and normaliser of the paths of a document, exact or estimated.

    marginals: (K_t,) probability of each candidate of sentence t; log_normaliser: log Z; draws:
    (M, T) paths drawn, with weights (M,) that sum to 1.
    """

    marginals: tuple[Array, ...]
    log_normaliser: float
    exact: bool
    draws: Indices
    weights: Array

    @property
    def extinct(self) -> bool:
        """Whether no path was found that is possible."""
        return self.log_normaliser == -np.inf

    @classmethod
    def none(cls, lengths: tuple[int, ...], *, exact: bool) -> Self:
        """Posterior of a document without a possible path: all marginals are 0."""
        marginals = tuple(np.zeros(k) for k in lengths)
        return cls(marginals, -np.inf, exact, np.zeros((0, len(lengths)), np.intp), np.zeros(0))


def check_scale(alpha: float) -> None:
    """ValueError unless α is a scale: 0 < α < ∞."""
    if not 0 < alpha < np.inf:
        raise ValueError(f"expected a finite scale alpha above 0, found {alpha}")


def ranked(choices: Indices, scores: Array, n_best: int) -> tuple[Path, ...]:
    """The best distinct paths of choices (M, T), scores (M,), by the rule of ties; O(M T log M)."""
    if n_best < 1:
        raise ValueError(f"expected n_best >= 1, found {n_best}")
    distinct, first = np.unique(choices, axis=0, return_index=True)
    order = np.lexsort((*distinct.T, -scores[first]))[:n_best]
    rows, best = distinct[order].tolist(), scores[first][order].tolist()
    return tuple(Path(tuple(row), score) for row, score in zip(rows, best, strict=True))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Paths of a document, best first, and what is known of them.

    A decoder gives `paths`, perhaps with a `posterior`; `decoders.search` adds the other facts:
    whether no path can be better (`exact`), the scores of the path of first candidates and of the
    best path known (the optimum if `optimal`), log Z of a posterior with a possible path. Whoever
    knows the features adds margins of the sentences with candidates (`path_margins` up to order 1)
    and the number of near-ties; None where they were not computed.
    """

    paths: tuple[Path, ...]
    posterior: Posterior | None = field(default=None, compare=False)
    decoder: str = ""
    exact: bool = False
    baseline_score: float = float("nan")
    best_score: float = float("nan")
    optimal: bool = False
    log_normaliser: float | None = None
    direction: Direction = Direction.FORWARD
    margins: tuple[float, ...] | None = None
    path_margins: tuple[float, ...] | None = None
    near_ties: int | None = None

    @property
    def choices(self) -> tuple[int, ...]:
        """Candidates (T,) of the best path found."""
        return self.paths[0].choices

    @property
    def score(self) -> float:
        """Score of the best path found."""
        return self.paths[0].score

    @property
    def clearest_margins(self) -> tuple[float, ...] | None:
        """Margins of whole paths where they are known, else of the sentences."""
        return self.margins if self.path_margins is None else self.path_margins

    @property
    def gap(self) -> float:
        """How much better the best known path is, >= 0; no bound unless `optimal`."""
        return 0.0 if self.best_score == self.score else self.best_score - self.score


NO_CANDIDATES = SearchResult(
    (Path((), 0.0),),
    decoder="none",
    exact=True,
    baseline_score=0.0,
    best_score=0.0,
    optimal=True,
    margins=(),
    near_ties=0,
)  # of a document in which no sentence has any
