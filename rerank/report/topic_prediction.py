"""Perplexity and accuracy of predicted topics, for people and for machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rerank.table import Column, Table

if TYPE_CHECKING:
    from lm.topics.prediction.evaluation import TopicFigures


@dataclass(frozen=True, slots=True)
class TopicPredictionReport:
    """Figures by name, of a predictor and of baselines, on the same topics of a text."""

    figures: Mapping[str, TopicFigures]

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values; a perplexity that is infinite is null."""
        predictions = {one.predictions for one in self.figures.values()}
        return {
            "schema": 1,
            "predictions": max(predictions),
            **{name.replace(" ", "_"): one.as_json() for name, one in self.figures.items()},
        }

    def table(self) -> Table:
        """A row for each name; numbers unrounded, nothing for an infinite one."""
        columns = Column("model"), Column("perplexity", ".2f"), Column("accuracy", ".2%")
        rows = [(name, one.perplexity, one.accuracy) for name, one in self.figures.items()]
        return Table(columns, rows, missing="infinite")

    def to_text(self) -> str:
        """A table, and how many topics were predicted."""
        found = self.table()
        table = replace(found, columns=(Column(""), *found.columns[1:])).to_text()
        predictions = max(one.predictions for one in self.figures.values())
        return f"{table}\n\n{predictions:,} topics of next sentences\n"
