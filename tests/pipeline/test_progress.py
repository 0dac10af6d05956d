"""Progress: a bar on a terminal, a line a minute in a log, and never a changed item."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rerank.pipeline.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass only when somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("rerank.pipeline.progress.monotonic", clock)
    return clock


def test_a_log_gets_one_line_a_minute_with_count_rate_and_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in progress(range(1000), label="scoring", unit="documents"):
        clock.now += 0.25
    assert capsys.readouterr().err == (
        "scoring: 240/1000 documents, 4/s, 3 min left\n"
        "scoring: 480/1000 documents, 4/s, 2 min left\n"
        "scoring: 720/1000 documents, 4/s, 1 min left\n"
        "scoring: 960/1000 documents, 4/s, 10 s left\n"
    )


def test_without_a_total_a_log_gets_count_and_rate(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines() -> Iterator[int]:
        yield from range(3)

    for _ in progress(lines(), label="reading", unit="lines"):
        clock.now += 50.0
    assert capsys.readouterr().err == "reading: 2 lines, 0.02/s\n"


def test_a_total_may_be_given_where_items_have_no_length(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in progress(iter(range(3)), label="training", unit="batches", total=120):
        clock.now += 60.0
    assert (
        capsys.readouterr().err.splitlines()[0]
        == "training: 1/120 batches, 0.017/s, 1 h 59 min left"
    )


def test_work_of_less_than_a_minute_leaves_nothing_in_a_log(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in progress(range(59), label="scoring", unit="documents"):
        clock.now += 1.0
    assert capsys.readouterr().err == ""


def test_many_items_a_second_are_counted_in_whole_numbers(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in progress(range(100_000), label="reading", unit="lines"):
        clock.now += 1 / 1024
    assert capsys.readouterr().err == "reading: 61440/100000 lines, 1,024/s, 38 s left\n"


def test_a_terminal_gets_a_bar_that_leaves_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(progress([5, 6, 7], label="scoring", unit="documents")) == [5, 6, 7]
    assert "scoring" in terminal.getvalue()
    assert "3" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()


@pytest.mark.parametrize("stderr", [Terminal, io.StringIO, lambda: None], ids=["bar", "log", "-"])
def test_the_items_pass_unchanged_and_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, stderr: type[io.StringIO]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr())
    taken = []

    def items() -> Iterator[int]:
        for item in range(3):
            taken.append(item)
            yield item

    for item in progress(items(), label="scoring", unit="documents"):
        assert taken[-1] == item


def test_a_log_needs_no_tqdm() -> None:
    program = (
        "import sys; from rerank.pipeline.progress import progress; "
        "list(progress([1], label='a', unit='b')); sys.exit('tqdm' in sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
