"""A document id per source line, alone on it or in one of its fields.

    talk-1
    talk-1
    talk-2

A line of several fields is one id unless a field is chosen, since ids may have spaces. Fields are
parted by TABs if a line has any, otherwise by white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from rerank.corpus.documents import ID_BYTES, Documents, EvaluationSet, at_most
from rerank.errors import InputError, UsageError
from rerank.formats.documents.table import ReadingChoices
from rerank.formats.tokens import shown
from rerank.notices import Notices

_PLACE = re.compile("[1-9][0-9]{0,5}")


class Docids:
    """Lines of document ids."""

    name = "docids"
    description = "A document id per sentence; --docs-field N if it is a field of the line."
    example = b"talk-1\ntalk-1\ntalk-2\n"
    has_texts = False
    takes_field = True

    def detect(self, head: Sequence[bytes]) -> bool:
        """True: any lines can be document ids, so that this format comes last."""
        return True

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents of the ids; InputError for a blank line and for an id that resumes."""
        found = limited(lines, source)
        if choices.most is not None:
            found = at_most(found, choices.most, source)
        if choices.field is not None:
            found = _fields(found, choices.field, source)
        documents = Documents.from_lines(
            found,
            source=source,
            interleaved=choices.interleaved,
            may_be_sizes=choices.field is None,
        )
        if len(documents) == documents.n_lines:
            option = ""
            if _numbered(documents.ids, "_"):
                option = "as Z-MERT has them, give --docs-format numbered-docids"
            elif choices.field is None and _numbered(documents.ids, r"\s+"):
                option = "with their numbers, give --docs-field 1"
            if option:
                notices.add(
                    "document of one sentence whose id ends in a number that counts on; if these "
                    f"are sentences of documents, {option}",
                    source=source,
                    line=1,
                    count=len(documents),
                )
        return EvaluationSet(source, documents)


def _numbered(ids: Sequence[str], separator: str) -> bool:
    """Whether all ids are a name, the separator and 1, 2, …, and some names have two at least."""
    pattern = re.compile(rf"(.+?){separator}([0-9]{{1,8}})")
    parts = [found.groups() for one in ids if (found := pattern.fullmatch(one))]
    if len(parts) < len(ids):
        return False
    pairs = [(int(b) - int(a)) for (one, a), (other, b) in pairwise(parts) if one == other]
    return bool(pairs) and set(pairs) == {1}


def limited(lines: Iterable[bytes], source: str) -> Iterator[bytes]:
    """The lines; InputError for one that is too long for an id."""
    for n, line in enumerate(lines, 1):
        if len(line) > ID_BYTES:
            raise InputError(
                f"expected at most {ID_BYTES} bytes in a line, found more; is this a file of "
                "document ids? `rerank list document-formats` shows the other formats",
                source=source,
                line=n,
            )
        yield line


def _fields(lines: Iterable[bytes], field: str, source: str) -> Iterator[bytes]:
    """The chosen field of each line."""
    if _PLACE.fullmatch(field) is None:
        raise UsageError(f"--docs-field {field}: expected the number of a field, from 1")
    place = int(field) - 1
    for n, line in enumerate(lines, 1):
        fields = line.split(b"\t") if b"\t" in line else line.split()
        if place >= len(fields):
            raise InputError(
                f"expected a field {field} as --docs-field says, found {len(fields)} "
                f"in {shown(line)}; choose another field",
                source=source,
                line=n,
            )
        yield fields[place]
