"""Faults of the system around a run: locale, clock, pipes, full disks, signals, changing files."""

import itertools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.world import DECODE, EVALUATE, ROOT, TUNE, World

LOCALES: list[dict[str, str]] = [
    {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"},
    {"LC_ALL": "C", "PYTHONHASHSEED": "2", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
]


def test_19_neither_the_locale_nor_hashes_change_a_byte_of_the_output(world: World) -> None:
    first, second = (world.process(DECODE, env=locale) for locale in LOCALES)
    assert (first.exit, first.stdout) == (second.exit, second.stdout) == (0, first.stdout)
    assert "café" in first.out


def test_56_control_characters_in_document_ids_are_printed_as_escapes(world: World) -> None:
    world.write("dev.docs", [f"\x1b[31m{name}\x9b\u202e" for name in world.lines("dev.docs")])
    said = world.ok(TUNE, "--hold-out", 0.5).err
    assert re.search(r"held out: \\x1b\[31m(evening|town)\\x9b\\u202e", said)
    assert not re.search("[\x1b\x9b\u202e]", said)


@pytest.mark.parametrize(("form", "name"), [("latex", r"a\_b|c\&d"), ("markdown", r"a_b\|c&d")])
def test_79_what_latex_and_markdown_read_otherwise_is_escaped(
    form: str, name: str, world: World
) -> None:
    world.write("a_b|c&d", world.text("hyp.txt"))
    assert name in world.ok(f"{EVALUATE} a_b|c&d --format {form}".replace("|", r"\|")
                            .replace("&", r"\&")).out  # fmt: skip


def without_reader(world: World, command: str) -> tuple[int, bytes]:
    """Exit code and standard error of `rerank` whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        program = world.start(command, stdout=writer)
    finally:
        os.close(writer)
    message = program.communicate()[1]
    return program.returncode, message


@pytest.mark.parametrize("command", [f"{DECODE} -q", "--help"])
def test_80_a_closed_pipe_ends_the_work_silently(command: str, world: World) -> None:
    assert without_reader(world, command) == (0, b"")


def test_80_a_closed_pipe_is_reported_if_outputs_are_not_written(world: World) -> None:
    before = world.files()
    code, message = without_reader(world, f"{DECODE} --kbest-out scored.kbest -q")
    assert code == 1
    assert message == b"rerank: the reader of the output has gone; scored.kbest is not written\n"
    assert world.files() == before


def test_81_one_output_that_does_not_fit_keeps_the_old_content_of_all(world: World) -> None:
    for name in ("out.txt", "scored.kbest"):
        world.write(name, "old\n")
    before = world.files()
    result = world.process(
        f"{DECODE} --out out.txt --kbest-out scored.kbest --summary summary.json -q",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),
    )
    assert (result.exit, result.err) == (1, "rerank: writing summary.json failed: file too large\n")
    assert world.files() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_81_a_report_that_does_not_fit_on_the_disk_is_an_error(world: World) -> None:
    with open("/dev/full", "wb") as full:
        result = world.process(EVALUATE, stdout=full)
    assert (result.exit, result.err) == (1, "rerank: no space left on device\n")


def test_84_a_signal_leaves_neither_outputs_nor_temporary_files(world: World) -> None:
    """Other signals: `tests/runs/test_resume.py`."""
    world.write("out.txt", "old\n")
    os.mkfifo("pipe")  # its opening waits for a reader, who never comes
    before = set(os.listdir())
    program = world.start(
        f"{DECODE} --out out.txt --kbest-out pipe -q",
        # whoever started the tests may have had them ignore signals: nohup, shells in background
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while set(os.listdir()) == before:  # until the temporary file is there
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(signal.SIGINT)
    found = program.communicate(timeout=60)[1].decode()
    assert (program.returncode, found.lstrip()) == (130, "rerank: interrupted; nothing was saved\n")
    assert set(os.listdir()) == before
    assert world.text("out.txt") == "old\n"


CHANGING = {  # command: an input that it reads
    DECODE.replace("-out -", "-out out"): "w.ini",
    "score --kbest dev.kbest --docs dev.docs --scores qe=dev.qe --out out": "dev.docs",
    TUNE: "dev.ref",
    "tune-moses --features features.dat --scores scores.dat --out out.json": "scores.dat",
    EVALUATE: "base.txt",
    "train-lm --model rnnlm --embed 4 --hidden 4 --epochs 1 --train dev.ref --valid hyp.txt --out o"
    " --device cpu": "hyp.txt",
}


@pytest.mark.parametrize("command", CHANGING, ids=lambda words: words.split()[0])
def test_90_an_input_that_changes_during_the_run_ends_it_without_an_output(
    command: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells a later time of its change from some call of `stat` on, the latest that is
    noticed; the file has been read by then."""
    name, stat, calls, first = CHANGING[command], os.stat, 0, 10**9

    class Later:
        """Facts of a file, a nanosecond later."""

        def __init__(self, facts: os.stat_result) -> None:
            self.facts = facts

        def __getattr__(self, field: str) -> Any:
            return getattr(self.facts, field) + (field == "st_mtime_ns")

    def counted(path: Any, *given: Any, **options: Any) -> Any:
        nonlocal calls
        facts = stat(path, *given, **options)
        calls += str(path) == name
        return Later(facts) if str(path) == name and calls >= first else facts

    monkeypatch.setattr(os, "stat", counted)
    before = world.files()
    found = world.ok(command, "-q")
    for call in range(calls, 1, -1):
        for path in world.folder.iterdir():
            if path.name not in before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        calls, first = 0, call
        if (found := world.run(command, "-q")).exit:
            break
    assert found.exit == 1
    assert world.files() == before
    assert found.err.startswith(f"rerank: {name} has changed while it was read; run ")
    assert (found.out, found.err.count("\n")) == ("", 1)


def test_96_the_clock_changes_no_byte_of_the_output(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that goes backwards, and one that reproducible builds set."""
    result = list[list[bytes]]()
    for backwards in (False, True):
        if backwards:
            hours = itertools.count(-1, -1)
            monkeypatch.setattr(time, "time", lambda hours=hours: 3600.0 * next(hours))
            monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
        world.ok(f"{DECODE} -q --kbest-out out.gz --out out")
        world.ok(f"{TUNE} -q")
        result.append([world.content(name) for name in ("out", "out.gz", "tuned.json")])
    assert result[0] == result[1]


def test_windows_is_refused_in_a_line() -> None:
    code = "import sys; sys.platform = 'win32'; import rerank"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    line = "rerank runs on Linux and macOS; on Windows run it in WSL\n"
    assert (done.returncode, done.stderr) == (1, line)
