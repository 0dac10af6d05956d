"""How often language models find the order of the sentences of a document, as Lin et al. 2015."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rerank.report.coherence import CoherenceAccuracy, CoherenceComparison, CoherenceReport

_NOTES = """\
accuracy: right pairs of all pairs of a document and a permutation of its sentences; a pair is right
if log p of the document is higher, a tie is half a right one (Lin et al. 2015, table 1) [95%
interval, bootstrap of documents]
"""
_TEST = "p: two-sided sign-flip test over documents\n"


@dataclass(frozen=True, slots=True)
class OrderingReport:
    """Accuracies over pairs of documents and permutations, of the models of a coherence report."""

    of: CoherenceReport

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded; documents count from 0.

        `right` of a model: by document, ties ½.
        """
        return {
            "schema": 1,
            "pairs": self.of.pairs,
            "permutations": self.of.permutations,
            "seed": self.of.seed,
            "left_out": self.of.left_out,
            "models": [_model(own) for own in self.of.models],
            "comparisons": [_comparison(own) for own in self.of.comparisons],
            "documents": [asdict(own) for own in self.of.documents],
        }

    def to_text(self) -> str:
        """A table with a row for each model, and one with a row for each two, in per cent."""
        from tabulate import tabulate

        rows = [
            [
                own.model.lm,
                f"{sum(own.right):,g} of {self.of.pairs:,}",
                f"{100 * own.accuracy:.2f} [{100 * own.low:.2f}, {100 * own.high:.2f}]",
                f"{own.ties:,}",
            ]
            for own in self.of.models
        ]
        headings = ["model", "right", "accuracy", "ties"]
        align = ["left", *["right"] * 3]
        text = f"{tabulate(rows, headings, colalign=align, disable_numparse=True)}\n\n"
        if self.of.comparisons:
            found = [_comparison(own) for own in self.of.comparisons]
            rows = [
                [
                    str(own["higher"]),
                    str(own["lower"]),
                    f"{100 * own['difference']:.2f}",
                    "–" if own["p"] is None else f"{own['p']:.2g}",
                ]
                for own in found
            ]
            headings = ["higher", "lower", "difference", "p"]
            align = ["left", "left", "right", "right"]
            text += f"{tabulate(rows, headings, colalign=align, disable_numparse=True)}\n\n"
        return text + self.of.counts() + _NOTES + (_TEST if self.of.comparisons else "")


def _model(own: CoherenceAccuracy) -> dict[str, object]:
    """The figures of a model over pairs."""
    figures = {name: getattr(own, name) for name in ("accuracy", "low", "high", "ties", "right")}
    return {**asdict(own.model), **figures}


def _comparison(own: CoherenceComparison) -> dict[str, Any]:
    """Two models, the one with the higher accuracy over pairs first."""
    higher, lower = own.higher, own.lower
    if own.difference < 0:
        higher, lower = lower, higher
    return {
        "higher": higher,
        "lower": lower,
        "difference": abs(own.difference),
        "p": own.p_documents,
    }
