"""Bytes of input files: lines, encodings and compression, whatever command reads them."""

import bz2
import gzip
import lzma
import os
import random
import re
import shutil
import subprocess
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.world import World

Pack = Callable[[bytes], bytes]
PACK: dict[str, Pack] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
any_format = pytest.mark.parametrize("pack", PACK.values(), ids=PACK)
in_world = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
FIRST = "first --kbest list --kbest-format flat:1"  # the lines of a text as they are read
LIST = b"0 ||| a b ||| A= 1 ||| 0\n0 ||| c ||| A= 2 ||| 0\n"


@pytest.mark.parametrize(
    ("content", "expected", "warning"),
    [
        (b"\xef\xbb\xbfa\nb\n", b"a\nb\n", "1 x byte-order mark at the start"),
        (b"a\n\xef\xbb\xbfb\n", None, "1 x byte-order mark inside the text, kept, first at list:2"),
        (b"a\r\nb\r\n", b"a\nb\n", "2 x CRLF line ends, read as LF, first at list:1"),
        (b"a\nb\r", b"a\nb\n", "1 x CRLF line ends, read as LF, first at list:2"),
        (b"a\rb\nc\r\r\n", b"a\rb\nc\r\n", "2 x carriage return inside"),
        ("a\u2028b\u2029c\x85d\ve\ff\x1cg\x1fh\n".encode(), None, "7 x separator other than LF"),
        ("a\nx\xa0b\xa0y\n".encode(), None, "2 x no-break space U+00A0, kept"),
        ("x\u3000y\n".encode(), None, "1 x ideographic space"),
        ("x\u200by\n".encode(), None, "1 x zero-width space"),
        ("x\xady\n".encode(), None, "1 x soft hyphen"),
        ("a\n\u202ec\u202c \u200f\n".encode(), None, "3 x bidirectional control character, kept, "),
        (b"a\nb", b"a\nb\n", "!byte"),
    ],
)
def test_odd_text_is_read_with_one_counted_warning(
    content: bytes, expected: bytes | None, warning: str, world: World
) -> None:
    world.write("list", content)
    run = world.ok(FIRST)
    assert run.stdout == (content if expected is None else expected)
    assert (warning.removeprefix("!") in run.err) != warning.startswith("!")


def test_characters_and_line_ends_may_lie_on_both_sides_of_a_block(world: World) -> None:
    odd = "é\r\n字\r\r\nb\r\n".encode()
    for place in range(1, len(odd)):
        content = b"x" * ((1 << 20) - place) + odd
        world.write("list", content)
        assert world.ok(FIRST).stdout == content.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("né\n", "utf-16-le", "UTF-16 little-endian"),
        ("\ufeff字\n", "utf-16-be", "UTF-16 big-endian"),
        ("\ufeff字\n", "utf-32-le", "UTF-32 little-endian"),
        ("\ufeff字\n", "utf-32-be", "UTF-32 big-endian"),
    ],
)
def test_wide_encodings_are_recognised(text: str, encoding: str, name: str, world: World) -> None:
    world.write("list", text.encode(encoding))
    start, _, cure = world.run(FIRST).err.partition("; convert it with: ")
    assert start == f"rerank: list:1: expected UTF-8, found what looks like {name}"
    converted = subprocess.check_output([*cure.split(), "list"], cwd=world.folder)
    assert converted.decode().removeprefix("\ufeff") == text.removeprefix("\ufeff")


@pytest.mark.parametrize(
    ("text", "encoding", "guess"),
    [
        ("un café noir\n", "latin-1", "WINDOWS-1252"),
        ("你好 世界\n", "gb18030", "GB18030"),
        ("привет всем\n", "cp1251", "WINDOWS-1251"),
    ],
)
def test_other_encodings_are_guessed(text: str, encoding: str, guess: str, world: World) -> None:
    world.write("list", text.encode(encoding))
    message, _, cure = world.run(FIRST).err.partition(" text; if so, convert it with: ")
    assert message.endswith(f"probably {guess}")
    assert subprocess.check_output([*cure.split(), "list"]).decode() == text
    assert world.ok(f"{FIRST} --encoding {guess}").out == text


