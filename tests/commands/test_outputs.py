"""Outputs of commands: the final name holds the old content or the new, whatever fails.

A system call that fails is `os.fsync` or `os.replace` in place of the disk; a full disk is
`/dev/full`. What reaches a terminal is judged by Unicode's own tables.
"""

import bz2
import errno
import fcntl
import gzip
import json
import lzma
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import termios
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.world import World

COMMAND = "convert --kbest dev.kbest --to first -q"
FIRST = b"the lamp is lit\nit gives light\nthe caf\xc3\xa9 is closed\nnobody comes\n"
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress,
}  # fmt: skip
needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")


@pytest.mark.parametrize("suffix", UNPACK)
def test_a_suffix_asks_for_compression_with_equal_bytes(suffix: str, world: World) -> None:
    """The usual tools unpack it, too."""
    world.write(f"out{suffix}", "old\n")
    world.ok(f"{COMMAND} --out out{suffix}")
    packed = world.content(f"out{suffix}")
    assert UNPACK[suffix](packed) == FIRST
    if suffix:
        tool = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2"}[suffix]
        done = subprocess.run([tool, "-dc"], input=packed, capture_output=True, check=True)
        assert done.stdout == FIRST
    time.sleep(0.01)
    world.ok(f"{COMMAND} --out again{suffix}")
    assert world.content(f"again{suffix}") == packed
    assert not [name for name in world.files() if name.endswith(".tmp")]


@pytest.mark.parametrize("umask", [0o077, 0o002])
def test_the_mode_comes_from_the_umask(umask: int, world: World) -> None:
    before = os.umask(umask)
    try:
        world.ok(f"{COMMAND} --out out")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat("out").st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("target", ["old\n", None], ids=["to-a-file", "to-nothing-yet"])
def test_a_symbolic_link_stays_and_its_target_is_written(target: str | None, world: World) -> None:
    Path("far").mkdir()
    if target:
        world.write("far/real", target)
    Path("link").symlink_to(Path("far", "real"))
    world.ok(f"{COMMAND} --out link")
    assert (Path("link").is_symlink(), world.content("far/real")) == (True, FIRST)


@pytest.mark.parametrize("name", ["n" * 255, "字" * 85])
def test_names_may_be_as_long_as_the_system_allows(name: str, world: World) -> None:
    world.ok(f"{COMMAND} --out {name}")
    assert world.content(name) == FIRST


def test_a_pipe_is_written_and_stays_a_pipe(world: World) -> None:
    os.mkfifo("pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_bytes()))
    reader.start()
    world.ok(f"{COMMAND} --out pipe")
    reader.join()
    assert (found, Path("pipe").is_fifo()) == ([FIRST], True)


def test_an_open_descriptor_is_written_in_place(world: World) -> None:
    with Path("out").open("wb") as file:
        world.ok(f"{COMMAND} --out /dev/fd/{file.fileno()}")
        assert os.fstat(file.fileno()).st_nlink == 1
    assert world.content("out") == FIRST


# What fails
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EDQUOT, r"no space left writing out[.\w]* \(it needs more than \d\.\d MB\)"),
        (errno.EACCES, r"writing out[.\w]* failed: permission denied"),
    ],
    ids=["quota", "permission"],
)
def test_a_system_call_that_fails_leaves_the_old_file_and_names_the_output(
    call: str, number: int, message: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    world.write("out.xz", "old\n")
    before = world.files()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        run = world.run(f"{COMMAND} --out out.xz")
    assert (run.exit, world.files()) == (1, before)
    assert re.fullmatch(f"rerank: {message}\n", run.err)


@needs_dev_full
@pytest.mark.parametrize("big", [False, True], ids=["small", "large"])
def test_a_full_device_is_a_failed_run(big: bool, world: World) -> None:
    if big:
        world.write("dev.kbest", [f"0 ||| {'x' * 999} ||| A= 1 ||| 0"] * 3000)
    run = world.run(COMMAND.replace("first", "moses"), "--out", "/dev/full")
    assert run.exit == 1
    assert run.err.startswith("rerank: no space left writing /dev/full ")


@needs_dev_full
def test_standard_output_on_a_full_disk_is_named_once(world: World) -> None:
    with open("/dev/full", "wb") as full:
        result = world.process(COMMAND, stdout=full)
    assert result.exit == 1
    assert result.err == "rerank: no space left writing <stdout> (it needs more than 0.0 MB)\n"


def test_only_old_temporary_files_of_this_output_are_removed(world: World) -> None:
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
        world.write(name, "")
        os.utime(name, (time.time() - age,) * 2)
    world.ok(f"{COMMAND} --out out")
    left = {name for name in world.files() if name.endswith(".tmp")}
    assert left == {*list(names)[1:]}
    os.mkdir(folder := f".out.{dead.pid}.0123abcf.tmp")
    Path(folder, "part").touch()
    os.utime(folder, (time.time() - 7200,) * 2)  # of a killed `export`
    os.unlink("out")
    world.ok("export --docs dev.docs --out out ref=dev.ref")
    assert Path("out", "ref", "0001.txt").is_file()
    assert not Path(folder).exists()


def test_signals_end_a_run_without_files_even_if_one_comes_after_another(world: World) -> None:
    """A closed terminal sends SIGHUP, and so does its shell; systemd adds SIGTERM."""
    os.mkfifo("list")
    before = sorted(os.listdir())
    environment = {"TMPDIR": str(world.folder)}
    program = world.start("convert --kbest list --to first --out out", env=environment)
    with Path("list").open("wb") as pipe:  # opened once the program reads it
        pipe.write(world.content("dev.kbest"))
        pipe.flush()
        time.sleep(0.1)
        program.send_signal(signal.SIGHUP)
        time.sleep(0.02)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate(timeout=60)
    assert program.returncode in (130, 143)
    assert b"Traceback" not in err
    assert sorted(os.listdir()) == before


def test_a_program_under_nohup_goes_on(world: World) -> None:
    os.mkfifo("list")
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    program = world.start("convert --kbest list --to first", preexec_fn=ignore)
    with Path("list").open("wb") as pipe:
        program.send_signal(signal.SIGHUP)
        pipe.write(world.content("dev.kbest"))
    assert (program.communicate(timeout=60)[0], program.returncode) == (FIRST, 0)


# Inputs that change
def replaced(path: Path) -> None:
    Path("new").write_bytes(path.read_bytes() + b"\n")
    os.replace("new", path)


def other_case(path: Path) -> None:
    """A change with the old size and time, as of a program that maps the file."""
    before = os.stat(path)
    path.write_bytes(path.read_bytes().replace(b"lamp", b"LAMP"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "packed"),
    [
        (lambda path: path.write_bytes(path.read_bytes() * 2), True),
        (replaced, False),
        (other_case, False),
    ],
    ids=["grown and packed", "replaced", "same size and time"],
)
def test_a_list_that_changes_while_it_is_read_ends_the_run_without_an_output(
    change: Callable[[Path], object], packed: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read for its ids, and again for its candidates; it changes at any look at its status.

    Before the first reading and after the last one the change is none of the run.
    """
    sound = gzip.compress(world.content("dev.kbest")) if packed else world.content("dev.kbest")
    command = "decode --kbest dev.kbest --no-docs one --weights w.ini --out out -q"
    scan, ends = os.stat, list[int]()
    for moment in range(2, 10):
        world.write("dev.kbest", sound)
        looks = 0

        def watched(path: int | str, moment: int = moment, **options: Any) -> os.stat_result:
            nonlocal looks
            looks += str(path) == "dev.kbest"
            if looks == moment and str(path) == "dev.kbest":
                looks += 1
                change(Path("dev.kbest"))
            return scan(path, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", watched)
            found = world.run(command)
        ends.append(found.exit)
        if found.exit == 1:
            assert found.err == (
                "rerank: dev.kbest has changed while it was read; run the command again when no "
                "other program writes the file, or on a copy\n"
            )
            assert not Path("out").exists()
        Path("out").unlink(missing_ok=True)
    assert 1 in ends


# Terminals
class Terminal:
    """A terminal: what is written into `path` can be read."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        attributes = termios.tcgetattr(self.slave)
        attributes[1] &= ~termios.OPOST  # or LF becomes CR LF
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        fcntl.fcntl(self.master, fcntl.F_SETFL, os.O_NONBLOCK)
        self.path = f"/dev/fd/{self.slave}"

    def read(self) -> str:
        found = b""
        while True:
            try:
                found += os.read(self.master, 1 << 16)
            except BlockingIOError:
                return found.decode()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    os.close(opened.slave)
    os.close(opened.master)


# Bidi_Control of Unicode's PropList.txt, and the deprecated formats that follow them
BIDI = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070)}


