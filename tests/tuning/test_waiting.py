"""Waiting for threads: order, exceptions, and signals that other threads receive."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

import pytest

from rerank.tuning.waiting import map_in_threads, result_of


def test_results_come_in_order_of_the_items() -> None:
    def work(n: int) -> int:
        time.sleep(0.03 / n)
        return 2 * n

    with ThreadPoolExecutor(3) as threads:
        assert map_in_threads(threads, work, [1, 2, 3, 4]) == [2, 4, 6, 8]


def test_after_an_exception_no_further_item_begins() -> None:
    begun = list[int]()

    def work(n: int) -> None:
        begun.append(n)
        time.sleep(0.05)
        raise ValueError(str(n))

    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="0"):
        map_in_threads(threads, work, range(50))
    assert len(begun) <= 2


def test_a_signal_that_another_thread_receives_ends_the_wait() -> None:
    """Which thread a process's signal goes to is the system's choice."""
    begun, given_up = Event(), Event()

    def work() -> bool:
        begun.wait(10)
        time.sleep(0.05)  # until the main thread waits
        signal.pthread_kill(get_ident(), signal.SIGINT)
        return given_up.wait(10)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as threads:
            future = threads.submit(work)
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                begun.set()
                result_of(future)
            given_up.set()
            assert future.result()
    finally:
        signal.signal(signal.SIGINT, before)
