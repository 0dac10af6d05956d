"""Encoding: what bytes that are no UTF-8 text are taken for; faults 3-6."""

import pytest

from rerank.errors import InputError
from rerank.files.encoding import not_utf8, nul, wide_mark, wide_text

WESTERN = "expected UTF-8, found 0xE9 at byte 7 of the line, probably WINDOWS-1252 text"


def refusal(block: bytes) -> InputError:
    """The error for a block of lines, of which the first has number 1."""
    if wide := wide_mark(block, "f") or wide_text(block, "f", 1):
        return wide
    try:
        block.decode()
    except UnicodeDecodeError as fault:
        return not_utf8(block, fault.start, "f", 1)
    return nul(block, "f", 1)


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        ("né\n", "utf-16-le", "UTF-16 little-endian"),
        ("ab\n", "utf-16-be", "UTF-16 big-endian"),
        ("\ufeff字\n", "utf-16-le", "UTF-16 little-endian"),
        ("\ufeff字\n", "utf-16-be", "UTF-16 big-endian"),
        ("\ufeff字\n", "utf-32-le", "UTF-32 little-endian"),
        ("\ufeff字\n", "utf-32-be", "UTF-32 big-endian"),
    ],
)
def test_wide_encodings_are_recognised_and_the_cure_converts_them(
    text: str, encoding: str, found: str
) -> None:
    message = str(refusal(text.encode(encoding)))
    start, _, cure = message.partition("; convert it with: iconv -f ")
    assert start == f"f:1: expected UTF-8, found what looks like {found}"
    assert text.encode(encoding).decode(cure.split()[0]) == text


@pytest.mark.parametrize(
    ("text", "encoding", "guess"),
    [
        ("un café noir\n", "latin-1", "WINDOWS-1252"),
        ("“fiancée”\n", "cp1252", "WINDOWS-1252"),
        ("你好 世界\n", "gb18030", "GB18030"),
        ("привет всем\n", "cp1251", "WINDOWS-1251"),
        ("Москва\n", "cp1251", "WINDOWS-1251"),
    ],
)
def test_one_byte_and_two_byte_encodings_are_guessed_with_the_cure_for_that_guess(
    text: str, encoding: str, guess: str
) -> None:
    message = str(refusal(text.encode(encoding)))
    assert f"probably {guess} text; if so, convert it with: iconv -f {guess} -t UTF-8" in message
    assert text.encode(encoding).decode(guess) == text


@pytest.mark.parametrize(
    ("block", "line", "message"),
    [
        (b"ok\nun caf\xe9 noir\n", 2, "found 0xE9 at byte 7 of the line, probably WINDOWS-1252"),
        ("字字".encode()[:-1] + b"\n", 1, "found 0xE5 at byte 4 of the line, probably a truncated"),
        (b"a\nb \xed\xa0\xbd\n", 2, "found 0xED at byte 3 of the line, probably an encoded surro"),
        (b"a\nbc\0d\n", 2, "found a NUL byte at byte 3 of the line; remove such bytes"),
        (b"\0", 1, "found a NUL byte at byte 1 of the line"),
    ],
    ids=["western", "damaged", "surrogate", "nul", "nul-alone"],
)
def test_the_first_bad_byte_is_placed_in_its_line(block: bytes, line: int, message: str) -> None:
    fault = refusal(block)
    assert (fault.source, fault.line) == ("f", line)
    assert message in str(fault)
    assert "; " in str(fault)  # a cure


def test_text_has_no_wide_mark() -> None:
    assert wide_mark(b"\xef\xbb\xbfa\n", "f") is None
