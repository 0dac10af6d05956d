"""Seconds of parts, with a clock that the test moves."""

from collections.abc import Iterator

import pytest

from rerank.pipeline import stopwatch
from rerank.pipeline.stopwatch import Stopwatch


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stopwatch, "perf_counter", clock)
    return clock


def test_parts_add_up_to_the_whole(clock: Clock) -> None:
    watch = Stopwatch()
    with watch.lap("lists"):
        clock.wait(2)
    clock.wait(0.5)
    with watch.lap("search"):
        clock.wait(1)
        with watch.lap("lists"):
            clock.wait(1)
        clock.wait(2)
        watch.add("scores", 1.25)
    assert watch.to_text() == "6.5 s: lists 3.0, scores 1.2, search 1.8, rest 0.5"


def test_items_are_timed_as_they_come_and_not_while_they_are_used(clock: Clock) -> None:
    def slow() -> Iterator[int]:
        for item in (1, 2):
            clock.wait(4)
            yield item

    watch, seen = Stopwatch(), []
    for item in watch.timed(slow(), "lists"):
        clock.wait(10)
        seen.append(item)
    assert seen == [1, 2]
    assert watch.parts == {"lists": 8.0}


def test_a_part_that_fails_is_counted(clock: Clock) -> None:
    watch = Stopwatch()

    def fail() -> None:
        with watch.lap("search"):
            clock.wait(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert watch.parts == {"search": 1.0}
