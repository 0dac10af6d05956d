"""A program of others that gives a number for each request, started once.

Its first line names it: `{"name": "kiwi", "version": "2.2.7 wmt22-cometkiwi-da"}`. A request is a
JSON object on a line of its standard input; an empty line ends a batch. It answers with a number a
line, in the order of the requests, and an empty line, flushed. All else that it has to say goes to
its standard error, of which the end is kept for messages.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, cast

from rerank.errors import RerankError, UsageError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.notices import log

_MOST = 1 << 16  # bytes of a line that the program prints, and of its messages that are kept
_GRACE = 1.0  # seconds that the program has to end by itself once its input has ended
_READ = 1 << 16
_QUIET = 0.05  # seconds after the first line in which no answer may come: nothing is asked yet
_PATIENCE = 10.0  # seconds until a run says that it waits for the first line
_CURE = "its messages belong on standard error"


class ProgramError(RerankError):
    """What a program did wrong."""


class Program:
    """A running program; UsageError if it cannot be started, ProgramError if it has no name.

    command: as for a shell, without its expansions; seconds: longest time without any answer;
    batch: most requests at once. name, version: of its first line; the version is empty if it
    states none. answered: number of answers; spent: seconds that these took, but for the first
    one, for which the program may load its model. close: ends the program, if need be by force, and
    those that it has started.
    """

    def __init__(self, command: str, *, seconds: float, batch: int) -> None:
        self.command, self.seconds, self.batch = command, seconds, batch
        self.spent, self.answered, self._warm = 0.0, 0, False
        self._process = process = _started(command)
        self._fed = cast("IO[bytes]", process.stdin)
        self._printed = cast("IO[bytes]", process.stdout)
        os.set_blocking(self._fed.fileno(), False)
        self._output, self._said = b"", bytearray()
        listening = process.stderr, self._said
        self._listener = threading.Thread(target=_keep_end, args=listening, daemon=True)
        self._listener.start()
        self.close = weakref.finalize(self, _end, process, self._listener)
        try:
            self.name, self.version = self._introduced()
        except BaseException:
            self.close()
            raise

    def ask(self, requests: Sequence[bytes]) -> Iterator[list[float]]:
        """The answers to requests, each a line without its end, batch by batch.

        ProgramError, which ends the program, unless each has one that is a finite number; those
        of its batch that came before are yielded.
        """
        begin = 0
        while begin < len(requests):
            size = self.batch if self._warm else 1
            began = time.perf_counter()
            answers, fault = self._answers(requests[begin : begin + size])
            if self._warm:
                self.spent += time.perf_counter() - began
            self._warm, begin = True, begin + size
            yield answers
            if fault is not None:
                raise fault

    def _answers(self, batch: Sequence[bytes]) -> tuple[list[float], ProgramError | None]:
        """The answers to a batch, and what has ended the program then."""
        answers: list[float] = []
        try:
            self._check_silence()
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
        except BaseException as fault:
            self.close()
            if isinstance(fault, ProgramError):
                return answers, fault
            raise
        return answers, None

    def _introduced(self) -> tuple[str, str]:
        """Name and version of the first line."""
        expected = 'expected a first line as {"name": "qe", "version": "1"}'
        if self.seconds > _PATIENCE and not self._prints(_PATIENCE):
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

    def _check_silence(self) -> None:
        """ProgramError for output that no request has asked for, and that would be an answer."""
        wait = 0 if self._warm else _QUIET
        if not (self._output or self._printed.closed) and self._prints(wait):
            self._output = os.read(self._printed.fileno(), _MOST)
        if self._output:
            raise ProgramError(
                f"expected no output before a request, found {shown(self._output.strip())}; {_CURE}"
            )

    def _prints(self, seconds: float) -> bool:
        """Whether the program prints something, or ends its output, within so many seconds."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._printed, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def _lines(self, data: bytes = b"") -> Iterator[bytes]:
        """Lines that the program prints, while it is given the data."""
        fed, printed = self._fed, self._printed
        if printed.closed:
            raise ProgramError("has ended")
        left, deadline = memoryview(data), time.monotonic() + self.seconds
        with selectors.DefaultSelector() as selector:
            selector.register(printed, selectors.EVENT_READ)
            if data:
                selector.register(fed, selectors.EVENT_WRITE)
            while True:
                line, end, rest = self._output.partition(b"\n")
                if end or len(line) > _MOST:
                    self._output = rest
                    yield line
                    deadline = time.monotonic() + self.seconds
                    continue
                events = selector.select(max(0, deadline - time.monotonic()))
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
        self._listener.join(_GRACE)
        said = bytes(self._said).replace(b"\r", b"\n").split(b"\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), b"")
        return f"{how}; its last message: {shown(last[-60:])}" if last else how


def _started(command: str) -> subprocess.Popen[bytes]:
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
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        cure = "give a program of $PATH, or its path"
        if words[0].endswith(".py"):
            cure = f"a script has its interpreter before it: python {shlex.split(command)[0]}"
        raise UsageError(f"cannot be started: {reason.lower()}; {cure}") from None


def _keep_end(messages: IO[bytes], end: bytearray) -> None:
    """Read messages until they end, and keep the last of them."""
    while part := messages.read(_READ):
        end += part
        del end[:-_MOST]
    messages.close()


def _end(process: subprocess.Popen[bytes], listener: threading.Thread) -> None:
    """End a process and its group: by itself when its input ends, else by force."""
    for stream in (process.stdin, process.stdout):
        with suppress(OSError, AttributeError):
            stream.close()  # type: ignore[union-attr]
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    listener.join(_GRACE)
