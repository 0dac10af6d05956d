"""Sparse features read by machine code: a split of the tokens is the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.formats.sparse_kernel import read_sparse, room, sparse_columns

names = st.text("ab_é=", min_size=1, max_size=3).map(lambda name: f"_{name}")
rows_of_features = st.lists(
    st.dictionaries(names, st.integers(-99, 99).map(float), max_size=4), max_size=6
)


@given(rows_of_features)
def test_features_are_those_of_the_rows(rows: list[dict[str, float]]) -> None:
    lines = [" ".join(f"{name}= {value}" for name, value in row.items()) for row in rows]
    blob = np.frombuffer("\n".join([*lines, ""]).encode(), np.uint8)
    entries, i, m = room(blob, len(rows)), 0, 0
    for row, line in enumerate(lines):
        end = i + len(line.encode())
        after, m = read_sparse(blob, i, end, entries, m)
        assert after == end
        entries.ends[row + 1] = m
        i = end + 1
    columns, invalid = sparse_columns(blob, entries)
    assert [columns.row(row) for row in range(len(rows))] == rows
    assert columns.names == tuple(dict.fromkeys(name for row in rows for name in row))
    assert not invalid.any()


@pytest.mark.parametrize(
    ("text", "n", "rest"),
    [
        (b"a_= 1 b= 2", 1, b"b= 2"),  # not sparse
        (b"a_= 1 b_=2", 1, b"b_=2"),  # glued
        (b"a_= 1 b_= x", 1, b"b_= x"),
        (b"a_= 1 b_= 2|x", 1, b"b_= 2|x"),
        (b"a_= 1 b_=", 1, b"b_="),
        (b"a_= 1||| 3", 1, b"||| 3"),
        (b"a_= 1 |_|= 2 ||| 3", 2, b"||| 3"),
        (b"a_|||= 1", 0, b"a_|||= 1"),
        (b"a_\t= 1", 0, b"a_\t= 1"),
    ],
)
def test_reading_ends_before_a_token_of_another_shape(text: bytes, n: int, rest: bytes) -> None:
    blob = np.frombuffer(b"x " + text, np.uint8)
    after, m = read_sparse(blob, 1, len(blob), room(blob, 1), 0)
    assert m == n
    assert bytes(blob[after:]).lstrip() == rest


def test_rows_with_a_name_twice_or_not_in_utf_8_are_not_valid() -> None:
    blob = np.frombuffer(b"a_= 1 b_= 2 a_= 3 b_= 4", np.uint8)
    entries = room(blob, 2)
    _, m = read_sparse(blob, 0, len(blob), entries, 0)
    entries.ends[1:] = [3, m]
    assert sparse_columns(blob, entries)[1].tolist() == [True, False]
    blob = np.frombuffer(b"\xff_= 1", np.uint8)
    entries = room(blob, 2)
    _, m = read_sparse(blob, 0, len(blob), entries, 0)
    entries.ends[1:] = [0, m]
    columns, invalid = sparse_columns(blob, entries)
    assert invalid.tolist() == [False, True]
    assert columns.names == ()
