"""Lines of text files as bytes, validated a block at a time; digests and copies of files.

Only LF ends a line. Bytes that are not UTF-8 text are refused with their place (`InputError`);
unusual characters are kept and counted (`Notices`). Memory is bounded by the longest line allowed.
"""

from __future__ import annotations

import codecs
import difflib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from rerank.errors import InputError, RerankError, UsageError
from rerank.files import encoding
from rerank.files.compression import DamagedError, unpacked
from rerank.files.inputs import RereadFile
from rerank.files.paths import STDIN, FilePath, display
from rerank.notices import Notices

MAX_LINE_BYTES = 16 << 20
SURPLUS = 1000  # lines that are read beyond those asked for, to report how many there are
_CHUNK_BYTES = 1 << 20

_LONE_CR = "carriage return inside a line, kept; convert old Mac line ends with: tr '\\r' '\\n'"
_ASCII_ONLY = "kept; words are split on ASCII space only"
_UNUSUAL = {  # notice: the characters it is about
    "byte-order mark inside the text, kept": "\ufeff",
    "separator other than LF (VT, FF, FS-US, NEL, U+2028, U+2029), kept inside its line": (
        "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
    ),
    f"no-break space U+00A0, {_ASCII_ONLY}": "\xa0",
    f"ideographic space U+3000, {_ASCII_ONLY}": "\u3000",
    f"zero-width space U+200B, {_ASCII_ONLY}": "\u200b",
    f"soft hyphen U+00AD, {_ASCII_ONLY}": "\xad",
    "bidirectional control character, kept": (
        "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    ),
}
_ORDINARY = bytes(set(range(128)) - set("".join(_UNUSUAL.values()).encode()))  # ASCII


def read_lines(
    path: FilePath,
    notices: Notices,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_bytes: int | None = None,
    encoded: encoding.Encoding = encoding.UTF_8,
) -> Iterator[bytes]:
    """Lines of a file in UTF-8, plain or compressed, without line ends; `-` is standard input.

    max_bytes: limit of the whole file, for readers that keep all of it; encoded: the encoding of
    the file, of which UTF-8 is made. UsageError for a missing
    file, InputError for invalid content, RerankError for a disk error. A block of about 1 MiB is
    validated before its first line is yielded. O(1 MiB + longest line) memory.
    """
    source, number, size = display(path), 1, 0
    with _opened(path) as opened, _unchanging(path, opened) as file:
        try:
            for block in _blocks(_chunks(file, source, notices), max_line_bytes):
                size += len(block)
                if max_bytes is not None and size > max_bytes:
                    raise InputError(
                        f"expected a file of at most {max_bytes:,} bytes, unpacked, found more; "
                        "is this the right file?",
                        source=source,
                    )
                if number == 1:
                    block = _without_mark(block, source, notices)
                if len(block) > max_line_bytes:
                    _refuse_long(block, source, number, max_line_bytes)
                if not encoded.is_plain:
                    block = encoded.utf8(block, source, number, notices)
                lines = _checked(block, source, number, notices)
                yield from lines
                number += len(lines)
        except DamagedError as fault:
            raise InputError(str(fault), source=source, line=number) from None


def count_lines(path: FilePath) -> int:
    """Number of line ends in a file, plain or compressed, up to where it may be damaged."""
    found = 0
    with _opened(path) as file, suppress(DamagedError):
        for chunk in unpacked(file):
            found += chunk.count(b"\n")
    return found


def digest(path: FilePath) -> str:
    """`sha256:<hex>` of a file's bytes, compressed or not."""
    with _opened(path) as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]


@contextmanager
def spool(path: FilePath) -> Iterator[RereadFile]:
    """A path to read several times: a temporary copy if the input is standard input or a pipe.

    `rerank.files.paths.display` gives the copy the name of its original.
    """
    if not is_pipe(path):
        yield RereadFile(path)
        return
    with tempfile.TemporaryDirectory(prefix="rerank-") as folder:
        copy = Path(folder, STDIN if str(path) == "-" else f"<{Path(path).name}>")
        with _opened(path) as file:
            try:
                with copy.open("wb") as target:
                    shutil.copyfileobj(file, target, _CHUNK_BYTES)
            except OSError as fault:
                raise RerankError(
                    f"cannot copy {display(path)} to a temporary file: {_reason(fault)}; "
                    "name a file instead, or set TMPDIR to a larger disk"
                ) from None
        yield RereadFile(copy)


# A file → chunks of its content → blocks of whole lines → lines


def _chunks(file: BinaryIO, source: str, notices: Notices) -> Iterator[bytes]:
    """Content of a file, plain or compressed, in pieces."""
    ended = yield from unpacked(file)
    if ended:
        notices.add(f"bytes after the end of the {ended} data, ignored", source=source)


