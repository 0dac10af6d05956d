"""Encoding: what bytes that are no UTF-8 text are taken for; faults 3-6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.errors import InputError
from rerank.files.encoding import Encoding, not_utf8, nul, wide_mark, wide_text
from rerank.notices import Notices

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


@pytest.mark.parametrize(
    "name", ["latin-1", "cp1252", "cp1251", "gb18030", "big5", "UTF8", "ascii"]
)
def test_encodings_that_keep_ascii_are_known(name: str) -> None:
    assert Encoding(name).is_plain == (name == "UTF8")


@pytest.mark.parametrize("name", ["utf-16", "utf-7", "cp037", "hex", "unicode_escape", "no\0", "x"])
def test_others_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name one as latin-1"):
        Encoding(name)


@given(st.lists(st.text("aé字\n", max_size=5)))
def test_a_block_becomes_utf_8(words: list[str]) -> None:
    text = "".join(words)
    assert Encoding("gb18030").utf8(text.encode("gb18030"), "f", 1, Notices()) == text.encode()


def test_a_byte_of_another_encoding_is_placed_or_replaced_and_counted() -> None:
    block = "wie\nschön … Größe \ufffd\n".encode()
    assert Encoding(replace=True).utf8(block, "f", 7, Notices()) == block
    broken = b"ok\nun caf\xe9 noir \xe9 \xef\xbf\xbd\n"
    with pytest.raises(InputError, match="f:8: expected utf-8, found 0xE9 at byte 7 of the line"):
        Encoding().utf8(broken, "f", 7, Notices())
    notices = Notices()
    mended = Encoding(replace=True).utf8(broken, "f", 7, notices)
    assert mended.decode() == "ok\nun caf\ufffd noir \ufffd \ufffd\n"
    assert notices.lines() == ["2 x bytes that are not utf-8, read as U+FFFD, first at f:8"]
