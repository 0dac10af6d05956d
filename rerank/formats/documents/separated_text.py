"""Text whose documents are parted by blank lines or by lines of `=`; a sentence on each other line.

As `wmt-unwrap -d` and many language-model corpora have it. Separators are no sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from rerank.corpus.documents import Documents, EvaluationSet, at_most
from rerank.formats.documents.table import ReadingChoices
from rerank.notices import Notices


class BlankLines:
    """Text with a blank line between documents."""

    name = "blank-lines"
    description = "Text, a sentence per line, with a blank line between documents."
    example = b"the lamp is lit .\nit burns .\n\nshe left .\n"
    has_texts = False
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether there is a blank line inside, and the others look like text, not like ids."""
        filled = [n for n, line in enumerate(head) if line.strip()]
        if filled[-1] - filled[0] + 1 == len(filled):
            return False
        pairs = [(head[a], head[b]) for a, b in pairwise(filled) if b == a + 1]
        repeated = sum(one == other for one, other in pairs)
        words = any(b" " in head[n].strip() or not head[n].isascii() for n in filled)
        return words and 2 * repeated <= len(pairs)

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents, with numbers from 1 as ids."""
        return EvaluationSet(source, _documents(lines, source, choices, _is_blank))


class EqualsLines:
    """Text with a line of `=` between documents."""

    name = "equals-lines"
    description = "Text, a sentence per line, with a line of = signs between documents."
    example = b"the lamp is lit .\nit burns .\n=====\nshe left .\n"
    has_texts = False
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether there is a line of `=`."""
        return any(map(_is_equals, head))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents, with numbers from 1 as ids."""
        return EvaluationSet(source, _documents(lines, source, choices, _is_equals))


def without_separators(lines: Sequence[bytes], documents: Documents) -> list[bytes] | None:
    """The sentences of a text that is parted by blank lines or `=` just where documents end.

    None for another text. O(lines).
    """
    ends = set(documents.starts[1:])
    for is_separator in (_is_blank, _is_equals):
        sentences = [line for line in lines if not is_separator(line)]
        if len(sentences) != documents.n_lines:
            continue
        places, n = set[int](), 0
        for line in lines:
            if is_separator(line):
                places.add(n)
            n += not is_separator(line)
        if places - {0, n} == ends - {n}:
            return sentences
    return None


def _documents(
    lines: Iterable[bytes],
    source: str,
    choices: ReadingChoices,
    is_separator: Callable[[bytes], bool],
) -> Documents:
    """The documents between separators."""
    ids = _ids(lines, is_separator)
    if choices.most is not None:
        ids = at_most(ids, choices.most, source)
    return Documents.from_lines(ids, source=source)


def _ids(lines: Iterable[bytes], is_separator: Callable[[bytes], bool]) -> Iterator[bytes]:
    """The number of its document, from 1, for each sentence."""
    number, ended = 0, True
    for line in lines:
        if is_separator(line):
            ended = True
            continue
        number, ended = number + ended, False
        yield b"%d" % number


def _is_blank(line: bytes) -> bool:
    return not line.strip()


def _is_equals(line: bytes) -> bool:
    return bool(line.strip()) and not line.strip().strip(b"=")
