"""Input files that change while a run reads them."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.errors import RerankError
from rerank.files.inputs import InputFiles, RereadFile
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices

CONTENT = b"one\ntwo\nthree\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("f").write_bytes(CONTENT)
    return Path("f")


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"four\n")


def touch(path: Path) -> None:
    now = os.stat(path).st_mtime_ns
    os.utime(path, ns=(now, now + 1))


def replace(path: Path) -> None:
    Path("new").write_bytes(CONTENT + b"\n")
    os.replace("new", path)


def rewrite_with_its_old_size_and_time(path: Path) -> None:
    """What a program does that maps the file, or that restores its time."""
    before = os.stat(path)
    path.write_bytes(CONTENT.replace(b"two", b"TWO"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def read(file: RereadFile) -> list[bytes]:
    return list(read_lines(file, Notices()))


@pytest.mark.parametrize(
    "change", [append, touch, replace, rewrite_with_its_old_size_and_time, os.truncate]
)
def test_a_file_that_changes_between_two_readings_is_noticed(
    change: Callable[..., None], path: Path
) -> None:
    file = RereadFile(path)
    assert read(file) == read(file) == CONTENT.split()
    change(path, *([3] if change is os.truncate else []))
    with pytest.raises(RerankError) as fault:
        read(file)
    assert str(fault.value) == (
        "f has changed while it was read; run the command again when no other program writes the "
        "file, or on a copy"
    )
    assert fault.value.exit_code == 1


def test_a_file_that_grows_during_a_reading_is_noticed(path: Path) -> None:
    lines = read_lines(RereadFile(path), Notices())
    assert next(lines) == b"one"
    append(path)
    with pytest.raises(RerankError, match="f has changed while it was read"):
        list(lines)


def test_a_reading_may_be_broken_off(path: Path) -> None:
    """As that of the first lines, from which a format is known."""
    file = RereadFile(path)
    lines = read_lines(file, Notices())
    assert next(lines) == b"one"
    lines.close()  # type: ignore[attr-defined]
    assert read(file) == read(file) == CONTENT.split()
    rewrite_with_its_old_size_and_time(path)
    with pytest.raises(RerankError, match="f has changed while it was read"):
        read(file)


def test_a_compressed_file_is_read_again_too(path: Path) -> None:
    path.write_bytes(gzip.compress(CONTENT) + b"\0" * 512)
    file = RereadFile(path)
    assert read(file) == read(file) == CONTENT.split()
    assert (display(file), os.fspath(file)) == ("f", "f")


@pytest.mark.parametrize("change", [append, touch, replace, os.unlink])
def test_inputs_are_at_the_end_what_they_were_at_the_beginning(
    change: Callable[[Path], None], path: Path
) -> None:
    os.mkfifo("pipe")
    inputs = InputFiles([path, "-", "pipe", "missing"])
    inputs.check()
    change(path)
    with pytest.raises(RerankError, match=r"^f has changed while it was read"):
        inputs.check()
