"""An id of each sentence that is its document's id, `_` and a number, as Z-MERT takes them.

    talk-1_1
    talk-1_2
    talk-2_1

Such lines could be ids of documents of one sentence: they are read with `--docs-format
numbered-docids`. Source: `-docInfo` of Z-MERT (Zaidan 2009), https://cs.jhu.edu/~ozaidan/zmert/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.documents import Documents, EvaluationSet, at_most
from rerank.errors import InputError
from rerank.formats.documents.docids import limited
from rerank.formats.documents.table import ReadingChoices
from rerank.formats.tokens import shown
from rerank.notices import Notices

_NUMBERED = re.compile(rb"(.+)_[0-9]{1,9}")


class NumberedDocids:
    """Lines `DOCID_NUMBER`; the number is not used, since lines are in the order of the text."""

    name = "numbered-docids"
    description = "DOCID_NUMBER per sentence, as of Z-MERT; needs --docs-format numbered-docids."
    example = b"talk-1_1\ntalk-1_2\ntalk-2_1\n"
    has_texts = False
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: each such line may be an id of its own."""
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents; InputError for a line without a number, and for an id that resumes."""
        found = _documents(limited(lines, source), source)
        if choices.most is not None:
            found = at_most(found, choices.most, source)
        documents = Documents.from_lines(found, source=source, interleaved=choices.interleaved)
        return EvaluationSet(source, documents)


def _documents(lines: Iterable[bytes], source: str) -> Iterator[bytes]:
    """The document of each line."""
    for n, line in enumerate(lines, 1):
        numbered = _NUMBERED.fullmatch(line.strip())
        if numbered is None:
            raise InputError(
                f"expected DOCID_NUMBER, found {shown(line)}; leave out --docs-format if each line "
                "is a document id",
                source=source,
                line=n,
            )
        yield numbered[1]
