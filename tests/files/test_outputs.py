"""Outputs: the final name holds the old content or the new, whatever fails; faults 80-83."""

import gzip
import io
import json
import math
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from rerank.errors import RerankError, UsageError
from rerank.files import outputs
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic, atomic_all, check_outputs, nowhere, write_json
from rerank.notices import Notices

needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")


def write(path: str | Path, content: bytes = b"new\n") -> None:
    with atomic(path) as file:
        file.write(content)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that is there already, alone in its folder."""
    path = tmp_path / "out"
    path.write_bytes(b"old\n")
    return path


def unchanged(path: Path) -> bool:
    """Whether the folder of the old file holds it as it was, and nothing else."""
    return list(path.parent.iterdir()) == [path] and path.read_bytes() == b"old\n"


# What is written


def test_the_new_content_replaces_the_old_and_nothing_else_stays(old: Path) -> None:
    with atomic(old) as file:
        file.write(b"new\n")
        assert old.read_bytes() == b"old\n"
    assert old.read_bytes() == b"new\n"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_the_suffix_asks_for_compression(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write(path, b"a\nb\n" * 9999)
    assert path.stat().st_size < 9999
    assert list(read_lines(path, Notices())) == [b"a", b"b"] * 9999
    before = path.read_bytes()
    write(path, b"a\nb\n" * 9999)
    assert path.read_bytes() == before


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_mode_comes_from_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("target", ["old\n", None], ids=["to-a-file", "to-nothing-yet"])
def test_a_symbolic_link_stays_and_its_target_is_written(
    tmp_path: Path, target: str | None
) -> None:
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "real", tmp_path / "link"
    if target:
        real.write_text(target)
    link.symlink_to(Path("far", "real"))
    write(link)
    assert link.is_symlink()
    assert real.read_bytes() == b"new\n"


def test_names_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    for name in ("n" * 255, "字" * 85):
        write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"new\n"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join()
    assert found == [b"new\n"]
    assert pipe.is_fifo()


def test_an_open_descriptor_is_written_in_place(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        write(f"/dev/fd/{file.fileno()}")
        assert os.fstat(file.fileno()).st_nlink == 1
    assert (tmp_path / "out").read_bytes() == b"new\n"


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_is_written_after_what_was_printed(
    capfdbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    sys.stdout.write("first\n")
    write(name)
    sys.stdout.write("last\n")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"first\nnew\nlast\n"


def test_standard_output_may_be_replaced_by_a_stream_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(memory))
    write("-")
    assert memory.getvalue() == b"new\n"


def test_closed_standard_output_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UsageError, match="standard output is closed"):
        write("-")


# What fails


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, OSError])
def test_a_fault_in_the_block_leaves_the_old_file_and_passes_on_unchanged(
    tmp_path: Path, fault: type[BaseException], suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old\n")
    raised = fault("from elsewhere")

    def write_and_fail() -> None:
        with atomic(path) as file:
            file.write(b"new" * (1 << 20))
            raise raised

    with pytest.raises(fault, match="from elsewhere") as caught:
        write_and_fail()
    assert caught.value is raised
    assert unchanged(path)


CALLS = ["open", "write", "fsync", "replace"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (28, r"^no space left writing .*out \(it needs more than \d\.\d MB\)$"),
        (122, r"^no space left writing .*out \(it needs more than \d\.\d MB\)$"),
        (5, r"^writing .*out failed: input/output error$"),
        (13, r"^writing .*out failed: permission denied$"),
    ],
    ids=["full", "quota", "io", "permission"],
)
def test_a_fault_of_any_system_call_leaves_the_old_file_and_names_the_output(
    old: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    class Failing(io.FileIO):
        write = fail  # type: ignore[assignment]

    with monkeypatch.context() as patch:
        if call == "open":
            patch.setattr(outputs, "open", fail, raising=False)
        elif call == "write":
            patch.setattr(outputs, "open", lambda p, m, **_: Failing(p, m), raising=False)
        else:
            patch.setattr(os, call, fail)
        with pytest.raises(RerankError, match=message) as caught:
            write(old)
    assert caught.value.exit_code == 1
    assert unchanged(old)


@pytest.mark.parametrize("size", [1, 3 << 20], ids=["on-closing", "on-the-way"])
@pytest.mark.parametrize("nth", [0, 1, 2])
def test_a_disk_that_fills_at_any_write_leaves_the_old_file(
    old: Path, monkeypatch: pytest.MonkeyPatch, size: int, nth: int
) -> None:
    class Filling(io.FileIO):
        left = nth

        def write(self, data: object, /) -> int:
            if not self.left:
                raise OSError(28, os.strerror(28))
            self.left -= 1
            return super().write(memoryview(data)[: 1 << 19])  # type: ignore[arg-type]

    monkeypatch.setattr(outputs, "open", lambda p, m, **_: Filling(p, m), raising=False)
    if nth and size == 1:
        write(old, b"x")
        assert old.read_bytes() == b"x"
        return
    with pytest.raises(RerankError, match=r"no space left writing .* \(it needs more than"):
        write(old, b"x" * size)
    assert unchanged(old)


@needs_dev_full
@pytest.mark.parametrize("content", [b"x", b"x" * (3 << 20)], ids=["small", "large"])
def test_a_full_device_is_a_failed_run(content: bytes) -> None:
    with pytest.raises(RerankError, match=r"^no space left writing /dev/full ") as caught:
        write("/dev/full", content)
    assert caught.value.exit_code == 1


# Several outputs of one run


def write_three(folder: Path) -> None:
    """New content for `plain` and `packed.gz` and a new file `json`."""
    with atomic_all([folder / "plain", folder / "packed.gz", folder / "json"]) as files:
        for file in files:
            file.write(b"new\n")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder of two outputs that are there already."""
    for name in ("plain", "packed.gz"):
        (tmp_path / name).write_bytes(b"old\n")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_several_outputs_are_written_each_in_its_way(two: Path) -> None:
    write_three(two)
    new = gzip.decompress((two / "packed.gz").read_bytes())
    assert contents(two) == {
        "plain": b"new\n",
        "packed.gz": (two / "packed.gz").read_bytes(),
        "json": b"new\n",
    }
    assert new == b"new\n"


