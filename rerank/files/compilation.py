"""Numba's compiler, which keeps what it has compiled; long compilation is announced.

Functions are compiled when they are first called, once for a version of this program: numba keeps
them beside their modules, or where that folder is not writable in the user's cache folder
(NUMBA_CACHE_DIR names another). Modules take `njit` from here, so that whoever waits is told why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

import numba
from numba.core import event

from rerank.files.terminal import say, shows_progress

F = TypeVar("F", bound=Callable[..., Any])
PATIENCE = 2.0  # seconds


class _Watch(event.Listener):
    """The time that compilation takes, with that of the functions that a function calls."""

    def __init__(self) -> None:
        self._depth, self._spent, self._announced, self._begun = 0, 0.0, False, 0.0

    def on_start(self, event: event.Event) -> None:
        """Begin to count."""
        if not self._depth:
            self._begun = perf_counter()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """Add the time; one line on a terminal when it is long."""
        self._depth -= 1
        if self._depth:
            return
        self._spent += perf_counter() - self._begun
        if self._spent > PATIENCE and not self._announced:
            self._announced = True
            if shows_progress() and sys.stderr is not None and sys.stderr.isatty():
                say("compiling the program's fast parts, once for this version: this takes a while")


def njit(**options: Any) -> Callable[[F], F]:
    """Numba's `njit`, with a type."""
    decorator: Callable[[F], F] = numba.njit(**options)
    return decorator


event.register("numba:compile", _Watch())  # type: ignore[no-untyped-call]
