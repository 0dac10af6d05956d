"""`rerank` in a fork of the test's process, which has loaded torch, and signals at its n-th write.

A fork cannot train: torch's autograd refuses to run in the child of a process that used it.
"""

import faulthandler
import fcntl
import itertools
import os
import shlex
import signal
import sys
import termios
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

import pytest
from support.world import Outcome, entry_point

SECONDS = 120  # after which a fork that hangs is ended
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


@dataclass(frozen=True)
class Fork:
    """A `rerank` that runs, and the files of its standard output and error."""

    process: int
    streams: tuple[IO[bytes], IO[bytes]]

    def wait(self) -> Outcome:
        _, status = os.waitpid(self.process, 0)
        result = []
        for stream in self.streams:
            stream.seek(0)
            result.append(stream.read())
            stream.close()
        return Outcome(os.waitstatus_to_exitcode(status), *result)


def start(
    command: str, at: tuple[int, int] | None = None, terminal: int | None = None, **environment: str
) -> Fork:
    """`rerank` in the current folder.

    at: a signal, and the write before which it comes; terminal: a descriptor of one, which becomes
    the process's own and its standard output and error.
    """
    streams = TemporaryFile(), TemporaryFile()  # noqa: SIM115
    entry = entry_point()  # imported before the fork
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that pytest-xdist has
        process = os.fork()
    if process:
        return Fork(process, streams)
    try:
        if terminal is not None:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        descriptors = [stream.fileno() if terminal is None else terminal for stream in streams]
        child(shlex.split(command), entry, descriptors, at, environment)
    finally:
        os._exit(70)


def child(
    words: list[str],
    entry: Callable[[], object],
    descriptors: Sequence[int],
    at: tuple[int, int] | None,
    environment: dict[str, str],
) -> NoReturn:
    signal.alarm(SECONDS)
    os.environ.update(environment)
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
    os.closerange(3, 1024)  # among them the other end of a terminal
    faulthandler.dump_traceback_later(SECONDS - 5, file=2)
    sys.stdin = open(os.devnull)  # noqa: SIM115
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    if torch := sys.modules.get("torch"):
        # OpenMP waits for ever for threads that an earlier test had in the parent
        torch.set_num_threads(1)
    sys.argv = ["rerank", *words]
    code: Any = 0
    with stopped(*at or (0, 0)):
        try:
            entry()
        except SystemExit as end:
            code = end.code
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    save_coverage()
    os._exit(int(code or 0))


def save_coverage() -> None:
    """Write what coverage.py measured in this process into a file of its own, if it measures."""
    package: Any = sys.modules.get("coverage")
    measured = package and package.Coverage.current()
    if measured and measured.get_option("run:parallel"):
        measured.stop()
        measured.save()


@contextmanager
def stopped(number: int, n: int) -> Iterator[None]:
    """In this context the n-th sync or rename of a file is preceded by a signal to this process.

    Signals have their default handlers at first, also where `nohup` had them ignored.
    """
    calls = itertools.count(1)

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def falling(*arguments: Any) -> None:
            if next(calls) == n:
                os.kill(os.getpid(), number)
            call(*arguments)

        return falling

    before = {one: signal.getsignal(one) for one in STOPPING}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", counted(os.fsync))
        patch.setattr(os, "replace", counted(os.replace))
        for one in STOPPING:
            signal.signal(
                one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL
            )
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