def _blocks(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The bytes of `chunks` in blocks of whole lines; only the last may lack its final LF.

    A line longer than `limit` is yielded incomplete, for the caller to refuse.
    """
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*parts, chunk[:cut]])
            parts, size = [], 0
        parts.append(chunk[cut:])
        size += len(parts[-1])
        if size > limit:
            break
    if size:
        yield b"".join(parts)


def _without_mark(block: bytes, source: str, notices: Notices) -> bytes:
    """The first block of a file, without a byte-order mark of UTF-8."""
    if fault := encoding.wide_mark(block, source) or encoding.binary_extractor(block, source):
        raise fault
    if block.startswith(codecs.BOM_UTF8):
        notices.add("byte-order mark at the start, removed", source=source, line=1)
    return block.removeprefix(codecs.BOM_UTF8)


def _checked(block: bytes, source: str, first: int, notices: Notices) -> list[bytes]:
    """Validated lines of a block; `first` is the number of its first line."""
    try:
        text = block.decode()
    except UnicodeDecodeError:
        block = _mended(block, source, first, notices)
        text = block.decode()
    if "\0" in text:
        block = _mended(block, source, first, notices)
        text = block.decode()
    # `in` for each character, not one pattern for all: 0.2 ms against 7 ms per MiB of ASCII; else
    # among the few characters that are not ordinary: 0.4 ms against 6 ms
    others = text if text.isascii() else block.translate(None, _ORDINARY).decode()
    for kind, characters in _UNUSUAL.items():
        present = [c for c in characters if c in others]
        if present:
            line = first + text.count("\n", 0, min(map(text.index, present)))
            notices.add(kind, source=source, line=line, count=sum(map(text.count, present)))
    if "\r" in text:
        block = _without_cr(block, source, first, notices)
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _mended(block: bytes, source: str, first: int, notices: Notices) -> bytes:
    """The block with U+FFFD for bytes that are not UTF-8 and for NUL, if `notices` go on."""
    if fault := encoding.wide_text(block, source, first):
        raise fault
    lines = block.split(b"\n")
    for i, line in enumerate(lines):
        text = line.decode(errors="replace")
        try:
            line.decode()
        except UnicodeDecodeError as invalid:
            notices.refuse(encoding.not_utf8(line, invalid.start, source, first + i))
        if b"\0" in line:
            notices.refuse(encoding.nul(line, source, first + i))
        lines[i] = text.replace("\0", "\ufffd").encode()
    return b"\n".join(lines)


def _without_cr(block: bytes, source: str, first: int, notices: Notices) -> bytes:
    """The block without carriage returns at line ends; those inside lines are kept."""
    ends = block.count(b"\r\n") + block.endswith(b"\r")
    inside = block.count(b"\r") - ends
    for kind, pattern, count in (
        ("CRLF line ends, read as LF", rb"\r(?:\n|\Z)", ends),
        (_LONE_CR, rb"\r(?!\n|\Z)", inside),
    ):
        if found := re.search(pattern, block):
            line = first + block.count(b"\n", 0, found.start())
            notices.add(kind, source=source, line=line, count=count)
    return block.replace(b"\r\n", b"\n").removesuffix(b"\r")


def _refuse_long(block: bytes, source: str, first: int, limit: int) -> None:
    """InputError for the first line of more than `limit` bytes, if there is one."""
    for number, line in enumerate(block.split(b"\n"), first):
        if len(line) > limit:
            raise InputError(
                f"expected at most {limit} bytes in a line, found more; "
                "is this a text file whose lines end with LF?",
                source=source,
                line=number,
            )


# Opening


@contextmanager
def _opened(path: FilePath) -> Iterator[BinaryIO]:
    """The file, opened for reading; UsageError if that fails, RerankError for a later failure."""
    opening: AbstractContextManager[BinaryIO]
    if str(path) == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed; name a file instead of -")
        opening = nullcontext(sys.stdin.buffer)
    else:
        try:
            opening = open(path, "rb")  # noqa: SIM115 - closed below, where errors have another meaning
        except FileNotFoundError:
            raise UsageError(_missing(Path(path))) from None
        except (OSError, ValueError) as fault:  # ValueError: a NUL in the name
            raise UsageError(f"cannot read {display(path)}: {_reason(fault)}") from None
    with opening as file:
        try:
            yield file
        except OSError as fault:
            raise RerankError(f"reading {display(path)} failed: {_reason(fault)}") from None


def _unchanging(path: FilePath, file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    return path.reading(file) if isinstance(path, RereadFile) else nullcontext(file)


def _missing(path: Path) -> str:
    """Message for a missing file, with the most similar name in its folder."""
    if path.is_symlink():
        return f"{display(path)} is a link to {display(os.readlink(path))}, which does not exist"
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"no file {display(path)}: no folder {display(path.parent)}"
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"no file {display(path)}" + (
        f"; did you mean {display(path.with_name(near[0]))}?" if near else ""
    )


def _reason(fault: OSError | ValueError) -> str:
    return (getattr(fault, "strerror", None) or str(fault)).lower()


def is_pipe(path: FilePath) -> bool:
    """Whether an input exists but cannot be read twice; `-` cannot."""
    if str(path) == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
