"""Scores of a decoding's candidates chosen in other contexts than those of the decoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rerank.report.evaluation import Evaluation
from rerank.table import Table

_LEGEND = """
no context: every sentence as if it were the whole document; another document: the sentences that
were chosen there; references: the first reference of the other sentences; the weights are the same
changed: sentences whose text is not that of the decoding
"""


@dataclass(frozen=True, slots=True)
class Ablation:
    """An evaluation whose systems are kinds of context, and in how many lines each differs.

    changed: lines whose text is not that of the decoding, by kind.
    """

    evaluation: Evaluation
    changed: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values, with `changed` in each system."""
        found = self.evaluation.to_dict()
        for system in found["systems"]:
            system["changed"] = self.changed[system["name"]]
        return found

    def to_text(self) -> str:
        """The tables of the evaluation, and the numbers of changed lines."""
        counts = "; ".join(f"{name} {count:,}" for name, count in self.changed.items())
        return f"{self.evaluation.to_text()}changed: {counts}\n{_LEGEND}"

    def table(self) -> Table:
        """The evaluation as `Evaluation.table`."""
        return self.evaluation.table()

    def to_latex(self) -> str:
        """The evaluation as `Evaluation.to_latex`."""
        return self.evaluation.to_latex()

    def to_markdown(self) -> str:
        """The evaluation as `Evaluation.to_markdown`."""
        return self.evaluation.to_markdown()
