"""Compressed files: detected by content when read, by the suffix of the name when written.

Reading is streamed: memory is bounded for any compression ratio, every checksum is verified, and a
file may have several members (`cat a.gz b.gz`, bgzip, pigz).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Generator
from functools import partial
from typing import BinaryIO, NamedTuple, Protocol, cast

_CHUNK_BYTES = 1 << 20
_PACKED_BYTES = 1 << 16  # small, because a decoder returns its unused input
_XZ_MEMORY_BYTES = 256 << 20  # `xz -9` needs 65 MiB; a forged header may ask for 4 GiB


class DamagedError(Exception):
    """A file that cannot be decompressed: what was expected, what was found, and the cure."""


class _Decoder(Protocol):
    """Interface of the decompressors of `zlib`, `lzma` and `bz2`; each decodes one member."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Format(NamedTuple):
    name: str
    magic: re.Pattern[bytes]
    decoder: Callable[[], _Decoder]


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


def packing(file: BinaryIO, suffix: str) -> BinaryIO | None:
    """File that compresses into `file` if the suffix is `.gz`, `.xz` or `.bz2`, otherwise None.

    Equal content gives equal bytes: neither name nor time is stored. Closing it leaves `file` open.
    """
    if suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0))
    if suffix == ".xz":
        return cast(BinaryIO, lzma.LZMAFile(file, "wb"))
    if suffix == ".bz2":
        return cast(BinaryIO, bz2.BZ2File(file, "wb"))
    return None
