"""The command line in a process of its own, and what the help of a command shows."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """`rerank` in the current folder; `options` are those of Popen."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    command = [sys.executable, "-m", "rerank", *arguments]
    return subprocess.Popen(command, env=environment, **{"stderr": subprocess.PIPE, **options})


def finish(*arguments: str, **options: Any) -> tuple[int, str]:
    """Exit code and standard error of `rerank` in the current folder."""
    program = start(*arguments, **options)
    message = program.communicate(timeout=120)[1]
    return program.returncode, message.decode()


def examples(help_text: str) -> list[list[str]]:
    """Words of each command under `Example:` in the help of a command."""
    text = help_text.partition("Example:\n")[2].partition("\n\n")[0].replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines()]
