"""Any metric of single hypotheses: numbers that another tool has written to a file.

A row of statistics is `[score, 1]` (float64); the score of a sum is the mean over the sentences
that have candidates. Larger is taken for better: write the negative of an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.formats import tokens
from rerank.metrics import Counted, Rows
from rerank.notices import Notices
from rerank.scorers.file_scorer import ListInfo
from rerank.scorers.hypothesis_scores import HypothesisScores
from rerank.signature import LENGTH, signature

LARGEST = 1e100  # of a number: sums of any corpus stay finite


class _Finite(HypothesisScores):
    """The lines of the file; no infinity stands for a number, whatever lists may have."""

    def number(self, token: bytes, line: int) -> float:
        """A finite number, not above `LARGEST` in size; InputError with its place."""
        stripped = token.strip(b" \t\r")
        value = float(stripped) if tokens.NUMBER.fullmatch(stripped) else math.nan
        if abs(value) <= LARGEST:
            return value
        kind = f"number up to {LARGEST:g}" if math.isfinite(value) else "finite decimal number"
        raise self.fault(
            f"expected a {kind} for {self.name}, found {tokens.shown(stripped)}; "
            f"write one for each line of {self.info.kbest}, in their order",
            line,
        )


@dataclass(frozen=True, slots=True)
class PerHypothesis:
    """The mean of the numbers of the hypotheses that are chosen.

    Line i of the file belongs to line i of the list, whatever candidates are kept of it. Blank
    lines at the end count on neither side. InputError for a file of another length, before any
    work, and at a line that is no finite number.
    """

    width: ClassVar[int] = 2
    lines: HypothesisScores

    @classmethod
    def read(cls, name: str, path: Path, given: ListInfo, notices: Notices) -> PerHypothesis:
        """The metric `name` of a file, plain or compressed, for the lists that are `given`."""
        return cls(_Finite(name, path, given, notices))

    @property
    def name(self) -> str:
        """The name given."""
        return self.lines.name

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; a gap has none. References are not looked at."""
        values = self.lines.values(kbest)
        return Counted(np.stack([values, np.ones(kbest.n)], axis=1), np.zeros(self.width))

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Means (…) of summed statistics (…, 2); 0 of nothing."""
        return np.asarray(summed[..., 0] / np.maximum(summed[..., 1], 1))

    def shown(self, score: float) -> float:
        """The same."""
        return score

    def signature(self, n_references: int) -> str:
        """`rerank|metric:comet|file:dev.comet.gz=ab12cd34|v:0.1.0`."""
        digest = self.lines.digest[:LENGTH]
        return signature({"metric": self.name, "file": f"{self.lines.path.name}={digest}"})
