"""Progress: a bar on a terminal, a line a minute in a log, nothing elsewhere; and where time goes.

The clock of a run is replaced wherever it was imported: time passes when it is asked for.
"""

from __future__ import annotations

import itertools
import os
import pty
import re
import signal
import sys
import time
from collections.abc import Callable

import pytest
from support.runs import decoding, shards
from support.texts import TRAIN, with_texts
from support.world import World


def with_clock(patch: pytest.MonkeyPatch, real: Callable[[], float], step: float) -> None:
    """Have a clock advance by so many seconds whenever `rerank` asks for it."""
    times = itertools.count(1000.0, step)
    for module in [one for name, one in sys.modules.items() if name.startswith("rerank")]:
        for name, value in vars(module).copy().items():
            if value is real:
                patch.setattr(module, name, lambda: next(times))


@pytest.fixture
def training(world: World) -> str:
    """A command of 12 updates; it ran once, so that all modules are imported."""
    with_texts(world)
    command = f"{TRAIN} --model codclm --epochs 3"
    world.ok(f"{command} --out first -q")
    return command


def test_a_log_gets_a_line_a_minute_with_count_rate_and_time_left(
    training: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_clock(monkeypatch, time.monotonic, 25.0)
    found = [line for line in world.ok(training).err.splitlines() if line.startswith("training: ")]
    total = int(found[0].split("/")[1].split()[0])
    # 25 s an update: a minute is over after three
    assert found == [
        f"training: {n}/{total} updates, 0.04/s, {left(25 * (total - n))} left"
        for n in range(3, total + 1, 3)
    ]


def left(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{round(seconds / 60)} min"


def test_long_work_is_said_in_hours_and_fast_work_in_whole_numbers(
    training: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_clock(monkeypatch, time.monotonic, 1800.0)
    first = next(x for x in world.ok(training).err.splitlines() if x.startswith("training: "))
    total = int(first.split("/")[1].split()[0])
    hours, minutes = divmod(30 * (total - 1), 60)
    assert first == f"training: 1/{total} updates, 0.00056/s, {hours} h {minutes} min left"


@pytest.mark.parametrize(("option", "step"), [("-q", 100.0), ("", 1.0)])
def test_quiet_and_short_work_leaves_no_lines(
    option: str, step: float, training: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_clock(monkeypatch, time.monotonic, step)
    said = world.ok(f"{training} {option}").err
    assert option == "-q" or "training: " not in said
    assert option == "" or said == "" or said.startswith("training: ")


def test_parts_of_the_time_add_up_to_the_whole(
    drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_bar_is_drawn_on_a_terminal_and_a_closed_terminal_stops_the_run(drawn: World) -> None:
    """Messages and the bar have nowhere to go then: 75, the work so far in the cache."""
    names = "".join(chr(97 + n // 2) for n in range(400))
    drawn.draw(documents=names, gaps=())
    master, slave = pty.openpty()
    program = drawn.start(
        decoding("codclm"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={"OMP_NUM_THREADS": "1"},
    )
    os.close(slave)
    shown = b""
    while b"scor" not in shown and b"%|" not in shown and program.poll() is None:
        shown += os.read(master, 1 << 16)
    before = {*os.listdir()}
    os.close(master)
    program.send_signal(signal.SIGHUP)
    assert program.wait(60) in (75, 143)
    assert not {name for name in {*os.listdir()} - before if not name.endswith(".tmp")}
    assert b"%|" in shown or shards() is not None
