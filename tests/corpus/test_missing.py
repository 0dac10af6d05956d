"""Source lines without hypotheses: what is said of them, and the lists with sources in their place.

The truth is a list that has the source line itself, with zeros for its features.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ReadingOptions, documents_of
from rerank.corpus.kbest import KBest
from rerank.corpus.missing import AS_EMPTY, AS_ERROR, AS_SOURCE, note_missing
from rerank.errors import InputError
from rerank.files import arrays
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.formats import moses
from rerank.formats.moses import read_rows
from rerank.notices import Notices


def line(sentence: int, text: str, value: float = 0, more: str = " ||| 0") -> bytes:
    return f"{sentence} ||| {text} ||| A= {value} B= {value} 0{more}".encode()


def read(
    lines: Sequence[bytes],
    documents: Documents,
    sources: Sequence[bytes] | None = None,
    *,
    options: ReadingOptions | None = None,
    store: ArrayStore = IN_MEMORY,
) -> list[KBest]:
    """The lists of each document; sources: a line for each sentence."""
    rows = read_rows(lines, Notices(), source="dev.kbest")
    parts = None if sources is None else iter(documents.split(documents.in_order(sources)))
    options = options or ReadingOptions()
    return [
        *documents_of(rows, documents, Notices(), options, sources=parts, store=store),
    ]


def columns(kbest: KBest) -> tuple[object, ...]:
    """What lists have, but for their lines in the file."""
    return (
        kbest.texts.to_list(),
        kbest.dense.tolist(),
        kbest.ranks.tolist(),
        kbest.offsets.tolist(),
        None if kbest.totals is None else kbest.totals.tolist(),
        [kbest.sparse.row(row) for row in range(kbest.n)],
    )


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=4),
    st.sampled_from([None, 1, 2]),
    st.booleans(),
    st.sampled_from([" ||| 0", ""]),
)
def test_a_source_line_is_a_candidate_as_if_the_list_had_it(
    sizes: list[list[int]], top: int | None, diverse: bool, more: str
) -> None:
    """sizes: candidates of each sentence of each document."""
    flat = [k for document in sizes for k in document]
    starts = [sum(len(one) for one in sizes[:d]) for d in range(len(sizes) + 1)]
    documents = Documents(tuple(map(str, range(len(sizes)))), tuple(starts))
    own = [line(t, f"w{i} x", i, more) for t, k in enumerate(flat) for i in range(k)]
    if not own:
        return
    options = ReadingOptions(top=top, diverse=diverse and top is not None)
    sources = [f" s{t} ".encode() for t in range(len(flat))]
    added = [line(t, f"s{t}", 0, more) for t, k in enumerate(flat) if k == 0]
    whole = sorted([*own, *added], key=lambda one: int(one.split(b" ", 1)[0]))
    truth = [columns(kbest) for kbest in read(whole, documents, options=options)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_CHUNK", 60)
        patch.setattr(arrays, "SMALL", 1)
        for store in (IN_MEMORY, ArrayStore(0)):
            found = read(own, documents, sources, options=options, store=store)
            assert [columns(kbest) for kbest in found] == truth
    for kbest in found:
        listed = [kbest.line_number(row) for row in range(kbest.n)]
        assert [number is None for number in listed] == [
            text.startswith(b"s") for text in kbest.texts.to_list()
        ]


def test_sparse_features_of_a_source_line_are_zero() -> None:
    lines = [line(0, "a").replace(b"A=", b"x_y= 2 A="), line(2, "c")]
    (kbest,) = read(lines, Documents.one(3), [b"s0", b"s1", b"s2"])
    assert [kbest.sparse.row(row) for row in range(3)] == [{"x_y": 2}, {}, {}]


def test_sources_are_those_of_the_lines_that_documents_name() -> None:
    documents = Documents(("a", "b"), (0, 2, 3), (0, 2, 1), 4)
    found = read([line(0, "a"), line(1, "b")], documents, [b"s0", b"s1", b"s2", b"s3"])
    assert [kbest.texts.to_list() for kbest in found] == [[b"a", b"s2"], [b"b"]]


def test_empty_lines_are_a_warning_with_the_first_ids() -> None:
    notices = Notices()
    note_missing([40, 17, 41, 50, 52, 51], AS_EMPTY, notices, source="dev.kbest")
    assert notices.lines() == [
        "6 x source line without hypotheses (ids 17, 40, 41, 50, 51, …), first at dev.kbest"
    ]


def test_sources_in_place_of_hypotheses_are_a_warning_too() -> None:
    notices = Notices()
    note_missing([17], AS_SOURCE, notices, source="dev.kbest")
    assert notices.lines() == [
        "1 x source line that is its own translation, for lack of hypotheses (ids 17), "
        "first at dev.kbest"
    ]


def test_an_error_names_the_count_the_first_ids_and_the_cure() -> None:
    with pytest.raises(InputError) as fault:
        note_missing([41, 17, 40], AS_ERROR, Notices(), source="dev.kbest")
    assert str(fault.value) == (
        "dev.kbest: expected hypotheses of every source line, found none of 3 (ids 17, 40, 41); "
        "translate these lines again, or give --missing empty or --missing source"
    )
    note_missing([], AS_ERROR, Notices(), source="dev.kbest")
