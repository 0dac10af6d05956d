"""Perplexity and accuracy of predicted topics, for people and for machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    def to_tsv(self) -> str:
        """A header, and a line for each name; numbers unrounded, nothing for an infinite one."""
        rows = [
            (name, "" if one.perplexity is None else str(one.perplexity), str(one.accuracy))
            for name, one in self.figures.items()
        ]
        return "".join(
            "\t".join(row) + "\n" for row in (("model", "perplexity", "accuracy"), *rows)
        )

    def to_text(self) -> str:
        """A table, and how many topics were predicted."""
        from tabulate import tabulate

        rows = [
            (
                name,
                "infinite" if one.perplexity is None else f"{one.perplexity:.2f}",
                f"{one.accuracy:.2%}",
            )
            for name, one in self.figures.items()
        ]
        headings = ["", "perplexity", "accuracy"]
        align = ["left", "right", "right"]
        table: str = tabulate(rows, headings, colalign=align, disable_numparse=True)
        predictions = max(one.predictions for one in self.figures.values())
        return f"{table}\n\n{predictions:,} topics of next sentences\n"
