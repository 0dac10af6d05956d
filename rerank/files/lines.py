"""Lines of text files as bytes, validated a block at a time; digests and copies of files.

Only LF ends a line. Bytes that are not UTF-8 text are refused with their place (`InputError`);
unusual characters are kept and counted (`Notices`). Memory is bounded by the longest line allowed.
"""

from __future__ import annotations

import bz2
import codecs
import difflib
import hashlib
import lzma
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from rerank.errors import InputError, RerankError, UsageError
from rerank.files.encoding import UTF_8, Encoding, check_start, mended
from rerank.files.paths import SHOWN_AS, STDIN, FilePath, display
from rerank.notices import Notices

MAX_LINE_BYTES = 16 << 20
SURPLUS = 1000  # lines that are read beyond those asked for, to report how many there are
_CHUNK_BYTES = 1 << 20
_MOST_BLANK = 1 << 20  # blank lines of any file; more must be below this share of its lines
_BLANK_SHARE = 0.98
_ROOM_BYTES = 64 << 20  # of a copy, between two looks at the disk
_KEPT_FREE = 1 << 30  # bytes of the disk that a copy leaves, or a tenth of what was free

_UNUSUAL = {  # notice: the characters it is about
    "inner-byte-order-mark": "\ufeff",
    "separator-other-than-lf": "\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029",
    "no-break-space": "\xa0",
    "ideographic-space": "\u3000",
    "zero-width-space": "\u200b",
    "soft-hyphen": "\xad",
    "bidirectional-control": (
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
    encoded: Encoding = UTF_8,
) -> Iterator[bytes]:
    """Lines of a file in UTF-8, plain or compressed, without line ends; `-` is standard input.

    max_bytes: limit of the whole file; encoded: the encoding of which UTF-8 is made. UsageError for
    a missing file, InputError for invalid content, RerankError for a disk error. A block of about
    1 MiB is validated before its first line is yielded. O(1 MiB + longest line) memory.
    """
    source, number, size, blank = display(path), 1, 0, 0
    with (
        _opened(path) as opened,
        path.reading(opened) if isinstance(path, RereadFile) else nullcontext(opened) as file,
    ):
        try:
            for block in _blocks(_content(file, source, notices), max_line_bytes):
                size += len(block)
                if max_bytes is not None and size > max_bytes:
                    raise InputError(
                        f"expected a file of at most {max_bytes:,} bytes, unpacked, found more; "
                        "is this the right file?",
                        source=source,
                    )
                if number == 1:
                    check_start(block, source)
                    if block.startswith(codecs.BOM_UTF8):
                        notices.add("byte-order-mark", source=source, line=1)
                        block = block.removeprefix(codecs.BOM_UTF8)
                if len(block) > max_line_bytes:
                    for n, line in enumerate(block.split(b"\n"), number):
                        if len(line) > max_line_bytes:
                            raise _too_long(source, n, max_line_bytes)
                if not encoded.is_plain:
                    block = encoded.utf8(block, source, number, notices)
                lines = _checked(block, source, number, notices)
                if 4 * len(lines) > len(block):  # of 3 bytes at most, in the mean
                    blank += sum(not line or line.isspace() for line in lines)
                    seen = number + len(lines) - 1
                    if blank > max(_MOST_BLANK, _BLANK_SHARE * seen):
                        raise InputError(
                            f"expected text, found {blank:,} blank lines of {seen:,}; is this the "
                            "right file?",
                            source=source,
                            line=seen,
                        )
                yield from lines
                number += len(lines)
        except DamagedError as fault:
            raise InputError(str(fault), source=source, line=number) from None


def count_lines(path: FilePath) -> int:
    """Number of line ends in a file, plain or compressed, up to where it may be damaged."""
    n = 0
    with _opened(path) as file, suppress(DamagedError):
        for chunk in unpacked(file):
            n += chunk.count(b"\n")
    return n


def digest(path: FilePath) -> str:
    """`sha256:<hex>` of a file's bytes, compressed or not."""
    with _opened(path) as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]


@contextmanager
def spool(path: FilePath) -> Iterator[RereadFile]:
    """A path to read several times: a temporary copy if the input is standard input or a pipe.

    Input without an end is refused when a line is too long, or before the disk is full.
    """
    if not is_pipe(path):
        yield RereadFile(path)
        return
    with scratch_file(STDIN if str(path) == "-" else f"<{Path(path).name}>") as copy:
        with _opened(path) as file:
            try:
                with copy.open("wb") as target:
                    target.writelines(_bounded(file, display(path)))
            except OSError as fault:
                raise _not_copied(display(path), _reason(fault)) from None
        yield RereadFile(copy)


