"""A metric of another tool, which has written a score for each hypothesis to a file.

A row of statistics is `[score, 1]` (float64); the score of a sum is the mean over the sentences
that have candidates. Larger is better: the file of an error rate holds its negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.paths import FilePath
from rerank.formats import tokens
from rerank.metrics import Counted, MeanScore, Metric
from rerank.notices import Notices
from rerank.scorers.score_files import HypothesisScores, ListInfo
from rerank.signature import LENGTH, signature


class _Finite(HypothesisScores):
    """The lines of the file; infinite numbers are refused, also where --clip-inf allows them."""

    def number(self, token: bytes, line: int) -> float:
        """A finite number, not above `LARGEST` in size; InputError with file and line."""
        stripped = token.strip(b" \t\r")
        try:
            return tokens.number(stripped, self.name)
        except InputError as fault:
            raise self.fault(
                f"{fault}; write one for each line of {self.info.kbest}, in their order", line
            ) from None


class PerHypothesis(MeanScore, Metric):
    """The mean of a file's scores of the chosen hypotheses, under the name that the user gave.

    Line i of the file belongs to line i of the list, also where --top leaves candidates out. Blank
    lines at the end are ignored on both sides. InputError for a file of another length, before any
    work, and at a line that is not a finite number.
    """

    width = 2

    def __init__(self, name: str, path: FilePath, given: ListInfo, notices: Notices) -> None:
        self.name = name
        self._lines = _Finite(name, path, given, notices)

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; references are not used.

        Those of a gap are 0, and of the source line that takes its place.
        """
        values, listed = self._lines.values(kbest), np.asarray(kbest.line_numbers) > 0
        return Counted(np.stack([values, listed], axis=1), np.zeros(self.width))

    def signature(self, n_references: int) -> str:
        """`rerank|metric:comet|file:dev.comet.gz=ab12cd34|v:0.1.0`."""
        digest = self._lines.digest[:LENGTH]
        return signature({"metric": self.name, "file": f"{Path(self._lines.path).name}={digest}"})
