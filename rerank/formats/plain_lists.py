"""Lists of plain text: K lines a sentence, hypotheses with TABs between, or counted lines.

`flat:K`: K lines of each sentence, and their numbers in another file, a line of numbers with blanks
or TABs between them for each hypothesis: features F0, F1, …. A hypothesis whose two lines are blank
fills up a shorter list, and is left out. `portage:K` is the same, as the tools of Portage have it
(https://github.com/nrc-cnrc/PortageTextProcessing): `nbest`, whose shorter lists end with blank
lines, and `ffvals`.

`tabs`: all hypotheses of a sentence on a line with TABs between them, without scores, as the lists
of DoRe (https://github.com/kanekomasahiro/Re-ranking). Nothing in these files says that they are
lists: their format must be named.

`mbr-nmt`: `NC=n`, then the n candidates of a sentence, without scores, as
https://github.com/Roxot/mbr-nmt has them.

A number beside each hypothesis is a score, which becomes a feature, too: OpenNMT, CTranslate2,
Sockeye and tensor2tensor write lines as

    the text TAB -0.41        -0.41 ||| the text        the text TAB -0.41 TAB a text TAB -0.66
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rerank.errors import InputError, UsageError
from rerank.formats.row_builder import ReadOnlyFormat, RowBuilder
from rerank.formats.tokens import HEAD, numbers_cure
from rerank.text import NUMBER, shown

PADDING = "blank line that fills up a list, skipped"
BLANK_HYPOTHESIS = "blank hypothesis between TABs, skipped"
_COUNT = re.compile(rb"NC=([0-9]{1,7})")


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

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> Flat:
        """The format with its number of hypotheses and, from the file `name`, their scores."""
        if k is None:
            raise UsageError(
                f"--kbest-format {self.name}: expected {self.name}:K, the number of lines of a "
                f"sentence, for example {self.name}:100"
            )
        return replace(self, k=k, scores=scores, scores_name=name)

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file; InputError for another number of scores."""
        if self.k is None:
            raise UsageError(f"expected --kbest-format {self.name}:K for a flat list")
        scores = None if self.scores is None else iter(self.scores)
        names: tuple[str, ...] = ()
        number = 0
        for text in found.numbered(lines):
            number, values = found.line, list[float]()
            if scores is not None:
                tokens = next(scores, None)
                if tokens is None:
                    raise self._unequal(number - 1, f"more in {found.source}")
                try:
                    values = [found.number(token, "a score") for token in tokens.split()]
                except InputError as fault:
                    others = not NUMBER.fullmatch(tokens.split()[0])
                    head = [tokens, *islice(scores, HEAD)] if others else []
                    message = f"{fault}{numbers_cure(head, self.scores_name)}"
                    raise InputError(message, source=self.scores_name, line=number) from None
            if not text.strip() and not values:
                found.note(PADDING)
                continue
            if len(names) != len(values):
                names = tuple(f"F{i}" for i in range(len(values)))
            found.add((number - 1) // self.k, text, names, values)
            yield
        if scores is not None and next(scores, None) is not None:
            raise self._unequal(number, f"more in {self.scores_name}")
        if number % self.k:
            raise InputError(
                f"expected {self.k} lines for each sentence, found {number:,} lines, "
                f"{number % self.k} of the last one; give the right K in --kbest-format "
                f"{self.name}:K",
                source=found.source,
                line=number,
            )

    def _unequal(self, number: int, where: str) -> InputError:
        """The error about files of different lengths."""
        return InputError(
            f"expected a line of scores for each hypothesis, found {number:,} lines and {where}",
            source=self.scores_name,
            line=number or None,
        )


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


class Tabs(ReadOnlyFormat):
    """The format of lines whose hypotheses have TABs between them."""

    name = "tabs"
    description = "Plain text, the hypotheses of a sentence on a line with TABs between, as DoRe's."
    suffixes = (".tsv", ".txt")
    example = b"the text\ta text"

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file.

        A line without any words is a sentence with one empty hypothesis; beside other hypotheses
        a blank one is left out, and counted.
        """
        for line in found.numbered(lines):
            texts = [text for text in line.split(b"\t") if text.strip()] or [b""]
            skipped = line.count(b"\t") + 1 - len(texts)
            if skipped:
                found.note(BLANK_HYPOTHESIS, count=skipped)
            for text in texts:
                found.add(found.line - 1, text, (), [])
            yield


class MbrNmt(ReadOnlyFormat):
    """The format of mbr-nmt's candidates."""

    name = "mbr-nmt"
    description = "Candidates of mbr-nmt: NC=n before the n lines of a sentence; no features."
    suffixes = (".txt",)
    example = b"NC=2\nthe text\na text"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank is a number of candidates."""
        return _COUNT.fullmatch(next(line for line in head if line.strip()).strip()) is not None

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file."""
        sentence, left = -1, 0
        for line in found.numbered(lines):
            if left:
                found.add(sentence, line, (), [])
                left -= 1
                yield
                continue
            count = _COUNT.fullmatch(line.strip())
            if count is None:
                raise found.fault(f"expected NC=n before the next candidates, found {shown(line)}")
            sentence, left = sentence + 1, int(count[1])
        if left:
            raise found.fault(f"expected {left} more candidates of the last sentence, found none")

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last `NC=n`, which may be `NC=0`."""
        last, left = -1, 0
        for line in lines:
            if left:
                left -= 1
            elif count := _COUNT.fullmatch(line.strip()):
                last, left = last + 1, int(count[1])
        return last
