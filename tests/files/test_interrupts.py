"""Signals sent to this very process, and to programs that catch them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rerank.files.interrupts import STOPPING, Interrupts

ROOT = Path(__file__).parents[2]
ASKING = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP]


@pytest.fixture(autouse=True)
def sigint_is_not_ignored() -> Iterator[None]:
    """Shells start background jobs, and so perhaps this one, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


@pytest.mark.parametrize("number", STOPPING, ids=lambda n: n.name)
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


@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    """`nohup` has the program ignore SIGHUP; scripts have jobs in the background ignore SIGINT."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            send(number)
        assert not interrupts.asked
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


PROGRAM = """
import signal, sys
from rerank.files.interrupts import Terminated, raise_terminated
raise_terminated()
try:
    signal.raise_signal(int(sys.argv[1]))
    print("went on")
except Terminated:
    for number in sys.argv[1:]:
        signal.raise_signal(int(number))
    print("cleaned up")
"""


def said(*numbers: int, ignored: int | None = None) -> str:
    """What a program says that sends itself the first signal, and all of them as it cleans up."""
    program = [sys.executable, "-c", PROGRAM, *(str(int(number)) for number in numbers)]
    done = subprocess.run(
        program,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        check=False,
        preexec_fn=lambda: ignored and signal.signal(ignored, signal.SIG_IGN),
    )
    return done.stdout.strip()


def test_signals_after_the_first_do_not_cut_the_cleaning_up_short() -> None:
    """A closed terminal sends SIGHUP, and so does its shell; systemd adds SIGTERM."""
    assert said(signal.SIGHUP, signal.SIGTERM) == "cleaned up"
    assert said(signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1) == "cleaned up"


def test_a_program_under_nohup_goes_on() -> None:
    assert said(signal.SIGHUP, ignored=signal.SIGHUP) == "went on"
