"""`rerank` in forks of one process, so that torch is waited for once: `python tests/forks.py`.

A line of standard input is a program: its arguments, folder, environment and the files that are
its standard streams. Standard output tells [process, null] when it begins and [process, exit
code] when it has ended. `signal_at` is [number, n]: the signal comes before the n-th time that
the program syncs or renames a file. `together` stands for the numbers in
`rerank.pipeline.sources.TOGETHER`. `in_place` is a file of Python whose function `write_in_place`
is called first.
"""

import itertools
import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

import rerank.scorers.language_model  # noqa: F401  torch
from lm.trie import Candidates, build
from rerank.cli import main
from rerank.pipeline import sources

SECONDS = 60  # after which a program that hangs is ended


def program(run: dict[str, Any]) -> NoReturn:
    """Becomes `python -m rerank`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(SECONDS)
    os.chdir(run["folder"])
    os.environ.update(run["environment"])
    for number, path in enumerate(run["streams"]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)  # not the buffer, which may hold lines of ours
    sys.stdout = os.fdopen(1, "w", closefd=False)
    if run["together"]:
        sources.TOGETHER = dict.fromkeys(sources.TOGETHER, run["together"])
    if run["in_place"]:
        runpy.run_path(run["in_place"])["write_in_place"]()
    if run["signal_at"]:
        fall_at(*run["signal_at"])
    sys.argv = ["rerank", *run["arguments"]]
    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))  # to tidy up all of torch takes most of a second


def fall_at(number: int, n: int) -> None:
    """Has this process send itself the signal before the n-th sync or rename."""
    calls = itertools.count(1)

    def counted(call: Callable[..., None]) -> Callable[..., None]:
        def falling(*arguments: Any) -> None:
            if next(calls) == n:
                os.kill(os.getpid(), number)
            call(*arguments)

        return falling

    os.fsync, os.replace = counted(os.fsync), counted(os.replace)


def tell(process: int, code: int | None) -> None:
    os.write(1, f"{json.dumps([process, code])}\n".encode())


def serve() -> None:
    """Starts a program for every line, and waits for it in a process of its own."""
    build(Candidates.of([[[0]]]), np.arange(1), np.zeros(1, dtype=np.int64), 1)  # loads numba
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        process = os.fork()
        if not process:
            program(json.loads(line))
        tell(process, None)
        tell(process, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
        os._exit(0)


if __name__ == "__main__":
    serve()
