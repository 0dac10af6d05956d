"""Accuracy of language models on contrastive items, in total and per group of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.files.terminal import printable
from rerank.metrics.accuracy import sign_test, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

CONDITIONS = ("context", "null", "other")
_NOTES = """\
accuracy: share of items whose right sentence has a higher log p than every wrong one; ties count ½
[95% interval of Wilson]; null: with no sentence before; other: with another item's context
p: sign test over items (exact McNemar), accuracy with context against null and against other
"""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Mean outcome of items (1 right, ½ tie, 0 wrong), its 95% interval, and number of ties."""

    accuracy: float
    low: float
    high: float
    ties: int

    @classmethod
    def of(cls, outcomes: NDArray[np.float64]) -> Accuracy:
        """Accuracy of (n,) outcomes."""
        successes = float(outcomes.sum())
        low, high = wilson_interval(successes, len(outcomes))
        return cls(successes / len(outcomes), low, high, int(np.count_nonzero(outcomes == 0.5)))

    def to_text(self) -> str:
        """`71.4 [67.2, 75.3]`, in per cent."""
        return f"{100 * self.accuracy:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True, slots=True)
class GroupAccuracy:
    """Accuracies of one model on one group of items, by condition.

    p: two-sided, of the accuracy with context against that of each other condition.
    """

    group: str
    items: int
    accuracies: Mapping[str, Accuracy]
    p: Mapping[str, float]

    @classmethod
    def of(cls, group: str, outcomes: Mapping[str, NDArray[np.float64]]) -> GroupAccuracy:
        """Accuracies and tests of (n,) outcomes in each condition, `context` among them."""
        with_context = outcomes["context"]
        p = {}
        for condition, others in outcomes.items():
            if condition != "context":
                better = int(np.count_nonzero(with_context > others))
                p[condition] = sign_test(better, int(np.count_nonzero(with_context < others)))
        accuracies = {condition: Accuracy.of(found) for condition, found in outcomes.items()}
        return cls(group, len(with_context), accuracies, p)


@dataclass(frozen=True, slots=True)
class ModelAccuracy:
    """Accuracies of one model on each group; order: None if unbounded; oov: share of words.

    normalised: whether its scores are log-probabilities.
    """

    lm: str
    digest: str
    order: int | None
    normalised: bool
    oov: float
    groups: tuple[GroupAccuracy, ...]


@dataclass(frozen=True, slots=True)
class ContrastiveReport:
    """Accuracies of language models on the same items; seed: of the choice of other contexts."""

    models: tuple[ModelAccuracy, ...]
    items: int
    seed: int

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded."""
        models = [asdict(model) for model in self.models]
        return {"schema": 1, "items": self.items, "seed": self.seed, "models": models}

    def to_tsv(self) -> str:
        """A header, and a line for each model, group and condition; numbers unrounded."""
        figures = ("accuracy", "low", "high", "ties")
        lines = [["lm", "group", "items", "condition", *figures, "p"]]
        for lm, group in self._groups():
            for condition, found in group.accuracies.items():
                values = [getattr(found, figure) for figure in figures]
                cells = [group.items, condition, *values, group.p.get(condition, "")]
                lines.append([lm, printable(group.group), *map(str, cells)])
        return "".join("\t".join(line) + "\n" for line in lines)

    def to_text(self) -> str:
        """A table with a row for each model and group, accuracies in per cent."""
        from tabulate import tabulate

        present = [c for c in CONDITIONS if c in self.models[0].groups[0].accuracies]
        tested = [condition for condition in present if condition != "context"]
        rows = [
            [lm, printable(group.group), f"{group.items:,}"]
            + [group.accuracies[condition].to_text() for condition in present]
            + [f"{group.p[condition]:.2g}" for condition in tested]
            for lm, group in self._groups()
        ]
        headings = ["model", "group", "items", *present, *(f"p {c}" for c in tested)]
        align = ["left", "left", *["right"] * (len(headings) - 2)]
        table: str = tabulate(rows, headings, colalign=align, disable_numparse=True)
        odd = [model.lm for model in self.models if not model.normalised]
        note = f"scores of {', '.join(odd)} are not normalised\n" if odd else ""
        return f"{table}\n\n{_NOTES}{note}"

    def _groups(self) -> Iterator[tuple[str, GroupAccuracy]]:
        for model in self.models:
            for group in model.groups:
                yield model.lm, group
