"""Accuracy of language models in the choice of the next sentence, by kind of score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.accuracy import wilson_interval
from rerank.metrics.discrimination import share
from rerank.metrics.significance import FEWEST_DOCUMENTS, sign_flip_p_value
from rerank.report.coherence import ModelFacts

HEADINGS = {"normalised": "eq. 4", "log_p": "log p", "pmi": "log p − log p(s)"}
_NOTES = """\
accuracy: share of passages whose last sentence has the highest score among those of the block;
a tie of n counts 1/n [95% interval of Wilson, passages taken as independent]
eq. 4: log p(s | context) less the log of its mean over the contexts of the block (Ghosh et al.
2016); log p: without this normaliser; log p(s): at the beginning of a document
"""


@dataclass(frozen=True, slots=True)
class SelectionAccuracy:
    """Accuracy by one score, its 95% interval, and number of choices that are tied."""

    accuracy: float
    low: float
    high: float
    ties: int

    @classmethod
    def of(cls, outcomes: NDArray[np.float64]) -> SelectionAccuracy:
        """Accuracy of (n,) outcomes: 1 right, 0 wrong, a part of 1 in a tie."""
        successes = float(outcomes.sum())
        ties = int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))
        low, high = wilson_interval(successes, len(outcomes))
        return cls(successes / len(outcomes), low, high, ties)

    def to_text(self) -> str:
        """`63.0 [61.7, 64.3]`, in per cent."""
        return f"{100 * self.accuracy:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True, slots=True)
class SelectionModel:
    """Accuracies of one model, by score; exact: whether its scores are log-probabilities."""

    model: ModelFacts
    exact: bool
    accuracies: Mapping[str, SelectionAccuracy]


@dataclass(frozen=True, slots=True)
class SelectionComparison:
    """Two models, and two-sided p of their difference by the score of equation 4.

    p: of a sign-flip test over documents, None with too few of them.
    """

    first: str
    second: str
    difference: float
    p: float | None


@dataclass(frozen=True, slots=True)
class NextSentenceReport:
    """Accuracies of language models on the same blocks.

    block: passages of each; context: sentences before the one to choose; candidates: how blocks
    are made; left_out: passages in no block.
    """

    models: tuple[SelectionModel, ...]
    comparisons: tuple[SelectionComparison, ...]
    blocks: int
    block: int
    context: int
    candidates: str
    left_out: int
    seed: int

    @staticmethod
    def compared(
        outcomes: Mapping[str, NDArray[np.float64]], documents: NDArray[np.int64], seed: int
    ) -> tuple[SelectionComparison, ...]:
        """Each two models, given (n,) outcomes by model, and the document (n,) of each passage."""
        _, rows = np.unique(documents, return_inverse=True)
        passages = np.bincount(rows).astype(np.float64)
        statistics = {
            lm: np.stack([np.bincount(rows, own), passages], axis=1) for lm, own in outcomes.items()
        }
        found = []
        for first, second in combinations(outcomes, 2):
            rng = np.random.default_rng(seed)
            p = sign_flip_p_value(statistics[first], statistics[second], share, rng=rng)
            difference = float(outcomes[first].mean() - outcomes[second].mean())
            found.append(SelectionComparison(first, second, difference, p))
        return tuple(found)

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded; `chance`: accuracy of a random choice."""
        facts = ("blocks", "block", "context", "candidates", "left_out", "seed")
        models = [
            {
                **asdict(own.model),
                "normalised": own.exact,
                "accuracies": {name: asdict(one) for name, one in own.accuracies.items()},
            }
            for own in self.models
        ]
        return {
            "schema": 1,
            **{name: getattr(self, name) for name in facts},
            "chance": 1 / self.block,
            "models": models,
            "comparisons": [asdict(own) for own in self.comparisons],
        }

    def to_text(self) -> str:
        """A table with a row for each model, and one with a row for each two, in per cent."""
        rows = [
            [own.model.lm, *(own.accuracies[name].to_text() for name in HEADINGS)]
            for own in self.models
        ]
        text = _table(["model", *HEADINGS.values()], rows)
        if self.comparisons:
            found = [
                [own.first, own.second, f"{100 * own.difference:.1f}", _p(own.p)]
                for own in self.comparisons
            ]
            text += _table(["model", "and model", "difference, eq. 4", "p"], found)
        text += (
            f"{self.blocks:,} blocks of {self.block:,} passages, {self.context:,} sentences and "
            f"the next one each; {self.left_out:,} passages left out; chance: "
            f"{100 / self.block:.1f}\n{_NOTES}"
        )
        if self.comparisons:
            text += f"p: sign-flip test over documents, which needs {FEWEST_DOCUMENTS} of them\n"
        odd = [own.model.lm for own in self.models if not own.exact]
        return text + (f"scores of {', '.join(odd)} are not normalised\n" if odd else "")


def _p(p: float | None) -> str:
    return "–" if p is None else f"{p:.2g}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from tabulate import tabulate

    align = ["right" if heading not in ("model", "and model") else "left" for heading in headings]
    return f"{tabulate(rows, headings, colalign=align, disable_numparse=True)}\n\n"
