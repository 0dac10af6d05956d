"""Result of a search for one document: one record, from the decoder to files and reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from decoders.directions import Direction
from decoders.posterior import Posterior
from decoders.problem import Path


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
        """Candidates (S,) of the best path found."""
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
