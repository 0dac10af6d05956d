"""What a decoding did: whether it helped, where, what changed, why, and how it was made.

The sections answer these questions in their order. The page is rendered by `rerank.report.page`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rerank.report.evaluation import Evaluation
from rerank.report.explanation import Explanation


@dataclass(frozen=True, slots=True)
class ChangedSentence:
    """A sentence whose text is not the baseline's.

    number: in its document, from 0; before: the text that was chosen for the sentence before;
    rank: of the choice in its list, from 0; alone: the text without context, if it is another one;
    added: what each feature adds to the lead over the baseline, in nats, weighted.
    """

    number: int
    source: str | None
    before: str | None
    baseline: str
    chosen: str
    reference: str
    rank: int
    margin: float | None
    alone: str | None
    added: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ReportedDocument:
    """A document: BLEU of the baseline and of the decoding, counts, and what the search says.

    by_context: sentences whose text would be another without context, None where no score depends
    on other sentences; exact, gap, score_gain: of a summary, gap and gain in model score in nats;
    shown: its changed sentences, or the first of them, None for a document that is only counted.
    """

    id: str
    sentences: int
    changed: int
    by_context: int | None
    baseline_bleu: float
    bleu: float
    exact: bool | None = None
    gap: float | None = None
    score_gain: float | None = None
    shown: Sequence[ChangedSentence] | None = None

    @property
    def gain(self) -> float:
        """Difference in BLEU."""
        return self.bleu - self.baseline_bleu


@dataclass(frozen=True, slots=True)
class RunReport:
    """A decoding beside its baseline.

    evaluation: of two systems, the baseline first; search: figures of the summary; weights: by
    feature; tuning: the provenance of the weights; inputs: (what it is, file name, SHA-256).
    """

    title: str
    evaluation: Evaluation
    explanation: Explanation
    documents: Sequence[ReportedDocument]
    search: Mapping[str, Any] | None
    weights: Mapping[str, float]
    tuning: Mapping[str, Any]
    inputs: Sequence[tuple[str, str, str]]
    version: str

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the page as JSON values, unrounded, and the texts that it shows."""
        documents = [{**asdict(one), "gain": one.gain} for one in self.documents]
        return {
            "schema": 1,
            "title": self.title,
            "version": self.version,
            "evaluation": self.evaluation.to_dict(),
            "explanation": self.explanation.to_dict(),
            "documents": documents,
            "search": self.search,
            "weights": dict(self.weights),
            "tuning": dict(self.tuning),
            "inputs": [list(one) for one in self.inputs],
        }
