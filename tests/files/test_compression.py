"""Compression: content survives, every damage is noticed, memory is bounded; faults 91 and 92."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.files import compression
from rerank.files.compression import DamagedError, packing, unpacked

Pack = Callable[[bytes], bytes]
PACK: dict[str, Pack] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
any_format = pytest.mark.parametrize("pack", PACK.values(), ids=PACK)


def unpack(data: bytes) -> tuple[bytes, str]:
    """The content, and the format after whose end other bytes were found."""
    pieces = []
    reading = unpacked(io.BytesIO(data))
    while True:
        try:
            pieces.append(next(reading))
        except StopIteration as end:
            return b"".join(pieces), end.value


@given(
    members=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
    pack=st.sampled_from(list(PACK.values())),
    padding=st.integers(0, 12),
    chunk=st.integers(1, 20),
)
def test_members_one_after_another_are_one_content_at_any_chunk_size(
    members: list[bytes], pack: Pack, padding: int, chunk: int
) -> None:
    packed = b"".join(pack(member) + bytes(padding) for member in members)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_CHUNK_BYTES", chunk)
        patch.setattr(compression, "_PACKED_BYTES", chunk)
        assert unpack(packed) == (b"".join(members), "")


@given(content=st.binary(max_size=100), place=st.integers(0, 999), bit=st.integers(0, 7))
@any_format
def test_a_flipped_bit_never_changes_the_content_unnoticed(
    pack: Pack, content: bytes, place: int, bit: int
) -> None:
    packed = bytearray(pack(content))
    packed[place % len(packed)] ^= 1 << bit
    try:
        found, junk = unpack(bytes(packed))
    except DamagedError:
        return
    # harmless fields of a gzip header, or a file that no longer is a compressed one
    assert found in (content, packed) or junk


@any_format
def test_a_file_cut_anywhere_is_refused(pack: Pack) -> None:
    packed = pack(b"a b c\n" * 30)
    for size in range(10, len(packed)):
        with pytest.raises(DamagedError, match="it is truncated; copy the file again"):
            unpack(packed[:size])


@any_format
def test_a_wrong_checksum_is_refused(pack: Pack) -> None:
    packed = bytearray(pack(b"a\n"))
    packed[-5 if pack is gzip.compress else 12] ^= 1
    with pytest.raises(DamagedError, match=r"expected \w+ data, found corrupt data .*; copy"):
        unpack(bytes(packed))


@pytest.mark.parametrize("junk", [b"junk", b"\0\0junk of more than a read", b"\x1f", b"\1"])
@pytest.mark.parametrize(
    ("pack", "name"),
    [(gzip.compress, "gzip"), (lzma.compress, "xz"), (bz2.compress, "bzip2")],
)
def test_bytes_after_the_end_are_left_out_and_reported(
    small_chunks: None, pack: Pack, name: str, junk: bytes
) -> None:
    assert unpack(pack(b"a\n") + junk) == (b"a\n", name)


@pytest.mark.parametrize("content", [b"", b"B", b"BZh9 is a product code\n", b"PK", b"plain\n"])
def test_what_is_not_compressed_is_left_as_it_is(content: bytes) -> None:
    assert unpack(content) == (content, "")


@pytest.mark.parametrize(
    ("content", "name", "tool"),
    [(b"\x28\xb5\x2f\xfd....", "zstandard", "unzstd"), (b"PK\3\4....", "zip", "unzip")],
)
def test_other_formats_are_named_with_the_tool_that_unpacks_them(
    content: bytes, name: str, tool: str
) -> None:
    with pytest.raises(DamagedError, match=f"found {name}; unpack it with {tool}"):
        unpack(content)


@any_format
def test_a_bomb_comes_out_in_pieces(pack: Pack) -> None:
    bomb = pack(bytes(1 << 23))
    assert len(bomb) < 1 << 14
    assert max(map(len, unpacked(io.BytesIO(bomb)))) <= 1 << 20


def test_an_xz_header_that_asks_for_gigabytes_is_refused() -> None:
    packed = bytearray(lzma.compress(b"a\n", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    # the header of the first block, and in it the size of the dictionary: xz format 3.1, 5.3.1
    packed[16] = 39  # 3 GiB
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    with pytest.raises(DamagedError, match="Memory usage limit"):
        unpack(bytes(packed))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_what_is_packed_is_unpacked_and_equal_content_gives_equal_bytes(suffix: str) -> None:
    content = os.urandom(99) + bytes(9999)
    twice = []
    for _ in range(2):
        file = io.BytesIO()
        packed = packing(file, suffix)
        assert packed is not None
        with packed:
            packed.write(content)
        twice.append(file.getvalue())
    assert twice[0] == twice[1]
    assert unpack(twice[0]) == (content, "")


@pytest.mark.parametrize("suffix", ["", ".txt", ".kbest"])
def test_other_suffixes_do_not_pack(suffix: str) -> None:
    assert packing(io.BytesIO(), suffix) is None


@pytest.mark.parametrize(("suffix", "tool"), [(".gz", "gzip"), (".xz", "xz"), (".bz2", "bzip2")])
def test_the_usual_tool_unpacks_what_is_packed(suffix: str, tool: str) -> None:
    file = io.BytesIO()
    packed = packing(file, suffix)
    assert packed is not None
    with packed:
        packed.write(b"a b\n" * 1000)
    try:
        found = subprocess.run(
            [tool, "-dc"], input=file.getvalue(), stdout=subprocess.PIPE, check=True
        )
    except FileNotFoundError:
        pytest.skip(f"needs {tool}")
    assert found.stdout == b"a b\n" * 1000
