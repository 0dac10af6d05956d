"""Numba's compiler, which keeps what it has compiled; long compilation is announced.

Functions are compiled when they are first called, once for a version of this program: numba keeps
them beside their modules, or where that folder is not writable in the user's cache folder
(NUMBA_CACHE_DIR names another). Modules take `njit` from here, so that whoever waits is told why.

What is done here beside numba's public decorator saves 0.45 s of the first call in a process (0.22
s for 0.66 s), which `evaluate` with TER and `tune-mert` pay: 2.2 s of CPU for 2.8 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.cpu import CPUContext
from numba.core.runtime.nrt import rtsys

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


@contextmanager
def _without_blas() -> Iterator[None]:
    """Numba imports its own functions without those of matrices, which need scipy.linalg.

    No function of ours uses them; that takes 0.15 s less.
    """
    blas = "scipy.linalg.cython_blas"
    absent = blas not in sys.modules
    if absent:
        sys.modules[blas] = None  # type: ignore[assignment]  # numba does without
    try:
        yield
    finally:
        if absent:
            del sys.modules[blas]


class _Cache(FunctionCache):
    """Compiled functions, loaded without numba's own functions: only compiling needs these.

    Numba would load them first (`refresh`), which takes 0.25 s.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function compiled for a signature; None if there is none yet."""
        rtsys.initialize(target_context)  # the memory of arrays, which compiled functions call
        target_context.refresh = lambda: None
        try:
            with _without_blas():
                return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        finally:
            del target_context.refresh


def njit(**options: Any) -> Callable[[F], F]:
    """Numba's `njit`, with a `_Cache` of what it has compiled."""

    def compiled(function: F) -> F:
        dispatcher: Any = numba.njit(**options)(function)
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
        return dispatcher  # type: ignore[no-any-return]  # called as the function is

    return compiled


_load_own: Any = CPUContext.load_additional_registries


def _load_without_blas(context: CPUContext) -> None:
    """Load numba's own functions, without those of matrices."""
    CPUContext.load_additional_registries = _load_own  # type: ignore[method-assign]
    with _without_blas():
        _load_own(context)


CPUContext.load_additional_registries = _load_without_blas  # type: ignore[method-assign]
event.register("numba:compile", _Watch())  # type: ignore[no-untyped-call]
