"""Waiting for threads without a delay of signals.

Python handles signals in the main thread, between two instructions. A signal that comes as the main
thread begins to wait for another, or that the system delivers to another, does not end that wait.
So no wait here is longer than a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_LONGEST = 0.1


def result_of(future: Future[R]) -> R:
    """The future's result, or its exception; or that of a signal's handler, a moment after it."""
    while not wait([future], _LONGEST).done:
        pass
    return future.result()


def map_in_threads(threads: Executor, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results of work(item), in order of the items.

    After an exception, or one of a signal's handler, no further item begins.
    """
    futures = [threads.submit(work, item) for item in items]
    try:
        return [result_of(future) for future in futures]
    finally:
        for future in futures:
            future.cancel()
