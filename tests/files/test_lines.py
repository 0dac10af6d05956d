"""Lines: any bytes give lines or an `InputError`; faults 1-10, 13, 14, 18, 91 and 92 one by one."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rerank.errors import InputError, RerankError, UsageError
from rerank.files import compression, lines
from rerank.files.encoding import Encoding
from rerank.files.lines import count_lines, digest, read_lines, spool
from rerank.files.paths import FilePath, display
from rerank.notices import Notices

# what has no notice and no error: neither controls, nor special spaces, nor marks
plain_text = st.text(st.sampled_from("ab é字𝄞|=-1.\n"), max_size=80)


def read(path: FilePath, **options: Any) -> tuple[list[bytes], list[str]]:
    notices = Notices()
    return list(read_lines(path, notices, **options)), notices.lines()


def outcome(path: Path, **options: int) -> list[bytes] | InputError:
    try:
        return read(path, **options)[0]
    except InputError as fault:
        return fault


def kinds(content: bytes, folder: Path) -> tuple[list[bytes], list[str]]:
    path = folder / "f"
    path.write_bytes(content)
    found, messages = read(path)
    return found, [message.replace(str(folder) + "/", "") for message in messages]


def refusal(content: bytes, folder: Path, **options: int) -> str:
    path = folder / "f"
    path.write_bytes(content)
    with pytest.raises(InputError) as fault:
        read(path, **options)
    return str(fault.value).removeprefix(str(folder) + "/")


# Properties


@given(content=st.binary(max_size=200), limit=st.integers(1, 100))
@example(content=b"", limit=1)
@example(content=b"\r", limit=1)
@example(content=b"\xef\xbb\xbf", limit=1)
@example(content=b"\xff\xfe", limit=1)
@example(content=b"\x1f\x8b", limit=1)
@example(content=b"BZh91AY&SY", limit=1)
@example(content=b"\xfd7zXZ\0", limit=1)
def test_any_bytes_give_lines_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, limit: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "f"
    path.write_bytes(content)
    found = outcome(path, max_line_bytes=limit)
    if isinstance(found, InputError):
        assert str(found).startswith(f"{path}:")
        assert "; " in str(found)  # a cure
    else:
        assert all(len(line) <= limit and b"\n" not in line for line in found)


@given(text=plain_text)
def test_lines_joined_by_lf_are_the_text(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("text") / "f"
    path.write_bytes(text.encode())
    found, messages = read(path)
    assert found == text.encode().removesuffix(b"\n").split(b"\n") if text else found == []
    assert messages == []


@given(text=st.text(st.sampled_from("a\n\r\u2028\xa0\u202e\v字"), max_size=60))
def test_lines_places_and_counts_do_not_depend_on_the_chunk_size(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("chunks") / "f"
    path.write_bytes(text.encode())
    whole = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "_CHUNK_BYTES", 3)
        found, messages = read(path)
    assert (found, sorted(messages)) == (whole[0], sorted(whole[1]))


# Faults 1-10, 13, 14: text and encoding


@pytest.mark.parametrize(
    ("content", "expected", "notice"),
    [
        pytest.param(
            b"\xef\xbb\xbfa\nb\n", [b"a", b"b"], "1 x byte-order mark at the start", id="1"
        ),
        pytest.param(
            b"a\n\xef\xbb\xbfb\n",
            [b"a", b"\xef\xbb\xbfb"],
            "1 x byte-order mark inside the text, kept, first at f:2",
            id="2",
        ),
        pytest.param(b"a\r\nb\r\n", [b"a", b"b"], "2 x CRLF line ends, read as LF, first", id="7"),
        pytest.param(
            b"a\nb\r", [b"a", b"b"], "1 x CRLF line ends, read as LF, first at f:2", id="7-end"
        ),
        pytest.param(b"a\rb\nc\r\r\n", [b"a\rb", b"c\r"], "2 x carriage return inside", id="8"),
        pytest.param(
            "a\u2028b\u2029c\x85d\ve\ff\x1cg\x1fh\n".encode(),
            ["a\u2028b\u2029c\x85d\ve\ff\x1cg\x1fh".encode()],
            "7 x separator other than LF",
            id="9",
        ),
        pytest.param(
            "a\n\xa0b\xa0\n".encode(), [b"a", "\xa0b\xa0".encode()], "2 x no-break", id="13-a0"
        ),
        pytest.param(
            "\u3000\n".encode(), ["\u3000".encode()], "1 x ideographic space", id="13-3000"
        ),
        pytest.param(
            "\u200b\n".encode(), ["\u200b".encode()], "1 x zero-width space", id="13-200b"
        ),
        pytest.param("\xad\n".encode(), ["\xad".encode()], "1 x soft hyphen", id="13-ad"),
        pytest.param(
            "a\nb\n\u202ec\u202c \u200f\n".encode(),
            [b"a", b"b", "\u202ec\u202c \u200f".encode()],
            "3 x bidirectional control character, kept, first at f:3",
            id="14",
        ),
    ],
)
def test_odd_text_is_read_with_one_counted_notice(
    tmp_path: Path, content: bytes, expected: list[bytes], notice: str
) -> None:
    found, messages = kinds(content, tmp_path)
    assert found == expected
    assert [message.startswith(notice) for message in messages].count(True) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"\na", [b"", b"a"]),
    ],
    ids=["empty", "one-blank", "no-final-lf", "trailing-blank", "leading-blank"],
)
def test_only_lf_ends_a_line_and_the_last_may_lack_it(
    tmp_path: Path, content: bytes, expected: list[bytes]
) -> None:
    assert kinds(content, tmp_path) == (expected, [])


def test_a_fault_is_numbered_over_all_blocks(tmp_path: Path, small_chunks: None) -> None:
    assert refusal(b"ab\n" * 500 + b"\xff\n", tmp_path).startswith("f:501: ")


def test_strict_makes_an_error_of_the_first_notice(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\nb\r\n")
    with pytest.raises(InputError, match=r"f:2: CRLF line ends"):
        list(read_lines(path, Notices(strict=True)))


# Fault 18: long lines


@pytest.mark.parametrize("ending", [b"", b"\n", b"\nab\n"], ids=["end", "lf", "more"])
def test_a_line_may_have_the_limit_but_not_a_byte_more(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"ab\n" + b"x" * 10 + ending)
    assert read(path, max_line_bytes=10)[0][1] == b"x" * 10
    message = refusal(b"ab\n" + b"x" * 11 + ending, tmp_path, max_line_bytes=10)
    assert message.startswith("f:2: expected at most 10 bytes in a line, found more; ")


def test_a_long_line_is_refused_for_its_length_even_if_cut_inside_a_character(
    tmp_path: Path, small_chunks: None
) -> None:
    assert "expected at most 9 bytes" in refusal("字".encode() * 9, tmp_path, max_line_bytes=9)


def test_a_line_of_several_chunks_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "f"
    long = "字 ".encode() * 1_000_000  # 4 MB
    path.write_bytes(b"a\n" + long + b"\nb\n")
    assert read(path)[0] == [b"a", long, b"b"]


# Faults 91, 92: compression


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


Pack = Callable[[bytes], bytes]
PACK: dict[str, Pack] = {"g": gz, "x": lzma.compress, "b": bz2.compress}
any_format = pytest.mark.parametrize("pack", PACK.values(), ids=["gz", "xz", "bz2"])


def test_a_cut_file_gives_the_number_of_the_line_that_is_missing(
    tmp_path: Path, small_chunks: None
) -> None:
    path = tmp_path / "f"
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(b"a\nb\nc") + packer.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(whole)
    reading = read_lines(path, Notices())
    assert [next(reading), next(reading)] == [b"a", b"b"]
    with pytest.raises(InputError, match=r"f:3: expected the end of the gzip data, found the end"):
        next(reading)


@any_format
def test_other_bytes_after_the_end_are_ignored_with_a_notice(
    tmp_path: Path, small_chunks: None, pack: Pack
) -> None:
    found, messages = kinds(pack(b"a\n") + bytes(3) + b"junk", tmp_path)
    assert found == [b"a"]
    assert len(messages) == 1
    assert "bytes after the end of the" in messages[0]


@any_format
def test_an_empty_file_has_no_lines_compressed_or_not(tmp_path: Path, pack: Pack) -> None:
    assert kinds(pack(b""), tmp_path) == ([], [])


def test_a_bomb_is_unpacked_only_up_to_the_line_limit(tmp_path: Path) -> None:
    bomb = gz(b" " * (1 << 26))  # 64 MiB in 64 KiB
    tracemalloc.start()
    try:
        message = refusal(bomb, tmp_path, max_line_bytes=1 << 21)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "expected at most 2097152 bytes in a line" in message
    assert peak < 1 << 24


@any_format
def test_a_file_of_many_lines_is_unpacked_only_up_to_the_limit_of_its_reader(
    tmp_path: Path, pack: Pack
) -> None:
    path = tmp_path / "f"
    path.write_bytes(pack(b"a\n" * (1 << 22)))  # 8 MiB
    assert len(read(path, max_bytes=1 << 23)[0]) == 1 << 22
    tracemalloc.start()
    try:
        message = refusal(path.read_bytes(), tmp_path, max_bytes=1 << 16)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.startswith("f: expected a file of at most 65,536 bytes, unpacked, found more")
    assert peak < 1 << 24


@pytest.mark.parametrize("pack", [bytes, *PACK.values()], ids=["plain", "gz", "xz", "bz2"])
def test_line_ends_are_counted_without_reading_the_lines(tmp_path: Path, pack: Pack) -> None:
    path = tmp_path / "f"
    path.write_bytes(pack(b"a\n\n\xff\n" * 99_999 + b"end"))
    assert count_lines(path) == 3 * 99_999
    path.write_bytes(path.read_bytes()[:-9])
    assert count_lines(path) <= 3 * 99_999


# Files, standard input, names


def test_a_missing_file_is_a_usage_error_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "dev.kbest").touch()
    with pytest.raises(UsageError, match=r"no file .*dev\.kbset; did you mean .*dev\.kbest\?$"):
        read(tmp_path / "dev.kbset")
    with pytest.raises(UsageError, match=r"no file .*zzz$"):
        read(tmp_path / "zzz")
    with pytest.raises(UsageError, match=r"no folder .*nowhere$"):
        read(tmp_path / "nowhere" / "dev.kbest")


def test_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(UsageError, match="link is a link to gone, which does not exist"):
        read(tmp_path / "link")


@pytest.mark.parametrize("name", [".", "a\0b"])
def test_what_is_no_file_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        list(read_lines(f"{tmp_path}/{name}", Notices()))


def test_a_disk_that_fails_is_a_failed_run(tmp_path: Path) -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs Linux")
    with pytest.raises(RerankError, match="reading /proc/self/mem failed: input/output error") as f:
        list(read_lines("/proc/self/mem", Notices()))
    assert f.value.exit_code == 1


def test_standard_input_is_read_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gz(b"a\nb\r\n"))))
    notices = Notices()
    assert list(read_lines("-", notices)) == [b"a", b"b"]
    assert notices.lines() == ["1 x CRLF line ends, read as LF, first at <stdin>:2"]
    assert not sys.stdin.closed


def test_closed_standard_input_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        list(read_lines("-", Notices()))


def test_spooled_standard_input_is_read_twice_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with spool("-") as path:
        assert display(path) == "<stdin>"
        assert [read(path), read(path)] == [([b"a"], [])] * 2
    assert not os.path.exists(path)


def test_a_spooled_pipe_is_read_twice_under_its_own_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a\n",))
    writer.start()
    with spool(pipe) as path:
        assert display(path) == "<pipe>"
        assert [read(path), read(path)] == [([b"a"], [])] * 2
    writer.join()


def test_spooling_leaves_files_where_they_are(tmp_path: Path) -> None:
    with spool(tmp_path / "f") as path:
        assert path.path == tmp_path / "f"


def test_spooling_onto_a_full_disk_names_the_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs Linux")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    monkeypatch.setattr(lines, "STDIN", "/dev/full")  # where the copy goes
    with pytest.raises(RerankError, match=r"no space left on device; .* TMPDIR"), spool("-"):
        pass


def test_the_digest_is_that_of_the_stored_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gz(b"a\n"))
    assert digest(path) == "sha256:" + hashlib.sha256(gz(b"a\n")).hexdigest()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("-", "<stdin>"),
        ("a/dev.kbest", "a/dev.kbest"),
        ("été 字", "été 字"),
        ("a\nb\x1b[31m", r"a\nb\x1b[31m"),
        (os.fsdecode(b"caf\xe9"), r"caf\udce9"),
    ],
)
def test_names_are_shown_on_one_printable_line(path: str, shown: str) -> None:
    assert display(path) == shown


def test_a_file_in_another_encoding_is_read_as_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes("né\r\nœuf\n".encode("cp1252"))
    expected = ["né".encode(), "œuf".encode()]
    notices = [f"1 x CRLF line ends, read as LF, first at {path}:1"]
    assert read(path, encoded=Encoding("cp1252")) == (expected, notices)
