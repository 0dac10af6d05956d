"""Columns of k-best lists: plain lists and dictionaries are the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus import columns
from rerank.corpus.columns import (
    SparseColumns,
    TextColumn,
    joined_spans,
    places_of,
    runs_of_lists,
)

sparse_rows = st.lists(
    st.dictionaries(st.sampled_from("abcde"), st.integers(-9, 9).map(float), max_size=4), max_size=8
)


@given(st.lists(st.binary(max_size=4), max_size=6), st.data())
def test_a_text_column_is_a_list_of_byte_strings(texts: list[bytes], data: st.DataObject) -> None:
    column = TextColumn.of(texts)
    assert len(column) == len(texts)
    assert column.to_list() == texts
    order = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    taken = column.take(np.array(order, np.int64))
    assert [taken[row] for row in range(len(taken))] == [texts[row] for row in order]
    assert taken.blob is column.blob


def test_texts_may_lie_anywhere_in_their_block_of_memory() -> None:
    column = TextColumn(b"0 ||| a b ||| 1", np.array([[6, 9], [6, 7], [0, 0]]))
    assert column.to_list() == [b"a b", b"a", b""]


@given(st.binary(max_size=12), st.binary(min_size=1, max_size=3), st.integers(1, 5))
def test_a_block_in_a_file_is_searched_as_one_in_memory(
    block: bytes, text: bytes, part: int
) -> None:
    nothing = np.zeros((0, 2), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_PART", part)
        assert TextColumn(memoryview(block), nothing).block_has(text) is (text in block)
    assert TextColumn(block, nothing).block_has(text) is (text in block)


def test_spans_are_those_of_texts_joined_by_one_byte() -> None:
    assert joined_spans(np.array([2, 0, 1])).tolist() == [[0, 2], [3, 3], [4, 5]]


@given(sparse_rows, st.dictionaries(st.sampled_from("abcdef"), st.integers(-9, 9).map(float)))
def test_a_sparse_product_is_that_of_dictionaries(
    rows: list[dict[str, float]], weights: dict[str, float]
) -> None:
    columns = SparseColumns.of(rows)
    expected = [sum(weights.get(name, 0) * v for name, v in row.items()) for row in rows]
    assert columns.dot(weights).tolist() == expected
    order = np.arange(len(rows))[::-2]
    assert columns.take(order).dot(weights).tolist() == expected[::-2]
    assert [columns.row(row) for row in range(len(rows))] == rows
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


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 30))
def test_runs_of_lists_are_all_lists_in_order_and_as_long_as_allowed(
    sizes: list[int], most: int
) -> None:
    offsets = np.cumsum([0, *sizes])
    runs = list(runs_of_lists(offsets, most))
    assert [t for begin, end in runs for t in range(begin, end)] == list(range(len(sizes)))
    for begin, end in runs:
        assert end == begin + 1 or sum(sizes[begin:end]) <= most
        assert end == len(sizes) or sum(sizes[begin : end + 1]) > most


@given(st.lists(sparse_rows, min_size=1, max_size=4), st.data())
def test_joined_sparse_rows_keep_their_features(
    pieces: list[list[dict[str, float]]], data: st.DataObject
) -> None:
    rows = [row for piece in pieces for row in piece]
    joined = SparseColumns.concatenate([SparseColumns.of(piece) for piece in pieces])
    assert [joined.row(row) for row in range(len(joined))] == rows
    assert joined.names == SparseColumns.of(rows).names
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    taken = joined.take(np.array(order, np.int64)).without_unused_names()
    assert [taken.row(row) for row in range(len(taken))] == [rows[row] for row in order]
    assert taken.names == SparseColumns.of([rows[row] for row in order]).names
