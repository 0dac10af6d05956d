"""Wall time of commands by number of threads, on an idle machine and beside busy programs.

    python recipes/bench/threads.py [--command decode …] [--repeats 3]

Each command runs with the default number of threads, with one and with two (`OMP_NUM_THREADS`),
alone and then beside a busy loop for each core. Prints seconds of wall and CPU, least of the
repeats, and how many times the best of the three the default takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import click
from tabulate import tabulate

TRAIN = (
    "train-lm --train DATA/lm.train.txt.gz --valid DATA/lm.valid.txt.gz --model codclm --out OUT"
)
LISTS = "--lm codclm=DEMO/codclm --no-cache --out"
COMMANDS = {  # DEMO: a folder that `rerank demo --out` has left, DATA: its data; OUT: a new path
    "demo": "demo --out OUT",
    "train-lm, 64 hidden": f"{TRAIN} --embed 48 --hidden 64 --epochs 2",
    "train-lm, 256 hidden": f"{TRAIN} --embed 128 --hidden 256 --epochs 1",
    "decode": "decode --kbest DATA/test.nbest.gz --docs DATA/test.docids.gz "
    f"--weights DEMO/weights.codclm.json {LISTS} OUT",
    "tune-mert": "tune-mert --kbest DATA/tune.nbest.gz --docs DATA/tune.docids.gz "
    f"--ref DATA/tune.ref.gz --start DATA/weights.ini --features codclm {LISTS} OUT.json",
}
THREADS = {"default": {}, "1": {"OMP_NUM_THREADS": "1"}, "2": {"OMP_NUM_THREADS": "2"}}


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many programs that compute without end."""
    command = [sys.executable, "-c", "while True: pass"]
    programs = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def seconds(words: list[str], variables: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of `rerank`."""
    environment = {name: v for name, v in os.environ.items() if name != "OMP_NUM_THREADS"}
    began, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "rerank", *words, "-q"],
        env=environment | variables,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


def _filled(command: str, paths: dict[str, Path]) -> list[str]:
    """Words of a command, with paths for the names that stand for them."""
    for name, path in paths.items():
        command = command.replace(name, str(path))
    return command.split()


@click.command()
@click.option("--command", "names", multiple=True, type=click.Choice(list(COMMANDS)))
@click.option("--repeats", default=1, show_default=True)
def main(names: tuple[str, ...], repeats: int) -> None:
    """Print a table of commands, idle and busy."""
    cores, rows = os.cpu_count() or 1, []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "demo"
        seconds(["demo", "--out", str(folder)], {})  # files, and compiled code in numba's cache
        for name in names or COMMANDS:
            for loops in (0, cores):
                found = dict.fromkeys(THREADS, (float("inf"), 0.0))
                for n in range(repeats):
                    for threads, variables in THREADS.items():
                        out = Path(scratch) / f"out.{len(rows)}.{n}.{threads}"
                        paths = {"DATA": folder / "data", "DEMO": folder, "OUT": out}
                        with busy(loops):
                            one = seconds(_filled(COMMANDS[name], paths), variables)
                        found[threads] = min(found[threads], one)
                best = min(wall for wall, _ in found.values())
                cells = [f"{wall:.1f} ({cpu:.1f})" for wall, cpu in found.values()]
                rows.append([name, loops, *cells, f"{found['default'][0] / best:.2f}"])
    headings = ["command", "busy loops", *(f"{n}: wall (CPU) s" for n in THREADS), "default ÷ best"]
    print(f"{cores} cores\n\n{tabulate(rows, headings, tablefmt='github', disable_numparse=True)}")


if __name__ == "__main__":
    main()
