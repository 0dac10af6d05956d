"""What was decided for the documents of a run, for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from rerank.corpus.kbest import KBest
from rerank.pipeline.searching import Searched


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for one document.

    score: of the path found; baseline_score: of the path of first candidates; best_score: of the
    best path known, which is the optimum if `optimal`; exact: whether no path can be better than
    the one found; choices: index in the file's list of each sentence, None where it has no
    candidates; near_ties: sentences whose choice the scorers' errors could turn, None where they
    were not counted; log_normaliser: of p ∝ exp(alpha · score), of a search that samples, None
    where no path is possible too; further: score and choices of the next best paths.
    """

    id: str
    score: float
    baseline_score: float
    best_score: float
    optimal: bool
    exact: bool
    search: str
    choices: tuple[int | None, ...]
    near_ties: int | None = None
    log_normaliser: float | None = None
    further: tuple[tuple[float, tuple[int | None, ...]], ...] = ()

    @classmethod
    def empty(cls, name: str, sentences: int) -> Self:
        """Of a document without candidates."""
        return cls(name, 0.0, 0.0, 0.0, True, True, "none", (None,) * sentences, 0)

    @classmethod
    def of(cls, name: str, kbest: KBest, found: Searched, near_ties: int | None) -> Self:
        """Of a document that was searched."""
        posterior = found.posterior
        return cls(
            name,
            found.score,
            found.baseline_score,
            found.best_score,
            found.optimal,
            found.exact,
            found.decoder,
            ranks(kbest, found.choices),
            near_ties,
            None if posterior is None or posterior.extinct else posterior.log_normaliser,
            tuple((path.score, ranks(kbest, path.choices)) for path in found.further),
        )

    @property
    def gap(self) -> float:
        """How much better the best known path is."""
        return 0.0 if self.best_score == self.score else self.best_score - self.score

    def to_dict(self) -> dict[str, object]:
        """The document in a `--summary`."""
        return {
            "id": self.id,
            "score": finite(self.score),
            "baseline_score": finite(self.baseline_score),
            "best_score": finite(self.best_score),
            "best": "optimum" if self.optimal else "best known",
            "gap": finite(self.gap),
            "exact": self.exact,
            "search": self.search,
            "near_ties": self.near_ties,
            "log_normaliser": self.log_normaliser,
            "choices": list(self.choices),
            "further": [
                {"score": finite(score), "choices": list(choices)}
                for score, choices in self.further
            ],
        }


@dataclass(frozen=True, slots=True)
class Decoding:
    """All documents' choices, and totals; `signature` says what decided them."""

    documents: tuple[Choice, ...]
    signature: str = ""

    def to_dict(self) -> dict[str, object]:
        """The `--summary` object."""
        near_ties = [d.near_ties for d in self.documents]
        return {
            "schema": 1,
            "signature": self.signature,
            "documents": [d.to_dict() for d in self.documents],
            **{name: finite(value) for name, value in self.totals().items()},
            "best": "optimum" if self.optimal else "best known",
            "exact": self.exact,
            "sentences": self.sentences,
            "changed": self.changed,
            "near_ties": None if None in near_ties else sum(n or 0 for n in near_ties),
        }

    def totals(self) -> dict[str, float]:
        """Sums over the documents of their scores, and of what is missing to the best known."""
        return {
            "score": sum(d.score for d in self.documents),
            "baseline_score": sum(d.baseline_score for d in self.documents),
            "best_score": sum(d.best_score for d in self.documents),
            "gap": sum(d.gap for d in self.documents),
        }

    @property
    def sentences(self) -> int:
        """Source sentences, with candidates or without."""
        return sum(len(d.choices) for d in self.documents)

    @property
    def changed(self) -> int:
        """Sentences whose first candidate was not taken."""
        return sum(1 for d in self.documents for c in d.choices if c)

    @property
    def exact(self) -> bool:
        """Whether no document's path can be better."""
        return all(d.exact for d in self.documents)

    @property
    def optimal(self) -> bool:
        """Whether the best scores are all known to be optima."""
        return all(d.optimal for d in self.documents)

    def to_text(self) -> str:
        """One line for people."""
        searches = sorted({d.search for d in self.documents})
        total = self.totals()
        best = "optimum" if self.optimal else "best known"
        return (
            f"{len(self.documents)} documents, {self.sentences} sentences, {self.changed} "
            f"changed; model score {total['score']:.3f} (first candidates "
            f"{total['baseline_score']:.3f}, {best} {total['best_score']:.3f}, gap "
            f"{total['gap']:.3f}); search {', '.join(searches)}, "
            + ("exact" if self.exact else "not exact")
            + (f"\n{self.signature}" if self.signature else "")
        )


def finite(value: float) -> float | None:
    """The number for JSON, which has none of infinite size."""
    return float(value) if math.isfinite(value) else None


def ranks(kbest: KBest, choices: Sequence[int]) -> tuple[int | None, ...]:
    """Index in the file's list of the choice of every sentence; None where it has no candidates.

    choices: of the sentences that have any, among the candidates that were kept.
    """
    chosen = iter(choices)
    return tuple(
        int(kbest.ranks[kbest.rows(t)[next(chosen)]]) if kbest.counts[t] else None
        for t in range(len(kbest))
    )
