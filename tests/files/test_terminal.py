"""What reaches a terminal: the truth about characters is Unicode's, in `unicodedata`."""

import fcntl
import io
import os
import pty
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.errors import InputError
from rerank.files.outputs import atomic
from rerank.files.terminal import TerminalFile, harmless, printable, say, show
from rerank.notices import PythonWarnings, RerankWarning

ROOT = Path(__file__).parents[2]
# Bidi_Control of Unicode's PropList.txt, and the deprecated formats that follow them
BIDI = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070)}
any_text = st.text(st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x07\r\n\t\u202e\u2066é字")))
chunks = st.lists(st.integers(0, 200), max_size=5)


def obeyed(c: str) -> bool:
    """Whether a terminal does something else than to show a character where it stands."""
    return unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or ord(c) in BIDI


def test_every_character_that_a_terminal_obeys_is_escaped_and_no_other() -> None:
    characters = [chr(c) for c in range(sys.maxunicode + 1)]
    expected = [repr(c)[1:-1] if obeyed(c) and c not in "\t\n" else c for c in characters]
    assert harmless("".join(characters)) == "".join(expected)


@given(text=any_text)
def test_a_message_is_one_line_that_shows_all_of_its_characters(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert shown == text or not text.isprintable()
    if "\\" not in text:
        assert shown.encode("latin-1", "backslashreplace").decode("unicode-escape") == text


@given(text=any_text, cuts=chunks)
def test_a_file_into_a_terminal_is_harmless_however_the_bytes_are_cut(
    text: str, cuts: list[int]
) -> None:
    data = text.encode("utf-8", "surrogatepass")
    terminal = io.BytesIO()
    file = TerminalFile(cast(BinaryIO, terminal))
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for begin, end in pairwise(places):
        assert file.write(data[begin:end]) == end - begin
    assert terminal.getvalue() == harmless(data.decode("utf-8", "backslashreplace")).encode()


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
        try:
            return os.read(self.master, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


FOREIGN = "a\u202eb\x1b[31m \x9b字\t\u3000\n"
HARMLESS = "a\\u202eb\\x1b[31m \\x9b字\t\u3000\n"


def test_an_output_into_a_terminal_is_harmless_and_one_into_a_file_is_unchanged(
    terminal: Terminal, tmp_path: Path
) -> None:
    for path in (terminal.path, tmp_path / "out"):
        with atomic(path) as file:
            file.write(FOREIGN.encode())
    assert terminal.read() == HARMLESS
    assert (tmp_path / "out").read_text(encoding="utf-8") == FOREIGN


def test_a_result_is_harmless_on_a_terminal_and_unchanged_in_a_pipe(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.StringIO()
    with open(terminal.path, "w", encoding="utf-8") as screen:
        for stream in (screen, piped):
            monkeypatch.setattr(sys, "stdout", stream)
            show(FOREIGN.removesuffix("\n"))
    assert (terminal.read(), piped.getvalue()) == (HARMLESS, FOREIGN)


def test_messages_are_printable_lines_on_a_terminal_and_in_a_log(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    with open(terminal.path, "w", encoding="utf-8") as screen:
        for stream in (screen, log):
            monkeypatch.setattr(sys, "stderr", stream)
            say("one\x1b[31m\ntwo\u202e")
    assert terminal.read() == log.getvalue() == "one\\x1b[31m\ntwo\\u202e\n"


def test_a_long_message_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    say("x" * 4000 + "\n" + "\x1b" * 4001)
    assert capsys.readouterr().err == "x" * 4000 + "\n" + "\\x1b" * 4000 + "…\n"


@pytest.mark.parametrize("lost", ["terminal", "log"])
def test_messages_that_cannot_be_written_do_not_decide_how_a_run_ends(lost: str) -> None:
    """A terminal that has gone is an error of input and output, a full disk one of space."""
    program = (
        "import sys; from rerank.files.terminal import flush_messages, say\n"
        "from contextlib import suppress\n"
        "with suppress(OSError): print('a bar', file=sys.stderr)\n"
        "say('more'); say('again'); flush_messages(); sys.exit(75)"
    )
    if lost == "terminal":
        master, slave = pty.openpty()
        os.close(master)
    else:
        slave = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run([sys.executable, "-c", program], stderr=slave, cwd=ROOT, check=False)
    os.close(slave)
    assert done.returncode == 75


# Where messages are made


def test_errors_and_warnings_in_python_are_printable() -> None:
    with pytest.raises(InputError) as fault:
        raise InputError("found \x1b[31m", source="dev\n", line=1)
    assert str(fault.value) == "dev\\n:1: found \\x1b[31m"
    with pytest.warns(RerankWarning, match=r"^dev: odd \\x9b$"):
        PythonWarnings().add("odd \x9b", source="dev")
