"""Document ids, one per line or a field of it; awk-like splitting is the truth of fields."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.formats.documents.docids import Docids
from rerank.formats.documents.table import DocumentFile, ReadingChoices, read_documents
from rerank.notices import Notices

words = st.text("abc-7", min_size=1, max_size=4)


def read(lines: list[bytes], field: str | None = None, *, interleaved: bool = False) -> Documents:
    choices = ReadingChoices(field, interleaved)
    return Docids().read(iter(lines), Notices(), source="docs", choices=choices).documents


@given(st.lists(st.tuples(words, words, words), min_size=1, max_size=8), st.integers(1, 3))
def test_a_chosen_field_is_the_id(rows: list[tuple[str, str, str]], field: int) -> None:
    for mark in (" ", "\t", "  "):
        lines = [mark.join(row).encode() for row in rows]
        found = read(lines, str(field), interleaved=True)
        assert found.ids == tuple(dict.fromkeys(row[field - 1] for row in rows))


def test_a_tab_parts_fields_that_have_spaces() -> None:
    assert read([b"my talk\t1", b"my talk\t2"], "1") == Documents(("my talk",), (0, 2))


@pytest.mark.parametrize(
    ("lines", "field", "message"),
    [
        ([b"a 1", b"b"], "2", r"docs:2: expected a field 2 as --docs-field says, found 1 in 'b'"),
        ([b"a 1", b" "], "1", r"docs:2: expected a field 1 .*, found 0"),
        (
            [b"x" * 9000],
            None,
            "docs:1: expected at most 8192 bytes in a line, found",
        ),
    ],
)
def test_lines_without_the_field_are_refused(
    lines: list[bytes], field: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(lines, field)


@pytest.mark.parametrize("field", ["0", "01", "-1", "x", "9999999"])
def test_a_field_is_a_number_from_1(field: str) -> None:
    with pytest.raises(UsageError, match="expected the number of a field, from 1"):
        read([b"a"], field)


def test_lines_of_a_document_are_put_together_if_that_is_allowed() -> None:
    lines = [b"a", b"b", b"a", b"c", b"b"]
    with pytest.raises(InputError, match=r"docs:3: .*'a', which began on line 1.*interleaved"):
        read(lines)
    found = read(lines, interleaved=True)
    assert (found.ids, found.starts) == (("a", "b", "c"), (0, 2, 4, 5))
    assert found.in_order("vwxyz") == ["v", "x", "w", "z", "y"]
    assert read([b"a", b"a", b"b"], interleaved=True) == Documents(("a", "b"), (0, 2, 3))


@pytest.mark.parametrize(
    ("lines", "warned"),
    [
        (["a 1", "a 2", "b 1", "b 2"], True),
        (["a\t1", "b\t1", "b\t2"], True),
        (["my talk 7", "my talk 8"], True),
        (["a 1", "a 3"], False),
        (["a 1", "b 1"], False),
        (["a 1", "a 1"], False),
        (["a b", "a c"], False),
    ],
    ids=str,
)
def test_ids_with_numbers_of_sentences_are_a_warning(lines: list[str], warned: bool) -> None:
    notices, content = Notices(), [line.encode() for line in lines]
    Docids().read(iter(content), notices, source="docs", choices=ReadingChoices())
    found = [line for line in notices.lines() if "--docs-field 1, first at docs:1" in line]
    assert len(found) == len(notices.lines()) == warned


def test_a_field_makes_a_file_one_of_ids_whatever_it_looks_like(tmp_path: Path) -> None:
    """`a 1`, `b 3` would otherwise be ids with sizes."""
    (tmp_path / "docs").write_text("a 1\nb 3\n")
    assert read_documents(tmp_path / "docs", Notices()).documents.n_lines == 4
    chosen = DocumentFile(tmp_path / "docs", field="1")
    assert read_documents(chosen, Notices()).documents == Documents(("a", "b"), (0, 1, 2))
