"""The terminal of a run: text for people, signals to stop, and which of its processes prints.

Nothing else in `rerank` prints. Labels, ids, keys and texts come from strangers: what a terminal
would obey in them, and bidirectional controls, are printed as escapes. A stopped run ends at the
next point where its state can be saved; a signal that is ignored when the program starts (`nohup`,
a job in the background of a script) stays ignored.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from textwrap import wrap
from time import monotonic, perf_counter
from types import FrameType
from typing import Any, NoReturn, TextIO, TypeVar

from rerank.errors import printable

# C0 and C1 without TAB and LF, separators of lines, bidirectional controls, surrogates
_OBEYED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)
_COLOURS = {  # of what is marked by characters, too: SGR codes by pattern
    # of marked changes, also on several lines, what is left out: red
    re.compile(r"\[-(?:.|\n +)+?-\]"): "31",
    re.compile(r"\{\+(?:.|\n +)+?\+\}"): "1;34",  # and what is new: bright blue
    re.compile("^warning:", re.MULTILINE): "33",
    re.compile("^rerank:", re.MULTILINE): "1;31",
    # heading of a table, of up to three lines
    re.compile(r"^(?:(?:(?<=\n\n)|\A)(?:.+\n){1,2}?)?.+$(?=\n--[- ]*$)", re.MULTILINE): "1",
}
_NAME = re.compile(r" *\S+ {2,}(?=\S)")  # of what stands behind it, in a list
T = TypeVar("T")
_LOG_SECONDS = 60  # between two lines about the progress of work
_LONGEST = 4000  # characters of a line of a message
_PROGRESS: ContextVar[bool] = ContextVar("progress", default=True)
Handler = Callable[[int, FrameType | None], Any] | int | None
# of schedulers and service managers, and of a terminal that is closed
STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


def harmless(text: str) -> str:
    """Text with the characters that a terminal obeys as Python's escapes.

    White space stays, and so do invisible characters such as the joiners of Persian.
    """
    return _OBEYED.sub(lambda character: printable(character[0]), text)


def say(lines: str) -> None:
    """Print lines on standard error, of each at most 4,000 characters, as `printable` makes them.

    What cannot be written, since the terminal has gone or the disk of a log is full, is lost.
    """
    import click

    shown = (
        printable(line[:_LONGEST]) + "…" * (len(line) > _LONGEST) for line in lines.split("\n")
    )
    try:
        click.echo(_coloured("\n".join(shown), sys.stderr), err=True)
    except OSError:
        _silence()


def show(result: str, *, for_people: bool = False) -> None:
    """Print a result on standard output; on a terminal as `harmless` makes it.

    for_people: whether it has colours there, and lines that fit. OSError if it cannot be written.
    """
    import click

    stream = results()
    on_terminal = stream is not None and stream.isatty()
    text = harmless(result) if on_terminal else result
    # `color`: click would remove some escape sequences
    if for_people:
        text = _coloured(_wrapped(text, width()), stream)
    click.echo(text, stream, color=True)


def _wrapped(text: str, most: int | None) -> str:
    """A text whose long lines go on below the words behind their names, as in a list."""
    lines = text.split("\n")
    for n, line in enumerate(lines):
        if most is not None and len(line) > most:
            begin = _NAME.match(line)
            named = line[: begin.end()] if begin and begin.end() <= most / 2 else ""
            indent = " " * (len(named) or 2)
            parts = wrap(
                line.removeprefix(named),
                max(1, most - len(indent)),
                break_long_words=False,
                break_on_hyphens=False,
                replace_whitespace=False,
            )
            lines[n] = named + f"\n{indent}".join(parts)
    return "\n".join(lines)


def _coloured(text: str, stream: TextIO | None) -> str:
    """A text with colours, for a terminal that has them, unless NO_COLOR is set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or stream is None or not stream.isatty():
        return text
    for pattern, code in _COLOURS.items():
        text = pattern.sub(f"\x1b[{code}m\\g<0>\x1b[0m", text)
    return text


def width() -> int | None:
    """Characters in a line of the terminal that shows the results; None if it is none."""
    stream = results()
    on_terminal = stream is not None and stream.isatty()
    return shutil.get_terminal_size().columns if on_terminal else None


_results: TextIO | None = None  # standard output, once that of others is standard error
_in_command = False


def results() -> TextIO | None:
    """Standard output for the results of the program, also after `reserve_results`."""
    return sys.stdout if _results is None else _results


@contextmanager
def command_running() -> Iterator[None]:
    """A block, the whole work of a process, in which `reserve_results` has an effect."""
    global _results, _in_command
    _results, _in_command = None, True
    try:
        yield
    finally:
        _in_command = False


def reserve_results() -> None:
    """Have all else that prints on standard output, such as other packages, use standard error.

    So does descriptor 1, which libraries and child processes write to. No effect where other Python
    code calls this program's functions.
    """
    global _results
    if not _in_command or _results is not None or sys.stdout is None:
        return
    sys.stdout.flush()
    stream, others = sys.stdout, sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    with suppress(OSError, ValueError):  # a stream without a descriptor
        if stream.fileno() == 1:
            encoding, errors = stream.encoding, stream.errors
            stream = open(os.dup(1), "w", encoding=encoding, errors=errors)  # noqa: SIM115
            os.dup2(others.fileno(), 1)
    _results, sys.stdout = stream, others


@contextmanager
def progress_shown(shown: bool) -> Iterator[None]:
    """Show the progress of long work in a block, or do not."""
    token = _PROGRESS.set(shown)
    try:
        yield
    finally:
        _PROGRESS.reset(token)


