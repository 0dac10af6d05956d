"""Progress: a bar on a terminal, a line a minute in a log, nothing elsewhere; and where time goes.

The clock of a run is replaced wherever it was imported: time passes when it is asked for.
"""

import itertools
import os
import pty
import re
import signal
import termios
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from support.forked import start
from support.runs import decoding, recalled, replaced_everywhere
from support.texts import TRAIN, with_texts
from support.world import World


def with_clock(patch: pytest.MonkeyPatch, real: Callable[[], float], step: float) -> None:
    """Have a clock advance by so many seconds whenever `rerank` asks for it."""
    times = itertools.count(1000.0, step)
    replaced_everywhere(patch, real, lambda: next(times))


def left(seconds: int) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds} s"


@pytest.mark.parametrize(
    ("option", "step", "rate", "every"),  # a minute is over after so many updates
    [("", 20, "0.05/s", 3), ("", 1800, "0.00056/s", 1), ("", 1, "", 0), ("-q", 100, "", 0)],
    ids=["minutes", "hours", "short", "quiet"],
)
def test_a_log_gets_a_line_a_minute_with_count_rate_and_time_left(
    option: str, step: int, rate: str, every: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_texts(world)
    world.ok(f"{TRAIN} --model codclm --out first -q")  # so that all modules are imported
    with_clock(monkeypatch, time.monotonic, float(step))
    said = world.ok(f"{TRAIN} --model codclm --epochs 3 {option}").err.splitlines()
    result = [line for line in said if line.startswith("training: ")]
    total = int(result[0].split("/")[1].split()[0]) if every else 0
    assert result == [
        f"training: {n}/{total} updates, {rate}, {left(step * (total - n))} left"
        for n in range(every or 1, total + 1, every or 1)
    ]


def test_parts_of_the_time_are_the_whole(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    command = decoding("ccdclm", "")
    drawn.ok(command)
    with_clock(monkeypatch, time.perf_counter, 0.5)
    said = drawn.ok(command).err
    (line,) = [one for one in said.splitlines() if one.startswith("time ")]
    whole, parts = re.fullmatch(r"time ([\d.]+) s: (.*)", line).groups()  # type: ignore[union-attr]
    named = dict(part.rsplit(" ", 1) for part in parts.split(", "))
    assert {"lists", "scores", "search", "rest"} <= named.keys()
    assert sum(map(float, named.values())) == pytest.approx(float(whole), abs=0.06 * len(named))
    assert all(float(value) > 0 for value in named.values())


def test_a_terminal_gets_a_bar_that_leaves_no_line(drawn: World) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    program = start(decoding("codclm"), terminal=slave)
    os.close(slave)
    shown = b""
    with suppress(OSError):  # at the end of the program
        while piece := os.read(master, 1 << 16):
            shown += piece
    os.close(master)
    assert program.wait().exit == 0
    assert b"%|" in shown
    assert not any(b"%|" in line.rpartition(b"\r")[2] for line in shown.split(b"\r\n"))


def test_a_closed_terminal_stops_the_run_and_keeps_what_was_scored(drawn: World) -> None:
    """Messages and the bar have nowhere to go then."""
    before = drawn.files()
    master, slave = pty.openpty()
    program = start(decoding("codclm"), (signal.SIGSTOP, 3), slave)
    os.close(slave)
    os.waitpid(program.process, os.WUNTRACED)  # stopped where the third shard is written
    os.close(master)  # SIGHUP, and SIGCONT
    assert program.wait().exit == 75
    assert drawn.files() == before
    assert recalled(drawn.ok(decoding("codclm"))) > 0
