"""Tokens of k-best lists and weight files: numbers to read and to write, and text for messages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias

from rerank.errors import InputError, RerankError

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_SHOWN = 60  # bytes of a token in a message

Number: TypeAlias = Callable[[bytes, str], float]
"""Parser of a number; the second argument is its name in error messages."""


def number(token: bytes, what: str) -> float:
    """A finite number in ASCII decimals; `nan`, `1_0` and `١`, which Python takes, are refused."""
    if NUMBER.fullmatch(token):
        value = float(token)
        if math.isfinite(value):
            return value
    if _is_infinite(token):
        raise InputError(
            f"expected a finite number for {what}, found {shown(token)}; "
            "give --clip-inf -1e4 to read infinities as ±1e4"
        )
    raise InputError(f"expected a decimal number for {what}, found {shown(token)}")


def clipping(magnitude: float, clipped: Callable[[], None]) -> Number:
    """A parser that returns ±`magnitude` for an infinite number, and then calls `clipped`."""

    def read(token: bytes, what: str) -> float:
        if not _is_infinite(token):
            return number(token, what)
        clipped()
        return -magnitude if token.startswith(b"-") else magnitude

    return read


def written(value: float, what: str, *, digits: int | None = None) -> bytes:
    """A number with this many significant digits, or with enough to read back the same bits.

    Exponents have no `+`, which mert-moses.pl refuses. `RerankError` for infinity and NaN.
    """
    if not math.isfinite(value):
        raise RerankError(f"expected a finite number to write for {what}, found {value}")
    text = f"{value:.{digits}g}" if digits else repr(float(value)).removesuffix(".0")
    return text.replace("e+", "e").encode()


def shown(data: bytes) -> str:
    """The first 60 bytes at most, quoted and printable, for a message."""
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}…"


def _is_infinite(token: bytes) -> bool:
    """Whether a number is written as infinite or too large for a float."""
    if NUMBER.fullmatch(token):
        return math.isinf(float(token))
    return _INFINITE.fullmatch(token) is not None
