"""Signals that ask a run to stop at the next point where its state can be saved.

A signal that whoever started the program has it ignore (`nohup`, a job in the background of a
script) stays ignored.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

Handler = Callable[[int, FrameType | None], Any] | int | None

# of schedulers and service managers, and of a terminal that is closed
STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)


class Terminated(BaseException):
    """A signal of `STOPPING`, raised as an exception so that temporary files are removed."""


def raise_terminated() -> None:
    """Have the first signal of `STOPPING` raise Terminated, and those after it be ignored.

    A terminal and its shell both send SIGHUP, and schedulers repeat SIGTERM: a second exception
    would cut the cleaning-up after the first one short.
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

    A second SIGINT raises KeyboardInterrupt. Outside the main thread, where Python delivers no
    signals, it has no effect.
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