def shows_progress() -> bool:
    """Whether the progress of long work is to be shown here."""
    return _PROGRESS.get()


def progress(
    items: Iterable[T],
    *,
    label: str,
    unit: str,
    total: int,
    left: Callable[[], float | None] = lambda: None,
    size: Callable[[T], int] = lambda item: 1,
) -> Iterator[T]:
    """Yield the items, while standard error shows how many of them are done.

    `progress(documents, label="scoring", unit="documents", total=100)`; in a log, a line a minute.
    left: seconds to a time limit, None without one; size: units of an item.
    """
    if sys.stderr is None or process_number() > 0 or not shows_progress():
        # standard error is closed by the caller, the first process shows it, or nobody is to
        yield from items
    elif sys.stderr.isatty():
        from tqdm import tqdm

        most = total if left() is None else None
        with tqdm(desc=label, unit=f" {unit}", total=most, leave=False, dynamic_ncols=True) as bar:
            for item in items:
                yield item
                bar.update(size(item))
                if (seconds := left()) is not None:
                    bar.set_postfix_str(f"{duration(seconds)} left", refresh=False)
    else:
        yield from _logged(items, label, unit, total, left, size)


def _logged(
    items: Iterable[T],
    label: str,
    unit: str,
    total: int,
    left: Callable[[], float | None],
    size: Callable[[T], int],
) -> Iterator[T]:
    """Yield the items; a line on standard error after each that completes a minute."""
    start = last = monotonic()
    done = 0
    for item in items:
        yield item
        done += size(item)
        now = monotonic()
        if now - last >= _LOG_SECONDS:
            last = now
            rate = done / (now - start)
            speed = f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.2g}/s"
            seconds, limit, of = (total - done) / rate, left(), f"/{total:,}"
            if limit is not None and limit < seconds:
                seconds, of = limit, ""
            say(f"{label}: {done:,}{of} {unit}, {speed}, {duration(seconds)} left")


def duration(seconds: float) -> str:
    """A length of time for people: `45 s`, `3 min`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def flush_messages() -> None:
    """Leave nothing to be written at exit, where Python turns a failure into exit code 120."""
    if sys.stderr is not None:
        try:
            sys.stderr.flush()
        except OSError:
            _silence()


def _silence() -> None:
    """Send what standard error still holds, and all that follows, nowhere."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stderr.fileno())


# Signals


class Terminated(BaseException):
    """A signal of `STOPPING`, raised as an exception so that temporary files are removed."""


def raise_terminated() -> None:
    """Have the first signal of `STOPPING` raise Terminated, and those after it be ignored.

    Schedulers repeat SIGTERM: a second exception would cut short the cleaning-up after the first.
    """

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        ignore_stopping()
        raise Terminated

    for number in STOPPING:
        _catch(number, terminate)


def ignore_stopping() -> None:
    """Ignore the signals of `STOPPING`, as a run does that is ending."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


class Interrupts:
    """Context manager in which the first SIGINT or signal of `STOPPING` only sets `asked`.

    A second SIGINT raises KeyboardInterrupt. No effect outside the main thread.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Handler] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *STOPPING):
                self._before[number] = _catch(number, self._ask)
        return self

    def __exit__(self, *fault: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True


def _catch(number: int, handler: Handler) -> Handler:
    """The handler of a signal until now; the new one is set unless the signal is ignored."""
    before = signal.getsignal(number)
    if before != signal.SIG_IGN:
        signal.signal(number, handler)
    return before


# Processes of a run


def process_number() -> int:
    """Which of all processes of `torchrun` this is, from 0 on; the first writes and prints."""
    return _stated("RANK", 0)


def number_of_processes() -> int:
    """How many processes there are on all machines."""
    return max(1, _stated("WORLD_SIZE", 1))


def local_number() -> int:
    """Which of the processes on this machine this is, from 0 on."""
    return _stated("LOCAL_RANK", 0)


def local_processes() -> int:
    """How many processes there are on this machine."""
    return max(1, _stated("LOCAL_WORLD_SIZE", 1))


def _stated(name: str, alone: int) -> int:
    """A variable of `torchrun`, as other programs set it, too; `alone` without torchrun."""
    return int(os.environ.get(name, alone)) if "TORCHELASTIC_RUN_ID" in os.environ else alone


class Stopwatch:
    """Seconds of named parts of a run since it was made, in the order of their first use."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.parts: dict[str, float] = {}

    @contextmanager
    def lap(self, part: str) -> Iterator[None]:
        """Add the time of the block to a part, except what it adds to other parts."""
        began, before = perf_counter(), sum(self.parts.values())
        try:
            yield
        finally:
            others = sum(self.parts.values()) - before
            self.add(part, perf_counter() - began - others)

    def add(self, part: str, seconds: float) -> None:
        """Add seconds to a part."""
        self.parts[part] = self.parts.get(part, 0.0) + seconds

    def timed(self, items: Iterable[T], part: str) -> Iterator[T]:
        """Yield the items, adding the time that each takes to arrive to a part."""
        iterator = iter(items)
        while True:
            with self.lap(part):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def to_text(self) -> str:
        """`14.2 s: lists 5.5, scores 1.4, search 1.2, rest 6.1`."""
        total = perf_counter() - self.began
        rest = total - sum(self.parts.values())
        shown = [f"{part} {seconds:.1f}" for part, seconds in [*self.parts.items(), ("rest", rest)]]
        return f"{total:.1f} s: {', '.join(shown)}"
