"""Rows for reviewers, of `decode --table`: what was chosen, what decided, and the other texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rerank.formats.review_tables import FINAL, OF_ENGINE, PLACE, SOURCE, TEXT, Cell, Marked
from rerank.formats.run_records import Choice
from rerank.formats.weights import OF_AGREEMENT
from rerank.report.explanation import word_runs

AGREEMENT = "agreement"


@dataclass(frozen=True, slots=True)
class ReviewRows:
    """Rows of the sentences of a run, under the headings.

    engines: names of the systems; none of other lists, whose first candidate has a column instead.
    labels: what features are called, by their names, if not by these (`labels_of`). sources, terms:
    whether there are sources, and a glossary. by_utility: whether choices are those of expected
    utility, not of scores.
    """

    engines: Sequence[str]
    labels: Mapping[str, str]
    sources: bool
    terms: bool
    by_utility: bool

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [
            *PLACE,
            *([SOURCE] if self.sources else []),
            *("engine", TEXT, "decided by", "margin", "changed"),
            *([f"{OF_ENGINE}{name}" for name in self.engines] or ["first candidate"]),
            *(["terms kept", "terms missed"] if self.terms else []),
            *("score", AGREEMENT, "defects", "errors", FINAL),
        ]

    def row(
        self,
        place: tuple[int, str, int],
        source: str | None,
        choice: Choice | None,
        score: float | None = None,
        agreement: float | None = None,
    ) -> list[Cell]:
        """The row of a sentence; without a choice, of one that has no candidates.

        place: line, from 1, document, and segment in it; score: the total of the choice.
        """
        cells: list[Cell] = [*place, *([source] if self.sources else [])]
        if choice is None:
            return cells + [None] * (len(self.headings) - len(cells))
        first, text = choice.texts["first"] or "", choice.texts["chosen"] or ""
        runs = [(new, old != new) for old, new in word_runs(first, text) if new]
        outputs = choice.outputs or {}
        missed = "; ".join(f"{term} → {translations}" for term, translations in choice.missed)
        kept = "; ".join(f"{term} → {text}" for term, text, is_kept in choice.terms if is_kept)
        return [
            *cells,
            *(", ".join(choice.systems or ()), Marked(runs) if runs else text),
            *(self.decided_by(choice), choice.margin, "yes" if choice.changed else "no"),
            *([outputs.get(name) for name in self.engines] or [first]),
            *([kept, missed] if self.terms else []),
            *(score, agreement),
            ", ".join(f"{kind} {n}" for kind, n in choice.defects.items()),
            "; ".join(map(error_text, choice.errors)),
            text,
        ]

    def decided_by(self, choice: Choice) -> str:
        """What decided a choice, in words: the feature with the largest share of its margin."""
        if choice.over_runner_up is None:
            return "no other text"
        if self.by_utility:
            return AGREEMENT
        over = {name: value or 0.0 for name, value in choice.over_runner_up.items()}
        name = max(over, key=over.__getitem__, default="")
        if choice.by_context or (choice.margin or 0.0) < 0:
            return "context"
        if not over or over[name] <= 0:
            return "kept: no other is better" if not choice.changed else "nothing: equal scores"
        label = self.labels.get(name, name)
        if label == AGREEMENT and choice.agreements:
            here = {engine: value for engine, (value, _) in choice.agreements.items()}
            own = max(here[engine] for engine in choice.systems or here)
            return label if own == max(here.values()) else "agreement of the engine in all"
        return label


def labels_of(systems: Mapping[str, str], models: Sequence[str]) -> dict[str, str]:
    """What features are called in `decided by`, by their names.

    systems: name of each by the label of its indicator feature; models: names of language models.
    """
    return {
        **dict.fromkeys(OF_AGREEMENT, AGREEMENT),
        **{label: f"weight of {name}" for label, name in systems.items()},
        **{name: f"language model {name}" for name in models},
        "defects": "the next is no translation",
    }


def error_text(error: Mapping[str, str]) -> str:
    """`major accuracy: the words`, of an error that a judge has found."""
    return f"{error['severity']} {error['category']}: {error['span']}"
