"""Results of a run, document by document and in total, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from decoders.result import NO_CANDIDATES, Direction, SearchResult
from rerank.corpus.kbest import KBest
from rerank.report.explanation import Explanation

_DIRECTIONS = {
    Direction.REVERSED: "from the last sentence to the first",
    Direction.BOTH: "of models in both directions",
}


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """Result of a search in one document, and where its candidates stand in the lists.

    search: of the sentences that have candidates; ranks: of each path found, best first, the index
    in the input's list of every sentence's candidate, None where a sentence has none; texts: of the
    chosen candidates, only of documents in memory.
    """

    id: str
    search: SearchResult
    ranks: tuple[tuple[int | None, ...], ...]
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, kbest: KBest, search: SearchResult = NO_CANDIDATES) -> Self:
        """The result of a document with these lists."""
        return cls(name, search, tuple(ranks(kbest, path.choices) for path in search.paths))

    @property
    def choices(self) -> tuple[int | None, ...]:
        """Index in the input's list of each sentence's choice; None where it has no candidates."""
        return self.ranks[0]

    @property
    def score(self) -> float:
        """Score of the path found."""
        return self.search.score

    @property
    def baseline_score(self) -> float:
        """Score of the first candidates."""
        return self.search.baseline_score

    @property
    def best_score(self) -> float:
        """Score of the best path known, the optimum if `optimal`."""
        return self.search.best_score

    @property
    def optimal(self) -> bool:
        """Whether no path scores higher than `best_score`."""
        return self.search.optimal

    @property
    def exact(self) -> bool:
        """Whether no path can be better."""
        return self.search.exact

    @property
    def near_ties(self) -> int | None:
        """Number of choices that lead by less than the error of the scores."""
        return self.search.near_ties

    @property
    def margins(self) -> tuple[float | None, ...]:
        """Lead of each choice over the best other candidate, in the score of the document.

        Where scores depend on more than one earlier sentence, in that of the sentence alone; below
        0 if the other sentences decided against it, infinite if there is no other candidate.
        """
        known = iter(self.search.clearest_margins or ())
        return tuple(None if choice is None else next(known, None) for choice in self.choices)

    def to_dict(self) -> dict[str, object]:
        """The document in a `--summary`."""
        search, (first, *further) = self.search, self.ranks
        return {
            "id": self.id,
            "score": finite(search.score),
            "baseline_score": finite(search.baseline_score),
            "best_score": finite(search.best_score),
            "best": "optimum" if search.optimal else "best known",
            "gap": finite(search.gap),
            "exact": search.exact,
            "search": search.decoder,
            "direction": search.direction,
            "near_ties": search.near_ties,
            "log_normaliser": search.log_normaliser,
            "choices": list(first),
            "further": [
                {"score": finite(path.score), "choices": list(choices)}
                for path, choices in zip(search.paths[1:], further, strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class CorpusResult:
    """Results of all documents, and their totals.

    signature: of the run; explanation: of a document or sentence, if it was asked for.
    """

    documents: tuple[DocumentResult, ...]
    signature: str = ""
    explanation: Explanation | None = None

    def totals(self) -> dict[str, Any]:
        """Sums over the documents, and what is known of all of them."""
        searches = [document.search for document in self.documents]
        choices = [choice for document in self.documents for choice in document.choices]
        near_ties = [one.near_ties for one in searches]
        names = ("score", "baseline_score", "best_score", "gap")
        return {
            **{name: sum((getattr(one, name) for one in searches), 0.0) for name in names},
            "best": "optimum" if all(one.optimal for one in searches) else "best known",
            "exact": all(one.exact for one in searches),
            "sentences": len(choices),
            "changed": sum(1 for choice in choices if choice),
            "near_ties": None if None in near_ties else sum(n or 0 for n in near_ties),
        }

    def to_dict(self) -> dict[str, object]:
        """The `--summary` object."""
        totals = self.totals()
        return {
            "schema": 1,
            "signature": self.signature,
            "documents": [document.to_dict() for document in self.documents],
            **{n: finite(v) if isinstance(v, float) else v for n, v in totals.items()},
        }

    def to_text(self) -> str:
        """One line for people."""
        searches = sorted({document.search.decoder for document in self.documents})
        ways = {document.search.direction for document in self.documents} - {Direction.FORWARD}
        total = self.totals()
        return (
            f"{len(self.documents)} documents, {total['sentences']} sentences, {total['changed']} "
            f"changed; model score {total['score']:.3f} (first candidates "
            f"{total['baseline_score']:.3f}, {total['best']} {total['best_score']:.3f}, gap "
            f"{total['gap']:.3f}); search {', '.join(searches)}, "
            f"{''.join(f'{_DIRECTIONS[way]}, ' for way in sorted(ways))}"
            + ("exact" if total["exact"] else "not exact")
            + (f"\n{self.signature}" if self.signature else "")
        )


def finite(value: float) -> float | None:
    """A number for JSON: None if it is infinite or NaN."""
    return float(value) if math.isfinite(value) else None


def ranks(kbest: KBest, choices: Sequence[int]) -> tuple[int | None, ...]:
    """Index in the input's list of each sentence's candidate; None where it has no candidates.

    choices: (S,) of the sentences with candidates, among the candidates that `--top` kept.
    """
    chosen = iter(choices)
    return tuple(
        int(kbest.ranks[kbest.rows(t)[next(chosen)]]) if kbest.counts[t] else None
        for t in range(len(kbest))
    )
