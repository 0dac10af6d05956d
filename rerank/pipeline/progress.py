"""Progress of long work on standard error: a bar on a terminal, a line a minute in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

from rerank.files.terminal import say, shows_progress
from rerank.torchrun import process_number

T = TypeVar("T")

_LOG_SECONDS = 60


def progress(items: Iterable[T], *, label: str, unit: str, total: int) -> Iterator[T]:
    """Yield the items, while standard error shows how many of them are done.

    `label` says what is being done, `unit` to what: `progress(documents, label="scoring",
    unit="documents", total=100)`. A bar leaves no trace; in a log, work of less than a minute
    leaves none either.
    """
    if sys.stderr is None or process_number() > 0 or not shows_progress():
        # standard error is closed by the caller, the first process shows it, or nobody is to
        yield from items
    elif sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(
            items, desc=label, unit=f" {unit}", total=total, leave=False, dynamic_ncols=True
        )
    else:
        yield from _logged(items, label, unit, total)


def _logged(items: Iterable[T], label: str, unit: str, total: int) -> Iterator[T]:
    """Yield the items; a line on standard error after each that completes a minute."""
    start = last = monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = monotonic()
        if now - last >= _LOG_SECONDS:
            last = now
            say(f"{label}: {_state(done, total, unit, now - start)}")


def _state(done: int, total: int, unit: str, seconds: float) -> str:
    """`1200/5000 documents, 20/s, 3 min left`: count, rate and time to come."""
    rate = done / seconds
    speed = f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.2g}/s"
    return f"{done}/{total} {unit}, {speed}, {duration((total - done) / rate)} left"


def duration(seconds: float) -> str:
    """A length of time for people: `45 s`, `3 min`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
