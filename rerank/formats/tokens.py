"""Numbers in k-best lists and weight files, read and written, and tokens in messages."""

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
"""Reads a number; the second argument names it in errors."""


def number(token: bytes, what: str) -> float:
    """A finite number in ASCII decimals: not all that Python takes (`1_0`, `nan`, `١`)."""
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
    """`number`, but ±`magnitude` for what is infinite; `clipped` is called each time."""

    def read(token: bytes, what: str) -> float:
        if not _is_infinite(token):
            return number(token, what)
        clipped()
        return -magnitude if token.startswith(b"-") else magnitude

    return read


def written(value: float, what: str, *, digits: int | None = None) -> bytes:
    """A number with so many significant digits, or as many as read back to the same bits.

    No `+` in exponents: mert-moses.pl refuses it. `RerankError` if the value is not finite.
    """
    if not math.isfinite(value):
        raise RerankError(f"expected a finite number to write for {what}, found {value}")
    text = f"{value:.{digits}g}" if digits else repr(float(value)).removesuffix(".0")
    return text.replace("e+", "e").encode()


def shown(data: bytes) -> str:
    """Bytes for a message: quoted, printable, at most 60 of them."""
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}…"


def _is_infinite(token: bytes) -> bool:
    """Whether a number is written as infinite, or too large to be anything else."""
    if NUMBER.fullmatch(token):
        return math.isinf(float(token))
    return _INFINITE.fullmatch(token) is not None
