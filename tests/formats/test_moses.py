"""Lines as columns: the grammar, line by line, is the truth; chunks must not show."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.columns import SparseColumns
from rerank.corpus.rows import KBestRows, concatenate
from rerank.errors import InputError
from rerank.formats import moses, moses_line_kernel
from rerank.formats import moses_grammar as grammar
from rerank.formats.moses import read_rows
from rerank.notices import Notices

FIRST = b"0 ||| a ||| A= 1 B= 2 3 ||| -5"
usual = st.builds(
    b"%d ||| %s ||| A= %d B= %d %d ||| %d".__mod__,
    st.tuples(
        st.integers(0, 9),
        st.sampled_from([b"", b"a", b"b c ", b"\xff"]),
        *[st.integers(-9, 9)] * 4,
    ),
)
sparse = usual.map(lambda line: line.replace(b" B=", b" x_y= 7 B="))
no_total = usual.map(lambda line: line.rpartition(b" ||| ")[0])
blank = st.sampled_from([b"", b" ", b"\t"])
lists = st.lists(usual | sparse | no_total | blank, max_size=30).map(lambda lines: [FIRST, *lines])


def expected(lines: list[bytes]) -> Iterator[tuple[int, bytes, grammar.ParsedLine]]:
    """Number, text and content of each line that is not blank."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            values = grammar.parse(line, grammar.layout(FIRST))
            yield number, line[slice(*values.text)], values


def check(found: KBestRows, lines: list[bytes]) -> None:
    truth = list(expected(lines))
    assert found.line_numbers.tolist() == [number for number, _, _ in truth]
    assert found.lines.to_list() == [lines[n - 1] for n, _, _ in truth]
    assert found.texts.to_list() == [text for _, text, _ in truth]
    assert found.sentences.tolist() == [line.sentence for _, _, line in truth]
    assert found.dense.tolist() == [line.dense for _, _, line in truth]
    totals = [np.nan if line.total is None else line.total for _, _, line in truth]
    np.testing.assert_array_equal(found.totals, totals)
    sparse = [found.sparse.row(row) for row in range(len(found))]
    assert [list(one.items()) for one in sparse] == [list(x.sparse.items()) for _, _, x in truth]


@pytest.mark.parametrize(
    ("chunk", "kernel"), [(1, ""), (100, ""), (1 << 20, ""), (1 << 20, moses._KERNEL)]
)
@given(lists)
def test_rows_are_the_lines_whatever_reads_them(
    chunk: int, kernel: str, lines: list[bytes]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moses, "_CHUNK", chunk)
        patch.setattr(moses, "_KERNEL", kernel)
        pieces = list(read_rows(lines, Notices()))
    assert all(pieces)  # none is empty
    if chunk == 1:
        assert all(len(piece) == 1 for piece in pieces)
    check(concatenate(pieces), lines)


@given(lists, st.data())
def test_taken_rows_keep_their_lines_only(lines: list[bytes], data: st.DataObject) -> None:
    (piece,) = read_rows(lines, Notices())
    order = data.draw(st.permutations(range(len(piece))))
    taken = piece.take(np.array(order, dtype=np.int64))
    assert bytes(taken.lines.blob).split(b"\n") == [piece.lines[row] for row in order]
    again = taken.take(np.argsort(order))
    check(again, lines)
    assert piece.take(np.zeros(0, np.int64)).lines.blob == b""


def test_notices_name_the_dialect_once_and_oddities_each_time() -> None:
    notices = Notices()
    list(
        read_rows(
            [b"", b"0 ||| a ||| d: 1 ||| 2", b"0 ||| b ||| d: 1", b" ", b"0 ||| c ||| d: 1 x_: 2"],
            notices,
            source="dev.kbest",
        )
    )
    assert notices.lines() == [
        "2 x blank line, skipped, first at dev.kbest:1",
        "1 x old Moses labels, as in 'lm: -3.2', first at dev.kbest:2",
        "2 x no total column, first at dev.kbest:3",
        "1 x line with sparse features (labels with '_'), first at dev.kbest:5",
    ]


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_a_fault_is_placed(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(moses, "_CHUNK", chunk)
    with pytest.raises(
        InputError, match=r"^dev.kbest:3: expected a decimal number for B"
    ) as caught:
        list(read_rows([b"", FIRST, FIRST.replace(b"2", b"x")], Notices(), source="dev.kbest"))
    assert (caught.value.source, caught.value.line) == ("dev.kbest", 3)
    with pytest.raises(InputError, match=r"^dev.kbest:2: expected 'id"):
        list(read_rows([b"", b"a b c", FIRST], Notices(), source="dev.kbest"))


def test_infinite_numbers_are_clipped_where_that_was_asked_for() -> None:
    notices = Notices()
    lines = [FIRST, b"0 ||| a ||| A= -inf B= 1e999 3 ||| inf"]
    (piece,) = read_rows(lines, notices, source="dev.kbest", clip=-1e4)
    assert piece.dense[1].tolist() == [-1e4, 1e4, 3]
    assert piece.totals[1] == 1e4
    assert notices.lines() == ["3 x infinite number, clipped, first at dev.kbest:2"]


@pytest.mark.parametrize("lines", [[], [b""], [b"", b"  "]])
def test_blank_lines_have_no_rows(lines: list[bytes]) -> None:
    assert sum(map(len, read_rows(lines, Notices()))) == 0


def test_lines_are_read_no_further_than_a_chunk() -> None:
    lines = iter([FIRST] * 100_000)
    piece = next(read_rows(lines, Notices()))
    assert len(piece) == 100_000 - len(list(lines))
    assert 1 << 20 <= len(piece.lines.blob) <= (1 << 20) + len(FIRST)


def test_compiled_code_that_is_loaded_reads_short_lists_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = moses_line_kernel.read_common
    sizes = []

    def counted(rows: KBestRows, *others: Any) -> SparseColumns:
        sizes.append(len(rows))
        return read(rows, *others)

    monkeypatch.setattr(moses_line_kernel, "read_common", counted)
    list(read_rows([FIRST] * 3, Notices()))
    assert sizes == [3]


def test_a_short_list_is_read_without_a_compiler() -> None:
    program = (
        "import sys\n"
        "from rerank.formats.moses import read_rows\n"
        "from rerank.notices import Notices\n"
        "list(read_rows([b'0 ||| a ||| A= 1 ||| 2'] * 1000, Notices()))\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
