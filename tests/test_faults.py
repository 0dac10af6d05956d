"""Faults in input, options and the system: each folder of `tests/faults` is a test case.

A case runs in a folder with the files of `00-sound`, its own files copied over them, and then its
`make.py`. `command` has the arguments of `rerank`, after environment variables in shell notation;
`stdin` is standard input. `expected.exit` is the exit code. `expected.stderr` has one regular
expression per line that standard error must contain, or must not contain if it begins with `!`.
Cases with the same number are variants of one fault; number 00 is input without faults.
"""

import importlib
import itertools
import os
import re
import resource
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.cli import start

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "tests" / "faults"
SOUND = FAULTS / "00-sound"
CASES = sorted(path.name for path in FAULTS.iterdir() if path.is_dir())
OF_THE_HARNESS = {"command", "expected.exit", "expected.stderr", "make.py", "stdin", "__pycache__"}


def expected(name: str) -> tuple[int, list[str]]:
    """Exit code and patterns of a case."""
    patterns = (FAULTS / name / "expected.stderr").read_text(encoding="utf-8").splitlines()
    return int((FAULTS / name / "expected.exit").read_text()), patterns


WARNED = [
    name for name in CASES if expected(name)[0] == 0 and not expected(name)[1][0].startswith("!")
]


def command(name: str) -> tuple[dict[str, str], list[str]]:
    """Environment and arguments of a case."""
    words = shlex.split((FAULTS / name / "command").read_text(encoding="utf-8"))
    n = sum(1 for _ in itertools.takewhile(re.compile("[A-Z_]+=").match, words))
    return dict(word.split("=", 1) for word in words[:n]), words[n:]


def arguments(name: str) -> list[str]:
    return command(name)[1]


