"""Signals that ask a run to stop at the next point where its state can be saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None


class Terminated(BaseException):
    """SIGTERM or SIGUSR1, raised as an exception so that temporary files are removed."""


class Interrupts:
    """Context manager in which the first SIGINT, SIGTERM or SIGUSR1 only sets `asked`.

    A second SIGINT raises KeyboardInterrupt. Outside the main thread, where Python delivers no
    signals, it has no effect.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Handler] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *fault: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
