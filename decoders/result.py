"""What a search of one document finds: paths, their posterior, and what is known of them.

A posterior is p(path) ∝ exp(α · score), as sampling decoders estimate it. α is the scale: weights
are free up to a positive factor, probabilities are not. The target is not normalised; its
normaliser is Z = Σ_paths exp(α · score).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices, Path

Array = NDArray[np.float64]


class Direction(StrEnum):
    """How the sentences of a document are searched.

    FORWARD: from the first to the last; REVERSED: from the last to the first, where a sentence
    depends on later ones alone; BOTH: in no order, where it depends on earlier and on later ones.
    """

    FORWARD = "forward"
    REVERSED = "reversed"
    BOTH = "both"


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Marginals and normaliser of the paths of a document.

    marginals: (K_t,) probability of each candidate of sentence t; log_normaliser: log Z, or its
    estimate; exact: whether both come from sums over all paths; draws: (M, T) paths drawn, with
    weights (M,) that sum to 1.
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

    @classmethod
    def of_draws(
        cls, draws: Indices, weights: Array, lengths: tuple[int, ...], log_normaliser: float
    ) -> Self:
        """Posterior estimated by weighted draws, O(M T)."""
        marginals = tuple(
            np.bincount(draws[:, t], weights, k).astype(np.float64) for t, k in enumerate(lengths)
        )
        return cls(marginals, log_normaliser, False, draws, weights)


def check_scale(alpha: float) -> None:
    """ValueError unless α is a scale: 0 < α < ∞."""
    if not 0 < alpha < np.inf:
        raise ValueError(f"expected a finite scale alpha above 0, found {alpha}")


def ranked(choices: Indices, scores: Array, n_best: int) -> tuple[Path, ...]:
    """The `n_best` best distinct paths of `choices: (M, T)`, equal ones by the rule of ties.

    `scores: (M,)` are those of the paths. O(M T log M). Errors: ValueError for n_best below 1.
    """
    if n_best < 1:
        raise ValueError(f"expected n_best >= 1, found {n_best}")
    distinct, first = np.unique(choices, axis=0, return_index=True)
    order = np.lexsort((*distinct.T, -scores[first]))[:n_best]
    rows, best = distinct[order].tolist(), scores[first][order].tolist()
    return tuple(Path(tuple(row), score) for row, score in zip(rows, best, strict=True))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Paths of a document, best first, and what is known of them.

    A decoder that has a posterior gives `paths` and `posterior`; `decoders.search` adds which
    `decoder` it was, whether no path can be better (`exact`), the scores of the path of first
    candidates and of the best path known (the optimum if `optimal`), and log Z of a posterior with
    a possible path, and the `direction` of the search. Whoever knows the features adds margins of
    the sentences with candidates (`path_margins` up to order 1) and the number of near-ties; None
    where they were not computed.
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