def test_encodings_that_keep_ascii_are_known_and_others_refused(world: World) -> None:
    world.write("list", "a text\n")
    for name in ("latin-1", "cp1251", "gb18030", "big5", "UTF8"):
        assert world.ok(f"{FIRST} --encoding {name}").out == "a text\n"
    for name in ("utf-16", "utf-7", "cp037", "hex", "x"):
        assert "name one as latin-1" in world.refused(f"{FIRST} --encoding {name}")


def test_bytes_of_another_encoding_are_replaced_and_counted_if_asked_for(world: World) -> None:
    world.write("list", b"ok\nun caf\xe9 noir \xe9 \xef\xbf\xbd\n")
    run = world.ok(f"{FIRST} --encoding-errors replace")
    assert run.out == "ok\nun caf\ufffd noir \ufffd \ufffd\n"
    assert "2 x bytes that are not utf-8, read as U+FFFD, first at list:2" in run.err
    world.write("list", "né\r\nœuf\n".encode("cp1252"))
    run = world.ok(f"{FIRST} --encoding cp1252")
    assert (run.out, "1 x CRLF line ends" in run.err) == ("né\nœuf\n", True)


# Compression, by content
@in_world
@given(
    members=st.lists(st.text("ab \n", max_size=60), min_size=1, max_size=4),
    pack=st.sampled_from(list(PACK.values())),
    padding=st.integers(0, 12),
)
def test_members_are_one_text(members: list[str], pack: Pack, padding: int, world: World) -> None:
    text = f"x{''.join(members)}x\n"
    world.write("list", text)
    plain = world.ok(FIRST).out
    parts = [b"x", *(member.encode() for member in members), b"x\n"]
    world.write("list", b"".join(pack(part) + bytes(padding) for part in parts))
    assert world.ok(FIRST).out == plain


@any_format
def test_a_member_may_begin_anywhere_in_a_block_of_packed_bytes(pack: Pack, world: World) -> None:
    text = random.Random(1).randbytes(25_000).hex() + "\n"
    first = pack(text.encode())
    for left in range(12):  # bytes before the end of the first block after a head of ten
        world.write("list", first + bytes((1 << 16) + 10 - left - len(first)) + pack(b"b\n"))
        assert world.ok(FIRST).out == f"{text}b\n"


@any_format
@in_world
@given(place=st.integers(0, 999), bit=st.integers(0, 7))
def test_a_flipped_bit_is_never_unnoticed(pack: Pack, place: int, bit: int, world: World) -> None:
    packed = bytearray(pack(LIST))
    packed[place % len(packed)] ^= 1 << bit
    world.write("list", bytes(packed))
    run = world.run("convert --kbest list --to moses")
    # harmless fields of a gzip header, or other bytes after the end
    assert run.exit in (2, 3) or run.stdout == LIST


@any_format
def test_a_file_cut_anywhere_is_refused(pack: Pack, world: World) -> None:
    packed = pack(LIST * 9)
    for size in range(10, len(packed)):
        world.write("list", packed[:size])
        assert "it is truncated; copy the file again" in world.refused("first --kbest list", exit=3)


def test_a_cut_file_gives_the_number_of_the_line_that_is_missing(world: World) -> None:
    packer = zlib.compressobj(wbits=31)
    world.write("list", packer.compress(b"a\nb\nc") + packer.flush(zlib.Z_FULL_FLUSH))
    assert "list:3: expected the end of the gzip data, found the end" in world.run(FIRST).err


@pytest.mark.parametrize("junk", [b"\0\0" + b"junk" * 20_000, b"\x1f"], ids=["long", "short"])
@any_format
def test_bytes_after_the_end_are_left_out(pack: Pack, junk: bytes, world: World) -> None:
    world.write("list", pack(b"a\n") + junk)
    run = world.ok(FIRST)
    assert run.out == "a\n"
    assert "1 x bytes after the end of the" in run.err


def test_compression_is_told_by_content(world: World) -> None:
    for text in ("B\n", "BZh9 is a product code\n", "PK\n"):
        world.write("list", text)
        assert world.ok(FIRST).out == text
    for content, message in (
        (b"\x28\xb5\x2f\xfd....", "found zstandard; unpack it with unzstd"),
        (b"PK\3\4....", "found zip; unpack it with unzip"),
    ):
        world.write("list", content)
        assert message in world.run(FIRST).err


