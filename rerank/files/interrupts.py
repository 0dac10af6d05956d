"""SIGINT and SIGTERM as a wish to stop at the next safe place."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None


class Terminated(BaseException):
    """SIGTERM or SIGUSR1, raised where the program is, so that it can tidy up on the way out."""


class Interrupts:
    """While entered, the first SIGINT, SIGTERM or SIGUSR1 sets `asked`.

    A second SIGINT is immediate.
    Outside the main thread, where Python delivers no signals, nothing is changed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Handler] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
