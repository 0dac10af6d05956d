"""Documents by their sizes: the number of sentences of each, alone or behind its id.

    talk-1 87
    talk-2 112

Numbers alone are recognised as sizes only if the user says so: they may be document ids, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.documents import EvaluationSet, at_most, shown_id
from rerank.errors import InputError
from rerank.formats.documents.table import ReadingChoices, sizes_of
from rerank.formats.tokens import shown
from rerank.notices import Notices

_DIGITS = 9  # of a size
LARGEST = 10**_DIGITS - 1  # sentences of all documents


class Sizes:
    """Lines `SIZE` or `DOCID SIZE`."""

    name = "sizes"
    description = (
        "The number of sentences of each document, as DOCID SIZE; sizes without ids need "
        "--docs-format sizes."
    )
    example = b"talk-1 2\ntalk-2 1\n"
    has_texts = False
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether each line is a name and a number, and no name comes twice."""
        fields = [line.split() for line in head]
        while fields and not fields[-1]:
            fields.pop()
        if not all(len(parts) == 2 and _is_size(parts[1]) for parts in fields):
            return False
        return len({parts[0] for parts in fields}) == len(fields)

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents; InputError for another line, and for an id that comes twice."""
        limited = lines if choices.most is None else at_most(iter(lines), choices.most, source)
        documents = sizes_of(_sizes(limited, source, notices))
        if not documents.ids:
            raise InputError("expected the size of each document, found none", source=source)
        return EvaluationSet(source, documents)


def _sizes(lines: Iterable[bytes], source: str, notices: Notices) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    total = 0
    for n, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            notices.add("blank line, skipped", source=source, line=n)
            continue
        if len(parts) > 2 or not _is_size(parts[-1]):
            raise InputError(
                f"expected SIZE or DOCID SIZE, found {shown(line)}; a size is the number of "
                "sentences of a document",
                source=source,
                line=n,
            )
        name, size = parts[0].decode() if len(parts) == 2 else str(n), int(parts[-1])
        if name in seen:
            raise InputError(
                f"expected each document once, found {shown_id(name)} again; give each document "
                "an id of its own, or, if these are ids and sentence numbers, --docs-format docids "
                "--docs-field 1",
                source=source,
                line=n,
            )
        total += size
        if total > LARGEST:
            raise InputError(
                f"expected at most {LARGEST:,} sentences, found {total:,}; are these numbers ids? "
                "then give --docs-format docids",
                source=source,
                line=n,
            )
        if size == 0:
            notices.add("empty document", source=source, line=n)
        seen.add(name)
        yield name, size


def _is_size(token: bytes) -> bool:
    return token.isdigit() and len(token) <= _DIGITS
