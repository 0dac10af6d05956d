"""Lines of numbers by machine code: what is taken is what `float` gives, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.formats.number_kernel import read_numbers

numbers = st.floats(allow_nan=False, allow_infinity=False).map("{:.6g}".format)
odd = st.sampled_from(["nan", "inf", "x=1", "", "1e", "1_0", "1,5", "--1", "0x1", "1\t2"])
blanks = st.sampled_from([" ", "  "])


@given(st.lists(st.lists(numbers | odd, max_size=4), max_size=6), blanks, st.booleans())
def test_lines_taken_are_those_of_float_and_no_wrong_line_is_taken(
    rows: list[list[str]], blank: str, trailing: bool
) -> None:
    lines = [(blank.join(row) + blank * trailing).encode() for row in rows]
    values, others = read_numbers(lines, 2)
    assert values.shape == (len(rows), 2)
    for n, line in enumerate(lines):
        tokens = [t for t in line.split(b" ") if t]
        if n in others:
            continue
        assert len(tokens) == 2
        assert values[n].tobytes() == np.array([float(t) for t in tokens]).tobytes()


@pytest.mark.parametrize(
    "line", [b"1 2 3", b"1", b"1 x", b"nan 1", b"1 2=3", b"1 2x", b"", b"1e400 1", b"1 0_1"]
)
def test_other_lines_are_left(line: bytes) -> None:
    assert read_numbers([b"1 2", line, b"3 4 "], 2)[1] == [1]


def test_what_moses_prints_is_taken() -> None:
    lines = [b"-0.5 -1.23457e-05 3 ", b"0 1e+06 -100 "]
    values, others = read_numbers(lines, 3)
    assert others == []
    assert values.tolist() == [[-0.5, -1.23457e-05, 3], [0, 1e6, -100]]


def test_no_lines_are_no_values() -> None:
    values, others = read_numbers([], 3)
    assert values.shape == (0, 3)
    assert others == []
