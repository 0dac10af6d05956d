"""Documents by their sizes; itertools.accumulate is the truth."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.formats.documents.sizes import Sizes
from rerank.formats.documents.table import PLAIN
from rerank.notices import Notices


def read(lines: list[bytes], notices: Notices | None = None) -> Documents:
    found = Sizes().read(iter(lines), notices or Notices(), source="docs", choices=PLAIN)
    return found.documents


@given(st.dictionaries(st.text("ab-/", min_size=1), st.integers(0, 99), min_size=1))
def test_sizes_add_up(sizes: dict[str, int]) -> None:
    lines = [f"{name} {size}".encode() for name, size in sizes.items()]
    starts = (0, *accumulate(sizes.values()))
    assert Sizes().detect(lines)
    assert read(lines) == Documents(tuple(sizes), starts)
    alone = [str(size).encode() for size in sizes.values()]
    assert read(alone).starts == starts
    assert not Sizes().detect(alone)  # numbers alone may be ids


def test_ids_that_come_twice_are_ids_with_numbers_of_sentences() -> None:
    lines = [b"a 1", b"a 2", b"b 1"]
    assert not Sizes().detect(lines)
    with pytest.raises(InputError, match=r"docs:2: .*found 'a' again; give each .*--docs-field 1"):
        read(lines)


def test_an_empty_document_is_a_warning() -> None:
    notices = Notices()
    assert read([b"a 0", b"b 1"], notices).starts == (0, 0, 1)
    assert notices.lines() == ["1 x empty document, first at docs:1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "expected the size of each document, found none"),
        ([b"a 1", b"b x"], r"docs:2: expected SIZE or DOCID SIZE, found 'b x'"),
        ([b"a b 1"], "docs:1: expected SIZE or DOCID SIZE"),
        ([b"-1"], "docs:1: expected SIZE or DOCID SIZE"),
        ([b"99999999999999999999"], "docs:1: expected SIZE or DOCID SIZE"),
        ([b"999999999", b"999999999"], "docs:2: expected at most 999,999,999 sentences"),
    ],
)
def test_other_lines_are_refused(lines: list[bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(lines)