def test_every_character_that_terminals_obey_is_escaped(terminal: Terminal, world: World) -> None:
    ranges = (range(1, 0x3100), range(0xFE00, 0x10000), range(0x1F600, 0x1F640))
    characters = [chr(c) for some in ranges for c in some]
    characters = [c for c in characters if c not in "\n\r\t|{" and c != "\ufeff"]
    others = {c for c in characters if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")}
    for start in range(0, len(characters), 600):  # as much as the terminal holds
        own = characters[start : start + 600]
        world.write("list", json.dumps({"candidates": ["x" + "".join(own) + "x"]}) + "\n")
        world.ok(f"convert --kbest list --to first --out {terminal.path} -q")
        world.ok("convert --kbest list --to first --out out -q")
        shown = "".join(repr(c)[1:-1] if c in others or ord(c) in BIDI else c for c in own)
        assert terminal.read() == f"x{shown}x\n"
        assert world.text("out") == f"x{''.join(own)}x\n"


def test_results_and_messages_are_harmless_on_a_terminal(terminal: Terminal, world: World) -> None:
    foreign = "a\u202eb\x1b[31m \x9b字"
    harmless = "a\\u202eb\\x1b[31m \\x9b字"
    world.write("dev.ref", f"{foreign}\n" * 4)
    world.write(f"{foreign}.docs", "a\nb\na\nb\n")
    words = ["first", "--kbest", "dev.kbest", "--docs", f"{foreign}.docs"]
    result = world.process(words, stderr=terminal.slave, stdout=terminal.slave)
    shown = terminal.read()
    assert (result.exit, shown.count("\n")) == (3, 1)
    assert f"{harmless}.docs:3: expected each document" in shown
    assert f"{harmless}.docs:3: expected each document" in world.run(words).err  # in a log, too


def test_messages_that_cannot_be_written_do_not_decide_how_a_run_ends(world: World) -> None:
    """The terminal has gone."""
    master, slave = pty.openpty()
    os.close(master)
    result = world.process("convert --kbest dev.kbest --to first", stderr=slave)
    os.close(slave)
    assert (result.exit, result.stdout) == (0, FIRST)


def test_a_long_message_is_cut(world: World) -> None:
    run = world.run(f"first --kbest {'x' * 200}/{'y' * 200}")
    assert run.exit == 2
    world.write("list", "x" * 100_000 + "\n")
    assert len(world.run("first --kbest list").err) < 5000
