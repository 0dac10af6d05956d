"""Hypotheses as columns: plain lists are the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.columns import SparseColumns, TextColumn
from rerank.corpus.labels import Label
from rerank.corpus.rows import KBestRows, concatenate
from rerank.files import arrays
from rerank.files.arrays import ArrayStore

LABELS = (Label("A", 1),)


def made(texts: list[bytes], first: int = 0) -> KBestRows:
    """Rows with these texts, each inside a line; the other columns tell the rows apart."""
    lines = TextColumn.of([b"<%s>" % text for text in texts])
    numbers = np.arange(first, first + len(texts))
    return KBestRows(
        labels=LABELS,
        lines=lines,
        text_spans=lines.spans + np.array([1, -1]),
        line_numbers=numbers,
        sentences=numbers % 3,
        dense=numbers[:, None] / 2,
        totals=numbers / 4,
        sparse=SparseColumns.of([{"x": float(n)} if n % 2 else {} for n in numbers.tolist()]),
    )


def content(rows: KBestRows) -> list[tuple[object, ...]]:
    """All columns, row by row."""
    sparse = rows.sparse
    return [
        (
            rows.lines[row],
            rows.texts[row],
            int(rows.line_numbers[row]),
            int(rows.sentences[row]),
            rows.dense[row].tolist(),
            float(rows.totals[row]),
            sparse.row(row),
        )
        for row in range(len(rows))
    ]


texts = st.lists(st.binary(max_size=3), max_size=5)


@given(texts, st.data())
def test_rows_that_are_taken_keep_their_own_lines_only(
    lines: list[bytes], data: st.DataObject
) -> None:
    rows = made(lines)
    order = data.draw(st.permutations(range(len(rows))))[1:]
    taken = rows.take(np.array(order, np.int64))
    assert content(taken) == [content(rows)[row] for row in order]
    assert taken.lines.blob == b"\n".join([rows.lines[row] for row in order])


@given(st.lists(texts, min_size=1, max_size=4))
def test_pieces_are_put_together_in_their_order(pieces: list[list[bytes]]) -> None:
    starts = np.cumsum([0, *map(len, pieces)]).tolist()
    parts = [made(piece, start) for piece, start in zip(pieces, starts, strict=False)]
    assert content(concatenate(parts)) == [row for part in parts for row in content(part)]


@given(st.lists(texts, min_size=1, max_size=4))
def test_rows_in_files_are_those_in_memory(parts: list[list[bytes]]) -> None:
    store = ArrayStore(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "SMALL", 1)
        pieces = [made(lines, first=10 * i) for i, lines in enumerate(parts)]
        found = concatenate([piece.filed(store) for piece in pieces], store)
    expected = concatenate(pieces)
    assert content(found) == content(expected)
    assert bytes(found.lines.blob) == expected.lines.blob
    assert found.lines.to_list() == expected.lines.to_list()
    assert found.nbytes == expected.nbytes
    assert store.on_disk or not any(parts)
