"""Machine code against the grammar: what it stores is what `grammar.parse` gives, bit for bit."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.corpus.columns import SparseColumns, TextColumn
from rerank.corpus.rows import KBestRows
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.moses_line_kernel import read_common

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FIRST = b"0 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5"


def read(lines: list[bytes], layout: grammar.Layout) -> tuple[KBestRows, NDArray[np.bool_]]:
    """Rows of the lines, and which of them the kernel has filled."""
    n = len(lines)
    rows = KBestRows(
        labels=layout.labels,
        lines=TextColumn.of(lines),
        text_spans=np.zeros((n, 2), np.int64),
        line_numbers=np.arange(1, n + 1),
        sentences=np.zeros(n, np.int64),
        dense=np.zeros((n, len(layout.values))),
        totals=np.full(n, np.nan),
        sparse=SparseColumns.empty(n),
    )
    done = np.zeros(n, np.bool_)
    return replace(rows, sparse=read_common(rows, layout, done)), done


def stored(line: bytes, first: bytes) -> bool:
    """Whether the kernel took the line; what it took is checked against the grammar."""
    layout = grammar.layout(first)
    columns, done = read([b"x", line, b"x"], layout)  # the neighbours must not matter
    if done[1]:
        expected = grammar.parse(line, layout)
        total = np.nan if expected.total is None else expected.total
        assert columns.sentences[1] == expected.sentence
        assert tuple(columns.text_spans[1] - 2) == expected.text
        assert columns.dense[1].tobytes() == np.array(expected.dense, float).tobytes()
        assert columns.totals[1].tobytes() == np.float64(total).tobytes()
        assert list(columns.sparse.row(1).items()) == list(expected.sparse.items())
        assert set(expected.oddities) <= {grammar.SPARSE}
    return bool(done[1])


plain = st.decimals(-(10**6), 10**6, places=6).map(lambda d: f"{d.normalize():f}")
finite = st.floats(-LARGEST, LARGEST)
printed = (
    finite.map("{:.6g}".format)
    | finite.map(repr)
    | st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,4})?", fullmatch=True)
)


def assert_python_bits(tokens: list[str]) -> float:
    """Compare the numbers taken with float(); the share that was taken."""
    layout = grammar.layout(b"0 ||| a ||| A= 1")
    columns, taken_rows = read([b"0 ||| a ||| A= %s" % token.encode() for token in tokens], layout)
    taken = [float(token) for token, done in zip(tokens, taken_rows, strict=True) if done]
    assert columns.dense[taken_rows, 0].tobytes() == np.array(taken).tobytes()
    return float(taken_rows.mean())


@given(st.lists(printed, min_size=1, max_size=10))
def test_numbers_have_the_bits_of_python(tokens: list[str]) -> None:
    assert_python_bits(tokens)


def test_a_hundred_thousand_random_decimals_have_the_bits_of_python() -> None:
    rng = np.random.default_rng(1)
    digits = 10 ** rng.uniform(0, 18, 100_000)
    mantissas = rng.uniform(-1, 1, 100_000) * digits
    exponents = rng.integers(-30, 30, 100_000)
    tokens = [
        f"{m:.{-e}f}"[:19] if e < 0 else f"{m:.0f}e{e}"
        for m, e in zip(mantissas, exponents, strict=True)
    ]
    assert assert_python_bits(tokens) > 0.4


@given(st.floats(-1e6, 1e6).map("{:.6g}".format).filter(lambda text: "e" not in text) | plain)
def test_numbers_as_moses_prints_them_need_no_python(token: str) -> None:
    assert stored(b"0 ||| a ||| A= %s" % token.encode(), b"0 ||| a ||| A= 1")


@pytest.mark.parametrize(
    "token", ["9007199254740993", "1e23", "0.1e-22", "123456789012345678901", "1e400", "-1e-400"]
)
def test_numbers_that_need_two_roundings_are_left_to_python(token: str) -> None:
    assert not stored(b"0 ||| a ||| A= %s" % token.encode(), b"0 ||| a ||| A= 1")


@pytest.mark.parametrize("token", ["-0", "9007199254740992", "1e22", "1.5E3", "+2", "5.", ".5"])
def test_numbers_of_one_rounding_are_taken(token: str) -> None:
    assert stored(b"0 ||| a ||| A= %s" % token.encode(), b"0 ||| a ||| A= 1")


@pytest.mark.parametrize(
    "line",
    [
        b"12 ||| a b  ||| A= 1 B= 2 3 C= 4 ||| -5",
        b"12|||a b|||A= 1 B= 2 3 C= 4|||-5",
        b" 012 |||  |||  A=1  B= 2  3 C=4  |||  -5 ",
        b"12 ||||x| |||A= 1 B= 2 3 C= 4 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 ||| -5",
        b"12 ||| a ||| _= 1 A= 1 x_y= 2 x_z= 3 B= 2 3 \xe4\xb8\x80_= 1 C= 4 |_|= 5||| -5",
    ],
)
def test_lines_of_the_common_shape_are_taken(line: bytes) -> None:
    assert stored(line, FIRST)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"12",
        b"12 ||| a",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5 |||",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5 x",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 |||",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y=1 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y: 1 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 2 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1 x_z= 3 x_y= 2 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x_y= 1|x ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 \xff_= 1 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 x_y= 1 3 C= 4 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 C= 4 x= 1 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 3 4 ||| -5",
        b"12 ||| a ||| A= 1 B= 2-3 C= 4 ||| -5",
        b"12 ||| a ||| A= 1 B= 2 nan C= 4 ||| -5",
        b"12 ||| a ||| b ||| A= 1 B= 2 3 C= 4 ||| -5",
        b"1_2 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5",
        b"1234567890 ||| a ||| A= 1 B= 2 3 C= 4 ||| -5",
    ],
)
def test_other_lines_are_left_to_the_grammar(line: bytes) -> None:
    assert not stored(line, FIRST)


@pytest.mark.parametrize(
    "line",
    [
        b"0 ||| a ||| 0-0 1-1 ||| F0=-1 F1=-2 ||| -3",
        b"0 ||| a ||| 1 2 3 ||| -3",
        b"0 ||| a ||| A= 1 B= 2 A= 3",
        b"0 ||| a ||| A= 1 ||| -3 ||| 0-0 ||| x= 1 | y",
        b"0||| a ||| d: 1 2 lm: 3 ||| 4",
        b"0 ||| a |||  ||| 4",
        b"0 ||| a |||",
    ],
)
def test_every_dialect_has_its_common_shape(line: bytes) -> None:
    assert stored(line, line)


pieces = st.sampled_from(
    [
        b"|||",
        b" ||| ",
        b"|",
        b" ",
        b"A=",
        b" B= 2 3",
        b"C=4",
        b"x_y= 2",
        b"x_z= 1",
        b"x_y",
        b"3",
        b"-1.5e2",
        b"nan",
    ]
) | st.sampled_from([b"0-0 1-1", b"=", b":", b"\t", b"\xff", b"a", b"1" * 20, b"-5"])
firsts = st.sampled_from(
    [FIRST, b"0 ||| a ||| 0-0 ||| F0=1 ||| 2 ||| y", b"0 ||| a ||| 1 2", b"0|||||| d: 1 2|||1"]
)


@settings(max_examples=50)
@given(firsts, st.data())
def test_a_line_is_as_the_grammar_reads_it_or_left(first: bytes, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(first.split(b" ")) | pieces, max_size=20))
    cut = data.draw(st.integers(0, len(first)))
    line = first[:cut] + b" ".join(parts) + data.draw(st.sampled_from([b"", first[cut:]]))
    try:
        stored(line, first)
    except InputError:  # the kernel took what the grammar refuses
        pytest.fail(f"{line!r}")


@pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not here")
@pytest.mark.parametrize(
    "name", ["ted-zh-en/dev2010.nbest.gz", "fixtures/moses-oldstyle-europarl.nbest.gz"]
)
def test_no_line_of_a_real_list_is_left(name: str) -> None:
    with gzip.open(DATA / name) as file:
        lines = file.read().splitlines()
    assert read(lines, grammar.layout(lines[0]))[1].all()
    assert all(stored(line, lines[0]) for line in lines[::100])
