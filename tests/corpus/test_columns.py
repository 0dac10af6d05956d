"""K-best lists as columns: plain lists and dictionaries are the truth."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.columns import (
    KBest,
    Label,
    SparseColumns,
    column_names,
    offsets_of,
    places_of,
    split_words,
)

sparse_rows = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.integers(-9, 9).map(float), max_size=4), max_size=8
)


def kbest(lists: list[list[bytes]]) -> KBest:
    """Made-up lists: the lines are the texts with blanks around them, features the row numbers."""
    texts = [text for texts in lists for text in texts]
    n = len(texts)
    counts = np.array([len(texts) for texts in lists], dtype=np.int64)
    stops = np.cumsum([len(text) + 3 for text in texts], dtype=np.int64) - 1
    spans = np.array(
        [(stop - len(text) - 2, stop) for text, stop in zip(texts, stops, strict=True)]
    )
    spans = spans.astype(np.int64).reshape(n, 2)
    return KBest(
        source="dev.kbest",
        first=10,
        offsets=offsets_of(counts),
        blob=b"\n".join(b" %s " % text for text in texts),
        spans=spans,
        text_spans=spans + np.array([1, -1]),
        line_numbers=np.arange(1, n + 1),
        ranks=places_of(counts),
        dense=np.arange(2.0 * n).reshape(n, 2),
        totals=np.arange(1.0 * n),
        sparse=SparseColumns.of([{f"s_{row}": 1.0} for row in range(n)]),
        labels=(Label("LM0", 2),),
    )


texts = st.lists(st.lists(st.sampled_from([b"a", b"b  c", b"", b"\xe3\x80\x80"]), max_size=4))


def test_a_row_has_its_line_text_and_tokens() -> None:
    lists = kbest([[b"a"], [], [b"b   c", "d\u3000e\xa0f g".encode()]])
    assert (len(lists), lists.n, lists.counts.tolist()) == (3, 3, [1, 0, 2])
    assert [list(lists.rows(t)) for t in range(3)] == [[0], [], [1, 2]]
    assert lists.line(1) == b" b   c "
    assert lists.text(1) == b"b c"
    assert lists.tokens(2) == ["d\u3000e\xa0f".encode(), b"g"]


@settings(deadline=None)
@given(texts, st.integers(1, 5))
def test_the_top_of_lists_is_the_start_of_each(lists: list[list[bytes]], k: int) -> None:
    whole, top = kbest(lists), kbest(lists).top(k)
    assert len(top) == len(whole)
    for t, expected in enumerate(lists):
        assert [top.blob[slice(*top.text_spans[row])] for row in top.rows(t)] == expected[:k]
        kept = list(whole.rows(t))[:k]
        assert top.dense[top.rows(t)].tolist() == whole.dense[kept].tolist()
        assert top.line_numbers[top.rows(t)].tolist() == [row + 1 for row in kept]
        assert top.ranks[top.rows(t)].tolist() == list(range(len(kept)))
        assert top.totals is not None
        assert top.totals[top.rows(t)].tolist() == kept
    assert top.sparse.dot({"s_0": 5.0}).tolist() == [5.0 * (line == 1) for line in top.line_numbers]


@settings(deadline=None)
@given(sparse_rows, st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).map(float)))
def test_a_sparse_product_is_that_of_dictionaries(
    rows: list[dict[str, float]], weights: dict[str, float]
) -> None:
    columns = SparseColumns.of(rows)
    expected = [sum(weights.get(name, 0) * v for name, v in row.items()) for row in rows]
    assert columns.dot(weights).tolist() == expected
    order = np.arange(len(rows))[::-2]
    assert columns.take(order).dot(weights).tolist() == expected[::-2]
    assert columns.names == tuple(dict.fromkeys(name for row in rows for name in row))


def test_no_sparse_features_are_rows_of_zeros() -> None:
    assert SparseColumns.empty(3).dot({"a": 1.0}).tolist() == [0, 0, 0]
    assert SparseColumns.empty(3).take(np.array([2, 0])).dot({}).tolist() == [0, 0]


def test_a_million_names_need_memory_for_their_entries_only() -> None:
    columns = SparseColumns.of([{f"s_{row}_{i}": 1.0 for i in range(10)} for row in range(10_000)])
    assert len(columns.names) == 100_000
    assert columns.values.nbytes + columns.indices.nbytes + columns.indptr.nbytes < 2_000_000


def test_places_in_lists_begin_at_zero_in_each() -> None:
    assert places_of(np.array([2, 0, 1, 3])).tolist() == [0, 1, 0, 0, 1, 2]
    assert places_of(np.zeros(0, np.int64)).tolist() == []


def test_words_are_what_ascii_spaces_separate() -> None:
    text = " a\tb  c\u3000d \xa0".encode()
    assert split_words(text) == [b"a\tb", "c\u3000d".encode(), "\xa0".encode()]
    assert split_words(b"  ") == []


def test_a_label_of_several_values_numbers_them() -> None:
    assert column_names([Label("LM0", 1), Label("TM0", 2)]) == ["LM0", "TM0_0", "TM0_1"]
