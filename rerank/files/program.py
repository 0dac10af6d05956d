"""A program of others that gives a number for each request, started once.

Its first line names it: `{"name": "kiwi", "version": "2.2.7 wmt22-cometkiwi-da"}`. A request is a
JSON object on a line of its standard input; an empty line ends a batch. It answers with a number a
line, in the order of the requests, and an empty line, flushed. All else that it has to say goes to
its standard error.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

from rerank.errors import RerankError, UsageError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.notices import log

_MOST = 1 << 16  # bytes of a line that the program prints
_GRACE = 1.0  # seconds that the program has to end by itself once its input has ended
_READ = 1 << 16
_PATIENCE = 10.0  # seconds until a run says that it waits for the first line
_CURE = "its messages belong on standard error"


class ProgramError(RerankError):
    """What a program did wrong; answers: the numbers of the batch that came before."""

    def __init__(self, message: str, answers: Sequence[float] = ()) -> None:
        super().__init__(message)
        self.answers = list(answers)


class Program:
    """A running program; UsageError if it cannot be started, ProgramError if it has no name.

    command: as for a shell, without its expansions; seconds: longest time without any answer;
    batch: most requests at once. name, version: of its first line; the version is empty if it
    states none. answered: number of answers; spent: seconds that these took, but for the first
    one, for which the program may load its model.
    """

    def __init__(self, command: str, *, seconds: float, batch: int) -> None:
        self.command, self.seconds, self.batch = command, seconds, batch
        self.spent, self.answered, self._warm = 0.0, 0, False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = _started(command, self._errors)
        except UsageError:
            self._errors.close()
            raise
        self._close = weakref.finalize(self, _end, self._process, self._errors)
        self._output = b""
        try:
            self.name, self.version = self._introduced()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the program, if need be by force, and those that it has started."""
        self._close()

    def ask(self, requests: Sequence[bytes]) -> Iterator[list[float]]:
        """The answers to requests, each a line without its end, batch by batch.

        ProgramError, which ends the program, unless each has one that is a finite number.
        """
        begin = 0
        while begin < len(requests):
            size = self.batch if self._warm else 1
            began = time.perf_counter()
            answers = self._answers(requests[begin : begin + size])
            if self._warm:
                self.spent += time.perf_counter() - began
            self._warm, begin = True, begin + size
            yield answers

    def _answers(self, batch: Sequence[bytes]) -> list[float]:
        """The answers to a batch."""
        answers: list[float] = []
        try:
            for line in self._lines(b"".join(request + b"\n" for request in batch) + b"\n"):
                text = line.strip()
                if not text:
                    break
                if not (NUMBER.fullmatch(text) and abs(float(text)) <= LARGEST):
                    raise ProgramError(
                        f"expected a number as answer {len(answers) + 1} of {len(batch)}, found "
                        f"{shown(text)}; {_CURE}"
                    )
                answers.append(float(text))
                self.answered += 1
                if len(answers) > len(batch):
                    break
            if len(answers) != len(batch) or self._output:
                more = "more" if self._output or len(answers) > len(batch) else len(answers)
                answers = []  # which are whose is not known
                raise ProgramError(
                    f"expected {len(batch)} answers to {len(batch)} requests, then an empty line, "
                    f"found {more}; print one number for each request"
                )
        except ProgramError as fault:
            self.close()
            raise ProgramError(str(fault), answers) from None
        except BaseException:
            self.close()
            raise
        return answers

    def _introduced(self) -> tuple[str, str]:
        """Name and version of the first line."""
        expected = 'expected a first line as {"name": "qe", "version": "1"}'
        if (printed := self._process.stdout) is not None and self.seconds > _PATIENCE:
            with selectors.DefaultSelector() as selector:
                selector.register(printed, selectors.EVENT_READ)
                if not selector.select(_PATIENCE):
                    log.warning("%s: waiting: %s", self.command, expected)
        try:
            line = next(self._lines())
        except ProgramError as fault:
            raise ProgramError(f"{expected}, but the program {fault}") from None
        try:
            stated = json.loads(line)
            name, version = stated["name"], stated.get("version", "")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            name = version = None
        if not (isinstance(name, str) and isinstance(version, str) and name):
            raise ProgramError(f"{expected}, found {shown(line.strip())}; {_CURE}")
        return name, version

    def _lines(self, data: bytes = b"") -> Iterator[bytes]:
        """Lines that the program prints, while it is given the data."""
        fed, printed = self._process.stdin, self._process.stdout
        if fed is None or printed is None or printed.closed:
            raise ProgramError("has ended")
        left = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(printed, selectors.EVENT_READ)
            if data:
                selector.register(fed, selectors.EVENT_WRITE)
            while True:
                line, end, rest = self._output.partition(b"\n")
                if end or len(line) > _MOST:
                    self._output = rest
                    yield line
                    continue
                events = selector.select(self.seconds)
                if not events:
                    raise ProgramError(
                        f"gave no answer for {self.seconds:g} s; let it flush what it prints, and "
                        "an empty line after each batch, or add ,timeout=SECONDS behind it"
                    )
                for key, _ in events:
                    if key.fileobj is printed:
                        read = os.read(printed.fileno(), _READ)
                        if not read:
                            raise ProgramError(self._ended())
                        self._output += read
                        continue
                    try:
                        left = left[os.write(fed.fileno(), left[:_READ]) :]
                    except BrokenPipeError:  # what it has printed before says more
                        left = left[:0]
                    except BlockingIOError:
                        continue
                    if not left:
                        selector.unregister(fed)

    def _ended(self) -> str:
        """How the program has ended, and its last words."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        code = self._process.poll()
        how = "closed its standard output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _MOST))
        said = self._errors.read().replace(b"\r", b"\n").split(b"\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), b"")
        return f"{how}; its last message: {shown(last[-60:])}" if last else how


def _started(command: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """The process of a command, in a group of its own, which Ctrl-C does not reach."""
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"{fault}: {command}; quote it as for a shell") from None
    if not words:
        raise UsageError("expected a program, found nothing")
    if os.path.isfile(words[0]):
        words[0] = os.path.abspath(words[0])
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        cure = "give a program of $PATH, or its path"
        if words[0].endswith(".py"):
            cure = f"a script has its interpreter before it: python {shlex.split(command)[0]}"
        raise UsageError(f"cannot be started: {reason.lower()}; {cure}") from None
    if process.stdin is not None:
        os.set_blocking(process.stdin.fileno(), False)
    return process


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """End a process and its group: by itself when its input ends, else by force."""
    for stream in (process.stdin, process.stdout, errors):
        with suppress(OSError, AttributeError):
            stream.close()  # type: ignore[union-attr]
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