@pytest.mark.parametrize("call", ["open", "write", "fsync"])
@pytest.mark.parametrize("nth", [0, 1, 2])
def test_a_fault_in_one_of_several_outputs_keeps_the_old_content_of_all(
    two: Path, monkeypatch: pytest.MonkeyPatch, call: str, nth: int
) -> None:
    left = nth

    def failing(function: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(28, os.strerror(28))
            return function(*arguments, **options)

        return called

    class Filling(io.FileIO):
        write = failing(io.FileIO.write)  # type: ignore[assignment]

    before = contents(two)
    if call == "open":
        monkeypatch.setattr(outputs, "open", failing(open), raising=False)
    elif call == "write":
        monkeypatch.setattr(outputs, "open", lambda p, m, **_: Filling(p, m), raising=False)
    else:
        monkeypatch.setattr(os, call, failing(os.fsync))
    with pytest.raises(RerankError, match="no space left writing"):
        write_three(two)
    assert contents(two) == before


def test_files_beside_a_stream_whose_reader_has_gone_are_not_written(
    two: Path,
) -> None:
    before = contents(two)
    reader, writer = os.pipe()
    os.close(reader)

    def write_both() -> None:
        with atomic_all([two / "plain", f"/dev/fd/{writer}"]) as files:
            for file in files:
                file.write(b"new\n")

    with pytest.raises(RerankError, match=r"the reader of the output has gone; .*plain is not"):
        write_both()
    os.close(writer)
    assert contents(two) == before


PROGRAM = """
import sys
from rerank.errors import RerankError
from rerank.files.outputs import atomic
try:
    with atomic("-") as file:
        for _ in range(99):
            file.write(b"x" * 99_999)
except (RerankError, BrokenPipeError) as fault:
    sys.stderr.write(f"{type(fault).__name__}: {fault}")
"""


def run(stdout: int | BinaryIO) -> tuple[int, str]:
    """Exit code and standard error of a program whose standard output does not take it all."""
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        program, stdout=stdout, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2], check=False
    )
    return done.returncode, done.stderr.decode()


@needs_dev_full
def test_standard_output_on_a_full_disk_is_named_once_and_not_again_at_exit() -> None:
    with open("/dev/full", "wb") as full:
        assert run(full) == (
            0,
            "RerankError: no space left writing <stdout> (it needs more than 0.0 MB)",
        )


def test_a_reader_that_has_left_is_a_broken_pipe_and_nothing_more_at_exit() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, message = run(writer)
    finally:
        os.close(writer)
    assert code == 0
    assert message.startswith("BrokenPipeError")
    assert "\n" not in message


def test_a_folder_that_has_vanished_is_a_failed_run(tmp_path: Path) -> None:
    with pytest.raises(RerankError, match="out failed: no such file or directory") as caught:
        write(tmp_path / "gone" / "out")
    assert caught.value.exit_code == 1


