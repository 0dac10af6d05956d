"""Plain text with K hypotheses of each sentence, a line each, and their numbers in another file.

Nothing in such a file says that it is a list: it is read with `--kbest-format flat:K`. A line of
the scores file has the numbers of a hypothesis, with blanks or TABs between them: features F0,
F1, …. A hypothesis whose two lines are blank fills up a shorter list, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rerank.corpus.kbest import KBestRows
from rerank.errors import InputError, UsageError
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat
from rerank.notices import Notices

PADDING = "blank line that fills up a list, skipped"


@dataclass(frozen=True, slots=True)
class Flat(ReadOnlyFormat):
    """The format of flat text; k: hypotheses of a sentence; scores: lines of the other file."""

    name = "flat"
    description = "Plain text, K lines a sentence: --kbest-format flat:K --kbest-scores FILE."
    suffixes = (".txt",)
    example = b"the text\na text"

    k: int | None = None
    scores: Iterable[bytes] | None = None
    scores_name: str = ""

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: any text could be one."""
        return False

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> Flat:
        """The format with its number of hypotheses and, from the file `name`, their scores."""
        if k is None:
            raise UsageError(
                f"--kbest-format {self.name}: expected {self.name}:K, the number of lines of a "
                f"sentence, for example {self.name}:100"
            )
        return replace(self, k=k, scores=scores, scores_name=name)

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file; InputError for another number of scores."""
        if self.k is None:
            raise UsageError(f"expected --kbest-format {self.name}:K for a flat list")
        found = Hypotheses(notices, source, clip)
        scores = None if self.scores is None else iter(self.scores)
        names: tuple[str, ...] | None = None
        number = 0
        for number, text in enumerate(lines, 1):
            found.at(number)
            values: list[float] = []
            if scores is not None:
                tokens = next(scores, None)
                if tokens is None:
                    raise self._unequal(number - 1, f"more in {source}")
                try:
                    values = [found.number(token, "a score") for token in tokens.split()]
                except InputError as fault:
                    raise InputError(str(fault), source=self.scores_name, line=number) from None
            if not text.strip() and not values:
                notices.add(PADDING, source=source, line=number)
                continue
            if names is None or len(names) != len(values):
                names = tuple(f"F{i}" for i in range(len(values)))
            found.add((number - 1) // self.k, text, names, values)
            if found.full:
                yield found.rows()
        if scores is not None and next(scores, None) is not None:
            raise self._unequal(number, f"more in {self.scores_name}")
        if number % self.k:
            raise InputError(
                f"expected {self.k} lines for each sentence, found {number:,} lines, "
                f"{number % self.k} of the last one; give the right K in --kbest-format "
                f"{self.name}:K",
                source=source,
                line=number,
            )
        if len(found):
            yield found.rows()

    def _unequal(self, number: int, where: str) -> InputError:
        """The error about files of different lengths."""
        return InputError(
            f"expected a line of scores for each hypothesis, found {number:,} lines and {where}",
            source=self.scores_name,
            line=number or None,
        )