@contextmanager
def scratch_file(name: str) -> Iterator[Path]:
    """Path of a temporary file, to write and to read, which messages show as `name`.

    On Linux the file has no name on the disk, so that the system frees it even after `kill -9`.
    """
    descriptors = Path(f"/proc/{os.getpid()}/fd")
    with ExitStack() as opened:
        if descriptors.is_dir():
            file = opened.enter_context(tempfile.TemporaryFile(prefix="rerank-"))
            path = descriptors / str(file.fileno())
        else:
            path = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rerank-")), "copy")
        SHOWN_AS[str(path)] = name
        opened.callback(SHOWN_AS.pop, str(path))
        yield path


def _bounded(file: BinaryIO, source: str) -> Iterator[bytes]:
    """Content of an input of unknown length, to be copied.

    RerankError before the disk is full, InputError for a line of plain text that is too long.
    """
    folder, size, line, number, packed = tempfile.gettempdir(), 0, 0, 1, False
    kept = min(_KEPT_FREE, shutil.disk_usage(folder).free // 10)
    while chunk := file.read(_CHUNK_BYTES):
        packed = packed if size else any(form.magic.match(chunk) for form in _FORMATS)
        size += len(chunk)
        line = len(chunk) - chunk.rfind(b"\n") - 1 + (line if b"\n" not in chunk else 0)
        number += chunk.count(b"\n")
        if line > MAX_LINE_BYTES and not packed:
            raise _too_long(source, number, MAX_LINE_BYTES)
        if size % _ROOM_BYTES < _CHUNK_BYTES and shutil.disk_usage(folder).free < kept:
            disk = f"after {size / 1e9:.1f} GB the disk of {display(folder)} is nearly full"
            raise _not_copied(source, disk)
        yield chunk


def _not_copied(source: str, reason: str) -> RerankError:
    return RerankError(
        f"cannot copy {source} to a temporary file: {reason}; name a file instead, or set TMPDIR "
        "to a larger disk"
    )


def check_readable(paths: Iterable[FilePath]) -> None:
    """UsageError for a file that cannot be opened; not for pipes, which are read once."""
    for path in paths:
        if not is_pipe(path):
            with _opened(path):
                pass


# A file → chunks of its content → blocks of whole lines → lines


def _content(file: BinaryIO, source: str, notices: Notices) -> Iterator[bytes]:
    """Content of a file, plain or compressed, in pieces."""
    ended = yield from unpacked(file)
    if ended:
        notices.add("trailing-bytes", source=source, format=ended)


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


def _checked(block: bytes, source: str, first: int, notices: Notices) -> list[bytes]:
    """Validated lines of a block; `first` is the number of its first line."""
    text = "\0"  # as if it had one
    with suppress(UnicodeDecodeError):
        text = block.decode()
    if "\0" in text:
        block = mended(block, source, first, notices)
        text = block.decode()
    # `in` for each character, not one pattern for all: 0.2 ms against 7 ms per MiB of ASCII; else
    # among the few characters that are not ordinary: 0.4 ms against 6 ms
    others = text if text.isascii() else block.translate(None, _ORDINARY).decode()
    for kind, characters in _UNUSUAL.items():
        if present := [c for c in characters if c in others]:
            line = first + text.count("\n", 0, min(map(text.index, present)))
            notices.add(kind, source=source, line=line, count=sum(map(text.count, present)))
    if "\r" in text:
        block = _without_cr(block, source, first, notices)
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _without_cr(block: bytes, source: str, first: int, notices: Notices) -> bytes:
    """The block without carriage returns at line ends; those inside lines are kept."""
    ends = block.count(b"\r\n") + block.endswith(b"\r")
    inside = block.count(b"\r") - ends
    for kind, pattern, count in (
        ("crlf-line-ends", rb"\r(?:\n|\Z)", ends),
        ("carriage-return", rb"\r(?!\n|\Z)", inside),
    ):
        if match := re.search(pattern, block):
            line = first + block.count(b"\n", 0, match.start())
            notices.add(kind, source=source, line=line, count=count)
    return block.replace(b"\r\n", b"\n").removesuffix(b"\r")


def _too_long(source: str, line: int, limit: int) -> InputError:
    return InputError(
        f"expected at most {limit} bytes in a line, found more; "
        "is this a text file whose lines end with LF?",
        source=source,
        line=line,
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


def _missing(path: Path) -> str:
    """Message for a missing file, with the most similar name in its folder, or numbered ones."""
    if path.is_symlink():
        return f"{display(path)} is a link to {display(os.readlink(path))}, which does not exist"
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"no file {display(path)}: no folder {display(path.parent)}"
    numbered = re.compile(re.escape(path.name.rstrip(".")) + r"\.?\d+")  # ref.0, as Moses' tools
    close = difflib.get_close_matches(path.name, names, n=1)
    near = sorted(filter(numbered.fullmatch, names)) or close
    files = " and ".join(display(path.with_name(name)) for name in near)
    hint = f"; did you mean {files}{', an option for each' * (len(near) > 1)}?" if near else ""
    return f"no file {display(path)}{hint}"


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


# Files that must not change while a run reads them


class RereadFile(os.PathLike[str]):
    """Path of a file that is read several times, each time with the content of the first time.

    RerankError where size, time of modification, or the digest of a whole reading differ.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self._status: tuple[int, int] | None = None
        self._digest = b""

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def check(self) -> None:
        """RerankError if the file is not what it was when it was first opened."""
        if self._status not in (None, _status(self.path)):
            raise _changed(self.path)

    @contextmanager
    def reading(self, file: BinaryIO) -> Iterator[BinaryIO]:
        """The opened file, checked; after a reading that is broken off no digest is compared."""
        hashed = _HashedFile(file)
        self._status = self._status or _status(file.fileno())
        self.check()
        yield cast(BinaryIO, hashed)
        self.check()
        digest = hashed.digest.digest()
        if self._digest not in (b"", digest):
            raise _changed(self.path)
        self._digest = digest


class _HashedFile:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self.digest.update(data)
        return data


class InputFiles:
    """Input files of a run, as they are when it begins."""

    def __init__(self, paths: Iterable[FilePath]) -> None:
        self._before = {os.fspath(path): _status(path) for path in paths}

    def check(self) -> None:
        """RerankError if the size or the time of modification of a file is another one now."""
        for path, before in self._before.items():
            if _status(path) != before:
                raise _changed(path)


def _status(file: FilePath | int) -> tuple[int, int] | None:
    """Size and time of modification in ns; None for pipes, devices, `-` and missing files."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _changed(path: FilePath) -> RerankError:
    return RerankError(
        f"{display(path)} has changed while it was read; run the command again when no other "
        "program writes the file, or on a copy"
    )


# Compressed content


_PACKED_BYTES = 1 << 16  # small, because a decoder returns its unused input
_XZ_MEMORY_BYTES = 256 << 20  # `xz -9` needs 65 MiB; a forged header may ask for 4 GiB


class DamagedError(Exception):
    """A file that cannot be decompressed: what was expected, what was found, and the cure."""


class _Format(NamedTuple):
    name: str
    magic: re.Pattern[bytes]
    decoder: Callable[[], Any]  # each decodes one member


_FORMATS = (
    _Format("gzip", re.compile(rb"\x1f\x8b"), partial(zlib.decompressobj, wbits=31)),
    _Format(
        "xz",
        re.compile(rb"\xfd7zXZ\0"),
        partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES),
    ),
    # magic bytes of the first block or the end are included: a text may begin with "BZh"
    _Format("bzip2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.BZ2Decompressor),
)
_MAGIC_BYTES = 10
_UNSUPPORTED = {b"\x28\xb5\x2f\xfd": ("zstandard", "unzstd"), b"PK\3\4": ("zip", "unzip")}


def unpacked(file: BinaryIO) -> Generator[bytes, None, str]:
    """Content of a plain or compressed file, in pieces of at most 1 MiB.

    Returns the name of the format if other bytes follow its end, otherwise "". DamagedError if the
    compressed data are truncated or fail their checksum.
    """
    head = file.read(_MAGIC_BYTES)
    for magic, (name, tool) in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise DamagedError(
                f"expected text, gzip, xz or bzip2, found {name}; unpack it with {tool}"
            )
    for form in _FORMATS:
        if form.magic.match(head):
            return (yield from _members(file, head, form))
    yield head
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk
    return ""


def _members(file: BinaryIO, data: bytes, form: _Format) -> Generator[bytes, None, str]:
    """Content of a compressed file that begins with `data`; see `unpacked`.

    Zero bytes after a member are padding (tape blocks, xz); other bytes are junk.
    """
    while form.magic.match(data):
        decoder = form.decoder()
        while not decoder.eof:
            try:
                chunk = decoder.decompress(data, _CHUNK_BYTES)
            except (zlib.error, lzma.LZMAError, OSError, ValueError) as fault:
                raise DamagedError(
                    f"expected {form.name} data, found corrupt data ({fault}); copy the file again"
                ) from None
            data = getattr(decoder, "unconsumed_tail", b"")  # the others keep it themselves
            if chunk:
                yield chunk
            elif not decoder.eof and not (data := file.read(_PACKED_BYTES)):
                raise DamagedError(
                    f"expected the end of the {form.name} data, found the end of the file: "
                    "it is truncated; copy the file again"
                )
        data = decoder.unused_data.lstrip(b"\0")
        while len(data) < _MAGIC_BYTES and (more := file.read(_PACKED_BYTES)):
            data = (data + more).lstrip(b"\0")
    return form.name if data else ""
