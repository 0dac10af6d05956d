"""The encoding of a text; for bytes that are not UTF-8, the place, probable encoding, and cure.

A number is written in ASCII decimals; `nan`, `1_0` and `١`, which Python takes, are none.
"""

from __future__ import annotations

import codecs
import re
import warnings
from dataclasses import dataclass

from rerank.errors import InputError
from rerank.notices import Notices

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 1e100  # size of a number that is read: products of three, and their sums, stay finite
_WIDE_MARKS = {  # UTF-32 first: its little-endian mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32LE",
    codecs.BOM_UTF32_BE: "UTF-32BE",
    codecs.BOM_UTF16_LE: "UTF-16LE",
    codecs.BOM_UTF16_BE: "UTF-16BE",
}
_ENDIAN = {"LE": "little-endian", "BE": "big-endian"}
NEWLINE = b"\n"
_REPLACEMENT = "\ufffd".encode()
_EXTRACTOR = re.compile(rb"(FEATURES|SCORES)_BIN_BEGIN_")

_PROBE = bytes(range(128)) + rb"\n \u0041 xn--a +AGE-"  # also what escapes of some codecs change


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of a text whose ASCII bytes are ASCII characters, as UTF-8, Latin-1 or GB18030.

    name: as Python's codecs have it; replace: whether U+FFFD stands for bytes that are not of the
    encoding, which are otherwise errors. ValueError for a name of no such encoding.
    """

    name: str = "utf-8"
    replace: bool = False

    def __post_init__(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of deprecated escapes
                known = _PROBE.decode(self.name) == _PROBE.decode("ascii")
        except (LookupError, ValueError):
            known = False
        if not known:
            raise ValueError(
                f"no encoding of text in which ASCII stays as it is: {self.name!r}; name one as "
                "latin-1, cp1252, cp1251 or gb18030, or convert the file with iconv"
            )

    @property
    def is_plain(self) -> bool:
        """Whether valid text is UTF-8 already, and nothing is replaced."""
        return codecs.lookup(self.name).name == "utf-8" and not self.replace

    def utf8(self, block: bytes, source: str, first: int, notices: Notices) -> bytes:
        """A block of whole lines in UTF-8; `first` is the number of its first line.

        InputError for the first byte that is not of the encoding, a notice where it is replaced.
        """
        try:
            return block.decode(self.name).encode()
        except UnicodeDecodeError as invalid:
            place = invalid.start
        line = first + block.count(NEWLINE, 0, place)
        if not self.replace:
            notices.refuse(
                InputError(
                    f"expected {self.name}, found 0x{block[place]:02X} at byte "
                    f"{place - block.rfind(NEWLINE, 0, place)} of the line; name the encoding of "
                    "the list with --encoding, or add --encoding-errors replace",
                    source=source,
                    line=line,
                )
            )
        text = block.decode(self.name, "replace").encode()
        if self.replace:
            count = text.count(_REPLACEMENT) - block.count(_REPLACEMENT)
            notices.add(
                "replaced-bytes",
                source=source,
                line=line,
                count=max(1, count),
                asked=True,
                encoding=self.name,
            )
        return text


UTF_8 = Encoding()


def check_start(block: bytes, source: str) -> None:
    """InputError for the beginning of UTF-16, UTF-32 or a binary file of Moses' extractor."""
    for mark, encoding in _WIDE_MARKS.items():
        if block.startswith(mark):
            raise _wide(encoding, source, 1)
    if found := _EXTRACTOR.match(block):
        kind = found[1].decode().lower()
        raise InputError(
            f"expected text, found the binary form of Moses' extractor {kind}; run extractor "
            "without its binary option",
            source=source,
            line=1,
        )


def mended(block: bytes, source: str, first: int, notices: Notices) -> bytes:
    """A block of lines with U+FFFD for bytes that are not UTF-8 and for NUL, if `notices` go on.

    first: number of its first line. InputError for UTF-16: every other byte of Latin text is zero.
    """
    even, odd = block[:1024:2], block[1:1024:2]
    for encoding, zeros, others in (("UTF-16LE", odd, even), ("UTF-16BE", even, odd)):
        if 2 * zeros.count(0) > len(zeros) and 2 * others.count(0) < len(others):
            raise _wide(encoding, source, first)
    lines = []
    for number, line in enumerate(block.split(NEWLINE), first):
        faults = []
        try:
            line.decode()
        except UnicodeDecodeError as invalid:
            guess, cure = _guess(line)
            faults.append(
                f"expected UTF-8, found 0x{line[invalid.start]:02X} at byte {invalid.start + 1} of "
                f"the line, probably {guess}; {cure}"
            )
        if b"\0" in line:
            faults.append(
                f"expected text, found a NUL byte at byte {line.index(0) + 1} of the line; "
                "remove such bytes"
            )
        for fault in faults:
            notices.refuse(InputError(fault, source=source, line=number))
        lines.append(line.decode(errors="replace").encode().replace(b"\0", _REPLACEMENT))
    return NEWLINE.join(lines)


def _wide(encoding: str, source: str, line: int) -> InputError:
    """Error for a file in UTF-16 or UTF-32."""
    return InputError(
        f"expected UTF-8, found what looks like {encoding[:-2]} {_ENDIAN[encoding[-2:]]}; "
        f"convert it with: iconv -f {encoding} -t UTF-8",
        source=source,
        line=line,
    )


def _guess(line: bytes) -> tuple[str, str]:
    """Probable encoding of a line that is not UTF-8, from its runs of bytes above 0x7F, and cure.

    In Chinese (GB18030) such runs have an even length and mostly lead bytes below 0xE0; in Cyrillic
    they are as long as words; in Western text they are single bytes.
    """
    try:
        line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        pass
    else:
        return "an encoded surrogate (CESU-8)", "write the text again, as UTF-8"
    if not line.decode("utf-8", "ignore").isascii():
        return "a truncated character", "is the file damaged? write the text again"
    runs = re.findall(rb"[\x80-\xff]+", line)
    leads = b"".join(run[::2] for run in runs)
    if all(len(run) % 2 == 0 for run in runs) and 2 * sum(b < 0xE0 for b in leads) > len(leads):
        encoding = "GB18030"
    elif sum(map(len, runs)) >= 3 * len(runs):
        encoding = "WINDOWS-1251"
    else:
        encoding = "WINDOWS-1252"
    return f"{encoding} text", f"if so, convert it with: iconv -f {encoding} -t UTF-8"