def test_only_old_temporary_files_of_this_target_and_of_dead_processes_are_removed(
    tmp_path: Path,
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        f".out.{dead.pid}.0123abcd.tmp": 7200,
        f".out.{dead.pid}.0123abce.tmp": 60,
        f".out.{os.getppid()}.0123abcd.tmp": 7200,
        f".other.{dead.pid}.0123abcd.tmp": 7200,
        f".out.{dead.pid}.mine.tmp": 7200,
    }
    for name, age in names.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    write(tmp_path / "out")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", *list(names)[1:]}


def test_a_temporary_file_of_an_earlier_process_of_this_number_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container that starts again, processes have the numbers of before."""
    monkeypatch.setattr(outputs, "_STARTED", time.time() - 7200)
    for name, age in {"01234567": 3 * 3600, "89abcdef": 5400}.items():
        (tmp_path / f".out.{os.getpid()}.{name}.tmp").touch()
        os.utime(tmp_path / f".out.{os.getpid()}.{name}.tmp", (time.time() - age,) * 2)
    write(tmp_path / "out")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", f".out.{os.getpid()}.89abcdef.tmp"}


# JSON


def test_json_is_indented_utf8_with_a_final_line_end(tmp_path: Path) -> None:
    write_json(tmp_path / "w.json", {"schema": 1, "name": "字", "weights": [0.1, -2.0]})
    text = (tmp_path / "w.json").read_text(encoding="utf-8")
    assert text == '{\n "schema": 1,\n "name": "字",\n "weights": [\n  0.1,\n  -2.0\n ]\n}\n'


def test_json_may_be_compressed_and_holds_names_that_are_no_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    write_json(tmp_path / "w.json.gz", [name])
    assert json.loads(gzip.decompress((tmp_path / "w.json.gz").read_bytes())) == [name]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_never_holds_what_is_no_number(old: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(old, {"score": value})
    assert unchanged(old)


# Checks before any work


def refused(outputs: list[str], inputs: list[str]) -> str:
    with pytest.raises(UsageError) as fault:
        check_outputs(outputs, inputs)
    return str(fault.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an input `in`, a link and a hard link to it, and a folder `sub`."""
    monkeypatch.chdir(tmp_path)
    Path("in").write_text("a\n")
    Path("link").symlink_to("in")
    Path("hard").hardlink_to("in")
    Path("sub").mkdir()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("written", "read", "message"),
    [
        (["sub"], ["in"], "output sub is a folder; name a file in it"),
        (["in"], ["in"], "output in is also the input in; name another file"),
        (["sub/../in"], ["in"], "output sub/../in is also the input in; name another file"),
        (["link"], ["in"], "output link is also the input in; name another file"),
        (["in"], ["link"], "output in is also the input link; name another file"),
        (["hard"], ["in"], "output hard is also the input in; name another file"),
        (["no/out"], [], "output no/out: no folder no; make it with: mkdir -p no"),
        (["in/out"], [], "output in/out: in is not a folder; name another"),
        (["out", "./out"], [], "outputs out and ./out are the same file; name two"),
        (["in", "hard"], [], "outputs in and hard are the same file; name two"),
        (
            ["-", "/dev/stdout"],
            [],
            "only one output can be - (standard output); name files for others",
        ),
        (
            ["out"],
            ["-", "-"],
            "only one input can be - (standard input); name files for the others",
        ),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_any_work(
    written: list[str], read: list[str], message: str
) -> None:
    assert refused(written, read) == message


@pytest.mark.usefixtures("folder")
def test_a_link_to_itself_is_refused() -> None:
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    assert refused(["a"], []) == "output a is a symbolic link to itself"
    with pytest.raises(UsageError, match="link to itself"):
        write("a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.usefixtures("folder")
def test_a_folder_without_the_right_to_write_is_refused() -> None:
    Path("sub").chmod(0o555)
    assert refused(["sub/out"], []) == "output sub/out: the folder sub cannot be written"


@pytest.mark.usefixtures("folder")
def test_a_folder_of_a_read_only_file_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert refused(["out"], []) == "output out: the folder . cannot be written"
    assert refused(["/dev/null"], []) == "output /dev/null cannot be written: permission denied"


@pytest.mark.usefixtures("folder")
def test_outputs_that_can_be_pass() -> None:
    check_outputs(["out", "sub/out", "-", "/dev/null", "/dev/null"], ["in", "link", "-"])
    check_outputs([Path("in")], [])
    check_outputs([], [])


def test_files_in_place_of_outputs_keep_nothing(tmp_path: Path) -> None:
    with nowhere(2) as files:
        assert [file.write(b"text") for file in files] == [4, 4]
    assert all(file.closed for file in files)
    assert not list(tmp_path.iterdir())
