"""Lists of Portage: K lines a sentence, and their feature values in a parallel file (`ffvals`).

The files of rescoring: `nbest`, whose shorter lists end with blank lines, and `ffvals`, a line of
numbers with TABs for each hypothesis. They are read with `--kbest-format portage:K --kbest-scores
FILE`. Source: https://github.com/nrc-cnrc/PortageTextProcessing and its rescoring tools.
"""

from __future__ import annotations

from collections.abc import Iterable

from rerank.errors import UsageError
from rerank.formats.flat import Flat


class Portage(Flat):
    """The format of Portage's lists."""

    __slots__ = ()

    name = "portage"
    description = "Portage's lists, K lines a sentence: portage:K with --kbest-scores FFVALS."
    suffixes = (".nbest",)

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> Flat:
        """The format with its number of hypotheses and their feature values."""
        if scores is None:
            raise UsageError(
                "--kbest-format portage: expected --kbest-scores FILE, the feature values of each "
                "hypothesis, a line each"
            )
        return super().configured(k, scores, name)
