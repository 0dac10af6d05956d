"""Numbers: Python's float() is the truth for values, a table of faults for what is refused."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.errors import InputError, RerankError
from rerank.formats.tokens import clipping, number, shown, written

finite = st.floats(allow_nan=False, allow_infinity=False)


def bits(value: float) -> bytes:
    return struct.pack("d", value)


@given(finite)
def test_a_number_reads_back_to_the_bits_that_were_written(value: float) -> None:
    token = written(value, "LM0")
    assert bits(number(token, "LM0")) == bits(value)
    assert b"+" not in token
    assert token == token.lower()


@given(finite)
def test_nine_digits_are_nine_digits(value: float) -> None:
    assert float(written(value, "LM0", digits=9)) == float(f"{value:.9g}")


@given(st.text("0123456789+-.eE", max_size=24))
def test_what_is_read_is_what_python_reads(text: str) -> None:
    try:
        expected = float(text)
    except ValueError:
        expected = math.nan
    if math.isfinite(expected):
        assert bits(number(text.encode(), "LM0")) == bits(expected)
    else:
        with pytest.raises(InputError):
            number(text.encode(), "LM0")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nan",
        "-NaN",
        "1_0",
        "0x1",
        "1,5",
        "１",
        "١",
        "1e",
        ".",
        "+-1",
        " 1",
        "1\n",
    ],
)
def test_what_only_python_or_nobody_takes_for_a_number_is_refused(token: str) -> None:
    with pytest.raises(InputError, match="expected a decimal number for LM0, found"):
        number(token.encode(), "LM0")


@pytest.mark.parametrize("token", [b"inf", b"-inf", b"+Infinity", b"1e400", b"-1e400"])
def test_an_infinite_number_is_refused_with_the_cure_or_clipped_and_counted(token: bytes) -> None:
    with pytest.raises(InputError, match=r"finite number for LM0.*--clip-inf"):
        number(token, "LM0")
    clipped: list[None] = []
    read = clipping(1e4, lambda: clipped.append(None))
    assert read(token, "LM0") == (-1e4 if token.startswith(b"-") else 1e4)
    assert read(b"2.5", "LM0") == 2.5
    assert len(clipped) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_written(value: float) -> None:
    with pytest.raises(RerankError, match="finite number to write for LM0"):
        written(value, "LM0")


@given(st.binary(max_size=200))
def test_bytes_in_a_message_are_printable_and_short(data: bytes) -> None:
    text = shown(data)
    assert text.isprintable()
    assert len(text) <= 250