def lay_out(name: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Puts the files of a case into a folder, and the program into it."""
    for source in (SOUND, FAULTS / name):
        for path in source.iterdir():
            if path.name not in OF_THE_HARNESS:
                shutil.copy(path, folder)
    patch.chdir(folder)
    if (FAULTS / name / "make.py").exists():
        runpy.run_path(str(FAULTS / name / "make.py"))


def listing(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(name: str, *options: str) -> int:
    from rerank.cli import run

    stdin = FAULTS / name / "stdin"
    with (
        open(stdin if stdin.exists() else os.devnull) as file,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", file)
        for variable, value in command(name)[0].items():
            patch.setenv(variable, value)
        return run([*arguments(name), *options])


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_reported_with_place_and_cure_and_changes_no_file(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    lay_out(name, tmp_path, monkeypatch)
    before = listing(tmp_path)
    code = run(name)
    message = capfdbinary.readouterr().err.decode()
    assert (code, listing(tmp_path)) == (expected(name)[0], before), message
    for pattern in expected(name)[1]:
        found = re.search(pattern.removeprefix("!"), message)
        assert bool(found) != pattern.startswith("!"), f"{pattern!r} in: {message}"
    assert "Traceback" not in message
    assert message.count("\n") < 10
    assert not re.search(
        f"{re.escape(str(ROOT))}|site-packages|{re.escape(str(tmp_path))}", message
    )


@pytest.mark.parametrize("name", WARNED)
def test_strict_makes_an_error_of_every_warning(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    lay_out(name, tmp_path, monkeypatch)
    assert run(name, "--strict") == 3
    captured = capfdbinary.readouterr()
    assert b"(an error under --strict)" in captured.err
    assert captured.out == b""


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_complete(name: str) -> None:
    code, patterns = expected(name)
    assert re.match(r"\d\d-[a-z0-9-]+$", name)
    assert code in (0, 1, 2, 3)
    assert patterns
    assert all(re.compile(pattern.removeprefix("!")) for pattern in patterns)
    assert arguments(name)


def test_56_control_characters_in_document_ids_are_printed_as_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from rerank.cli import run

    lay_out("00-sound", tmp_path, monkeypatch)
    ids = [f"\x1b[31m{name}\x9b\u202e" for name in Path("dev.docs").read_text().split()]
    Path("dev.docs").write_text("".join(f"{name}\n" for name in ids), encoding="utf-8")
    tuning = "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --hold-out 0.5 --starts 2"
    assert run([*tuning.split(), "--out", "w.json"]) == 0
    message = capfdbinary.readouterr().err.decode()
    assert re.search(r"held out: \\x1b\[31m(evening|town)\\x9b\\u202e", message)
    assert not re.search("[\x1b\x9b\u202e]", message)


# Faults that need a process of their own


def test_19_the_locale_changes_no_byte_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    found = []
    for locale in (
        {"LC_ALL": "C.UTF-8"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    ):
        program = start(*arguments("00-sound"), stdout=subprocess.PIPE, env=locale)
        found.append(program.communicate()[0])
        assert program.returncode == 0
    assert found[0] == found[1]
    assert "café".encode() in found[0]


def without_reader(*arguments: str) -> tuple[int, bytes]:
    """Exit code and standard error of `rerank` whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        program = start(*arguments, stdout=writer)
    finally:
        os.close(writer)
    message = program.communicate()[1]
    return program.returncode, message


@pytest.mark.parametrize("name", ["00-sound", "00-sound-evaluate", "--help"])
def test_80_a_closed_pipe_ends_the_work_silently(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    code, message = without_reader(*([name] if name == "--help" else [*arguments(name), "-q"]))
    assert (code, message) == (0, b"")


def test_80_a_closed_pipe_is_reported_if_other_outputs_are_therefore_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    before = listing(tmp_path)
    code, message = without_reader(*arguments("00-sound"), "--kbest-out", "scored.kbest", "-q")
    assert code == 1
    assert message == b"rerank: the reader of the output has gone; scored.kbest is not written\n"
    assert listing(tmp_path) == before


def test_81_one_output_that_does_not_fit_keeps_the_old_content_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    for name in ("out.txt", "scored.kbest"):
        Path(name).write_text("old\n")
    before = listing(tmp_path)
    outputs = ["--out", "out.txt", "--kbest-out", "scored.kbest", "--summary", "summary.json"]
    program = start(
        *arguments("00-sound")[:-2],
        *outputs,
        "-q",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)),
    )
    message = program.communicate()[1]
    assert program.returncode == 1
    assert message == b"rerank: writing summary.json failed: file too large\n"
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, b"rerank: interrupted; nothing was saved\n"),
        (signal.SIGTERM, 143, b"rerank: terminated; nothing was saved\n"),
        (signal.SIGHUP, 143, b"rerank: terminated; nothing was saved\n"),
    ],
)
def test_84_a_signal_leaves_neither_outputs_nor_temporary_files(
    number: int, code: int, message: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    Path("out.txt").write_text("old\n")
    os.mkfifo("pipe")  # its opening waits for a reader, who never comes
    before = set(os.listdir())
    program = start(
        *arguments("00-sound")[:-2],
        *("--out", "out.txt", "--kbest-out", "pipe", "-q"),
        # shells start background jobs, and so perhaps this one, with SIGINT ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while set(os.listdir()) == before:  # until the temporary file is there
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(number)
    found = program.communicate(timeout=60)[1]
    assert (program.returncode, found.lstrip()) == (code, message)
    assert set(os.listdir()) == before
    assert Path("out.txt").read_text() == "old\n"


LISTS = "--kbest dev.kbest --docs dev.docs"
CHANGING = {  # command: the last reading of an input, or what comes after it; the input
    f"decode {LISTS} --weights w.ini --out out": ("decoding:_signed", "w.ini"),
    f"score {LISTS} --scores dev.scores --out out": ("scoring:write_list", "dev.docs"),
    f"tune-mert {LISTS} --ref dev.ref --out out.json": (
        "tuning:tune_source",
        "dev.ref",
    ),
    f"tune-mbr {LISTS} --ref dev.ref --weights w.ini --out out.json": (
        "mbr_tuning:choose_search",
        "dev.ref",
    ),
    "tune-moses --features features.dat --scores scores.dat --out out.json": (
        "moses_tuning:tune_pool",
        "scores.dat",
    ),
    "evaluate --docs dev.docs --ref dev.ref --baseline base.txt hyp.txt": (
        "evaluation:note_identity",
        "base.txt",
    ),
    "train-lm --model rnnlm --train dev.ref --valid hyp.txt --out out --device cpu": (
        "language_models:_about",
        "hyp.txt",
    ),
}


@pytest.mark.parametrize("words", CHANGING, ids=lambda words: words.split()[0])
def test_90_an_input_that_changes_during_the_run_ends_it_without_an_output(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    from rerank.cli import run

    lay_out("00-sound", tmp_path, monkeypatch)
    lines = Path("dev.kbest").read_bytes().count(b"\n")
    Path("dev.scores").write_text("1\n" * lines)
    (place, _, name), file = CHANGING[words][0].partition(":"), CHANGING[words][1]
    module = importlib.import_module(f"rerank.pipeline.{place}")
    function = getattr(module, name)

    def changing(*given: Any, **options: Any) -> Any:
        found = function(*given, **options)
        os.utime(file, ns=(0, 0))
        return found

    monkeypatch.setattr(module, name, changing)
    before = listing(tmp_path)
    assert run([*words.split(), "-q"]) == 1
    assert listing(tmp_path) == before
    captured = capfdbinary.readouterr()
    assert captured.err.startswith(f"rerank: {file} has changed while it was read; run ".encode())
    assert (captured.out, captured.err.count(b"\n")) == (b"", 1)


def test_96_the_clock_changes_no_byte_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that goes backwards, and one that reproducible builds set."""
    from rerank.cli import run

    lay_out("00-sound", tmp_path, monkeypatch)
    words = [*arguments("00-sound")[:-2], "-q", "--kbest-out", "out.gz", "--out", "out"]
    tuning = f"tune-mert {LISTS} --ref dev.ref --starts 1 -q --out w.json".split()
    found = list[list[bytes]]()
    for backwards in (False, True):
        if backwards:
            hours = itertools.count(-1, -1)
            monkeypatch.setattr(time, "time", lambda hours=hours: 3600.0 * next(hours))
            monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
        assert run(words) == run(tuning) == 0
        found.append([Path(name).read_bytes() for name in ("out", "out.gz", "w.json")])
    assert found[0] == found[1]


@pytest.mark.parametrize(("form", "name"), [("latex", r"a\_b|c\&d"), ("markdown", r"a_b\|c&d")])
def test_79_what_latex_and_markdown_read_otherwise_is_escaped(
    form: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    from rerank.cli import run

    lay_out("00-sound", tmp_path, monkeypatch)
    shutil.copy("hyp.txt", "a_b|c&d")
    words = "evaluate --docs dev.docs --ref dev.ref --baseline base.txt a_b|c&d -q --format"
    assert run([*words.split(), form]) == 0
    assert name in capfd.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_81_a_report_that_does_not_fit_on_the_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out("00-sound", tmp_path, monkeypatch)
    with open("/dev/full", "wb") as full:
        program = start(*arguments("00-sound-evaluate"), stdout=full)
    assert program.communicate()[1] == b"rerank: no space left on device\n"
    assert program.returncode == 1
