"""Ids of sentences that are the id of a document, `_` and a number."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.formats.documents.docids import Docids
from rerank.formats.documents.numbered_docids import NumberedDocids
from rerank.formats.documents.table import PLAIN, DocumentFile, read_documents
from rerank.notices import Notices

LINES = [b"talk_1_1", b"talk_1_2", b"talk_2_1"]


def read(lines: list[bytes]) -> Documents:
    found = NumberedDocids().read(iter(lines), Notices(), source="docs", choices=PLAIN)
    return found.documents


@given(st.dictionaries(st.text("a_1-/", min_size=1), st.integers(1, 9), min_size=1))
def test_documents_are_the_ids_before_the_numbers(sizes: dict[str, int]) -> None:
    lines = [f"{name}_{i}".encode() for name, size in sizes.items() for i in range(size)]
    found = read(lines)
    assert (found.ids, found.n_lines) == (tuple(sizes), len(lines))
    assert [stop - start for start, stop in map(found.span, range(len(found)))] == [*sizes.values()]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES[:2], b"talk"], r"docs:3: expected DOCID_NUMBER, found 'talk'"),
        ([*LINES, b"talk_1_3"], r"docs:4: .*'talk_1', which began on line 1, continues"),
        ([b"_1"], r"docs:1: expected DOCID_NUMBER"),
    ],
)
def test_faults_are_said_with_their_line(lines: list[bytes], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        read(lines)


def test_they_are_read_only_where_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "docs"
    path.write_bytes(b"\n".join(LINES) + b"\n")
    notices = Notices()
    assert len(read_documents(path, notices).documents) == 3
    (warning,) = notices.lines()
    assert "--docs-format numbered-docids" in warning
    named = DocumentFile(path, format_name="numbered-docids")
    notices = Notices()
    assert read_documents(named, notices).documents.ids == ("talk_1", "talk_2")
    assert notices.lines() == []


@pytest.mark.parametrize("ids", ["a_1 b_1", "a_1 a_3", "a_1 a_1", "a_1 a_2 b", "a_1", "_1 _2"])
def test_other_ids_are_no_reason_to_warn(ids: str) -> None:
    notices = Notices()
    Docids().read(iter(ids.encode().split()), notices, source="docs", choices=PLAIN)
    assert notices.lines() == []
