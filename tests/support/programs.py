"""`rerank` in forks of a process that has loaded torch (`forks.py`), which start at once."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Program:
    """A `rerank` that runs; its standard streams."""

    process: int
    streams: tuple[str, str, str]


@dataclass(frozen=True)
class Done:
    """How a program ended, and what it said on standard error."""

    code: int
    told: str


class Forks:
    """`support/forks.py` at work in an environment; a context manager."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._names = itertools.count()
        self._codes: dict[int, int] = {}
        self._server = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "support" / "forks.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        self.run("--version")  # once it has loaded torch
        return self

    def __exit__(self, *fault: object) -> None:
        self._server.communicate()

    def start(
        self,
        *arguments: str,
        signal_at: tuple[int, int] | None = None,
        together: int | None = None,
        in_place: Path | None = None,
        **environment: str,
    ) -> Program:
        """`rerank` in the current folder, with the cache of the test."""
        name = self.folder / str(next(self._names))
        streams = (os.devnull, f"{name}.out", f"{name}.err")
        cache = {"RERANK_CACHE": os.environ.get("RERANK_CACHE", "")}
        run = {
            "arguments": arguments,
            "folder": os.getcwd(),
            "environment": {**cache, **environment},
            "streams": streams,
            "signal_at": signal_at,
            "together": together,
            "in_place": in_place and str(in_place),
        }
        assert self._server.stdin
        self._server.stdin.write(json.dumps(run) + "\n")
        self._server.stdin.flush()
        while True:
            process, ended = self._hear()
            if not ended:
                return Program(process, streams)

    def wait(self, program: Program) -> Done:
        while program.process not in self._codes:
            self._hear()
        streams = Path(program.streams[2])
        told = streams.read_text() if streams.exists() else ""  # killed before it opened them
        assert "Traceback" not in told, told
        assert "bug of ours" not in told, told
        return Done(self._codes[program.process], told)

    def run(self, *arguments: str, **options: Any) -> Done:
        return self.wait(self.start(*arguments, **options))

    def _hear(self) -> tuple[int, bool]:
        """The process named in the next message, and whether it has ended."""
        assert self._server.stdout
        process, code = json.loads(self._server.stdout.readline())
        if code is not None:
            self._codes[process] = code
        return process, code is not None