def test_an_xz_header_that_asks_for_gigabytes_is_refused(world: World) -> None:
    packed = bytearray(lzma.compress(b"a\n", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    # the header of the first block, and in it the size of the dictionary: xz format 3.1, 5.3.1
    packed[16] = 39  # 3 GiB
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    world.write("list", bytes(packed))
    assert "Memory usage limit" in world.run(FIRST).err


def test_a_file_of_one_endless_line_is_unpacked_only_up_to_the_limit_of_lines(world: World) -> None:
    world.write("list", gzip.compress(b" " * (1 << 27), 1))
    tracemalloc.start()
    try:
        run = world.run("first --kbest list")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "list:1: expected at most 16777216 bytes in a line" in run.err
    assert peak < 1 << 26


def test_a_line_may_have_the_limit_but_not_a_byte_more(world: World) -> None:
    for extra, code in ((0, 0), (1, 3)):
        world.write("dev.docs", f"{'x' * (8192 + extra)}\n" + "y\n" * 3)
        run = world.run("first --kbest dev.kbest --docs dev.docs --out out")
        assert run.exit == code, run.err


# Names
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zzz", "no file zzz\n"),
        ("nowhere/dev.kbest", "no folder nowhere"),
        ("link", "link is a link to gone, which does not exist"),
        (".", "cannot read ."),
    ],
)
def test_a_file_that_cannot_be_read_has_its_cure(name: str, message: str, world: World) -> None:
    Path("link").symlink_to("gone")
    assert message in world.refused(["first", "--kbest", name])


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_disk_that_fails_is_a_failed_run(world: World) -> None:
    told = "reading /proc/self/mem failed: input/output error"
    assert told in world.refused("first --kbest dev.kbest --docs /proc/self/mem", exit=1)


def test_a_list_from_a_pipe_is_read_as_often_as_needed(world: World) -> None:
    os.mkfifo("pipe")
    content = world.content("dev.kbest")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
    writer.start()
    assert world.ok("convert --kbest pipe --to moses").stdout == content
    writer.join()


@pytest.mark.parametrize(("written", "message"), [
    ("sub/../dev.kbest",
        "output sub/../dev.kbest is also the input dev.kbest; name another file"),
    ("link", "output link is also the input dev.kbest; name another file"),
    ("hard", "output hard is also the input dev.kbest; name another file"),
    ("loop", "output loop is a symbolic link to itself"),
    ("/dev/stdout", "only one output can be - (standard output); name files for others"),
])  # fmt: skip
def test_outputs_that_cannot_be_are_refused_first(written: str, message: str, world: World) -> None:
    Path("sub").mkdir()
    Path("link").symlink_to("dev.kbest")
    Path("hard").hardlink_to("dev.kbest")
    Path("loop").symlink_to("loop")
    other = "-" if written == "/dev/stdout" else "ids"
    before = world.files()
    command = f"convert --kbest dev.kbest --docs dev.docs --docs-out {other} --to first --out"
    run = world.run(command, written)
    assert (run.exit, run.err, world.files()) == (2, f"rerank: {message}\n", before)


def test_an_unwritable_folder_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    expected = "rerank: output out: the folder . cannot be written\n"
    assert world.refused("first --kbest dev.kbest --out out") == expected
    os.mkfifo("pipe")
    expected = "rerank: output pipe cannot be written: permission denied\n"
    assert world.refused("first --kbest dev.kbest --out pipe") == expected


def test_input_that_cannot_be_copied_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    free = iter([10**9, 10**7])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    run = world.run("convert --kbest - --to moses", stdin=world.content("dev.kbest"))
    assert run.exit == 1
    assert re.fullmatch(
        "rerank: cannot copy <stdin> to a temporary file: after 0.0 GB the disk of /.* is nearly "
        "full; name a file instead, or set TMPDIR to a larger disk\n",
        run.err,
    )


def test_a_closed_output_says_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.world.redirect_stdout", lambda out: redirect_stdout(None))
    expected = "rerank: standard output is closed; name a file instead of -\n"
    assert world.refused("first --kbest dev.kbest") == expected
