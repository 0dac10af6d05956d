"""Signals sent to this very process."""

import os
import signal
import threading

import pytest

from rerank.files.interrupts import Interrupts

ASKING = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in ASKING]


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
def test_the_first_signal_asks_and_interrupts_nothing(number: signal.Signals) -> None:
    with Interrupts() as interrupts:
        assert not interrupts.asked
        send(number)
        assert interrupts.asked


def test_a_second_sigint_is_immediate() -> None:
    def twice() -> None:
        with Interrupts():
            send(signal.SIGINT)
            send(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        twice()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1], ids=lambda n: n.name)
def test_other_signals_may_come_again(number: signal.Signals) -> None:
    """A scheduler repeats SIGTERM before it kills; saving must not be cut short by that."""
    with Interrupts() as interrupts:
        send(signal.SIGINT)
        send(number)
        send(number)
        assert interrupts.asked


def test_handlers_are_put_back_at_the_end() -> None:
    before = handlers()
    with Interrupts():
        assert handlers() != before
    assert handlers() == before


def test_handlers_are_put_back_after_a_fault() -> None:
    before = handlers()
    with pytest.raises(ZeroDivisionError), Interrupts():
        raise ZeroDivisionError
    assert handlers() == before


def test_a_thread_leaves_the_handlers_alone() -> None:
    """Python delivers signals to the main thread only."""
    before, seen = handlers(), []

    def work() -> None:
        with Interrupts() as interrupts:
            seen.append((handlers() == before, interrupts.asked))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, False)]
    assert handlers() == before
