"""Tables of documents; the four ways to count sentences name the same documents."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.formats.documents.spans import Spans
from rerank.formats.documents.table import PLAIN
from rerank.notices import Notices


def read(lines: list[bytes]) -> Documents:
    return Spans().read(iter(lines), Notices(), source="docs", choices=PLAIN).documents


@given(st.lists(st.integers(1, 20), min_size=2, max_size=6), st.sampled_from([0, 1]), st.booleans())
def test_ends_belong_to_their_document_or_to_the_next(
    sizes: list[int], first: int, closed: bool
) -> None:
    starts = [sum(sizes[:d]) for d in range(len(sizes) + 1)]
    lines = [
        f"d{d} {a + first} {b + first - closed}".encode()
        for d, (a, b) in enumerate(pairwise(starts))
    ]
    assert Spans().detect(lines)
    ids = tuple(f"d{d}" for d in range(len(sizes)))
    assert read(lines) == Documents(ids, tuple(starts))


@pytest.mark.parametrize(("line", "n"), [(b"a 0 5", 5), (b"a 1 5", 5), (b"my talk\t0\t5", 5)])
def test_one_document_is_counted_as_its_first_number_says(line: bytes, n: int) -> None:
    assert read([line]).n_lines == n


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "expected DOCID START END, found no lines"),
        ([b"a 0 5", b"b 7 9"], "docs:2: expected 'b' to start with sentence 5, .*found 7"),
        ([b"a 0 5", b"b 4 9"], "docs:2: expected 'b' to start with sentence 5, .*found 4"),
        ([b"a 3 5"], "docs:1: expected the first document to start with sentence 0 or 1, found 3"),
        ([b"a 0 5", b"a 5 9"], "docs:2: .*found an id that comes twice"),
        ([b"a 1 5", b"b 6 2"], "docs:2: expected one range of sentences .*found 6 2"),
        ([b"a 0 5", b"b"], "docs:2: expected DOCID START END, found 'b'"),
    ],
)
def test_ranges_with_gaps_or_overlaps_are_refused(lines: list[bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(lines)


@pytest.mark.parametrize("lines", [[b"a b c"], [b"a 5 9"], [b"a 0 5", b"a 1 6"], [b"a 0 5", b"b"]])
def test_other_lines_are_not_taken_for_a_table(lines: list[bytes]) -> None:
    assert not Spans().detect(lines)
