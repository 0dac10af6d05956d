"""Processes that know of each other as those of `torchrun` do, without its supervisor."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.cli import ROOT


def started(
    number: int, *arguments: str, program: Path | None = None, **options: Any
) -> list[subprocess.Popen[bytes]]:
    """So many processes of one command line of `rerank`, or of a program, on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    sizes = {"WORLD_SIZE": str(number), "LOCAL_WORLD_SIZE": str(number)}
    what = ["-m", "rerank"] if program is None else [str(program)]
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(number)]
    return [
        subprocess.Popen(
            [sys.executable, *what, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), **common, **sizes, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        for own in ranks
    ]
