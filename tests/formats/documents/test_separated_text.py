"""Text whose documents are parted by lines; bytes.split is the truth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.formats.documents.separated_text import BlankLines, EqualsLines, without_separators
from rerank.formats.documents.table import PLAIN, ReadingChoices
from rerank.notices import Notices

texts = st.lists(
    st.lists(st.sampled_from([b"it burns .", b"a lamp", b"=cmd()", b"= x"]), min_size=1),
    min_size=1,
)


@given(texts, st.sampled_from([b"", b" \t"]), st.integers(1, 3), st.booleans())
def test_documents_are_what_stands_between_blank_lines(
    documents: list[list[bytes]], blank: bytes, more: int, at_end: bool
) -> None:
    lines = [blank] * (more - 1)
    for n, sentences in enumerate(documents):
        lines += [blank] * (more * (n > 0)) + sentences
    lines += [blank] * at_end
    found = BlankLines().read(iter(lines), Notices(), source="", choices=PLAIN).documents
    assert [stop - start for start, stop in map(found.span, range(len(found)))] == list(
        map(len, documents)
    )
    flat = [line for sentences in documents for line in sentences]
    if len(lines) > len(flat):
        assert without_separators(lines, found) == flat


def test_a_line_of_equals_signs_closes_a_document() -> None:
    lines = EqualsLines.example.splitlines()
    found = EqualsLines().read(iter(lines), Notices(), source="", choices=PLAIN).documents
    assert found == Documents(("1", "2"), (0, 2, 3))
    assert without_separators(lines, found) == [lines[0], lines[1], lines[3]]


def test_a_text_with_other_blank_lines_keeps_them() -> None:
    documents = Documents(("a", "b"), (0, 2, 3))
    assert without_separators([b"x", b"", b"y", b"z"], documents) is None
    assert without_separators([b"x", b"y", b"", b"z"], documents) == [b"x", b"y", b"z"]


@pytest.mark.parametrize(
    ("lines", "is_text"),
    [
        ([b"the lamp", b"it burns", b"", b"she left"], True),
        ("灯亮了\n\n她走了".encode().split(b"\n"), True),
        ([b"", b"the lamp", b"it burns", b""], False),  # blank lines only at the ends
        ([b"talk-1", b"talk-1", b"", b"talk-2"], False),  # ids, one of which is missing
        ([b"my talk", b"my talk", b"my talk", b"", b"her talk", b"her talk"], False),
    ],
)
def test_ids_are_not_taken_for_text(lines: list[bytes], is_text: bool) -> None:
    assert BlankLines().detect(lines) is is_text


def test_blank_lines_alone_are_no_documents() -> None:
    with pytest.raises(InputError, match="expected one document id per source line, found none"):
        BlankLines().read(iter([b"", b""]), Notices(), source="", choices=PLAIN)


def test_no_more_sentences_are_read_than_can_be_needed() -> None:
    """Of a file of a gigabyte only a few lines are read."""
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield b"x"

    choices = ReadingChoices(most=lambda: 70_000)
    with pytest.raises(InputError, match="expected at most 70,000 document ids"):
        BlankLines().read(endless(), Notices(), source="", choices=choices)  # type: ignore[arg-type]
    assert taken == 70_001
