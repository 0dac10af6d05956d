"""Weights tuned by another version of rerank, from a checkout of it, for a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rerank.commands.lists import Lists, read_targets
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS
from rerank.scorers.agreement import DOCUMENT_BLEU


def as_files(lists: Lists, references: tuple[Path, ...], stem: Path) -> list[str]:
    """Options of the lists, documents and references as plain files, which every version reads.

    Lists of systems are without agreement by document BLEU, which is newer than other versions.
    """
    if not lists.systems:
        files = ["--kbest", str(lists.kbest), "--docs", str(lists.docs)]
        return [*files, *(word for path in references for word in ("--ref", str(path)))]
    nbest, reference = Path(f"{stem}.nbest"), Path(f"{stem}.ref")
    given = ["--docs", str(lists.docs), "--out", str(nbest)]
    for name, path in lists.systems:
        given += ["--systems", str(path) if name == ALL_SYSTEMS else f"{name}={path}"]
    _run(None, "score", *given)
    nbest.write_bytes(re.sub(rb" %b= \S+" % DOCUMENT_BLEU.encode(), b"", nbest.read_bytes()))
    _, texts = read_targets(lists, references, Notices())
    reference.write_bytes(b"".join(line + b"\n" for (line,) in texts))
    return ["--kbest", str(nbest), "--docs", str(lists.docs), "--ref", str(reference)]


def start_file(system: str, path: Path) -> Path:
    """Weights that take the outputs of one system, in a file."""
    path.write_text(json.dumps({system: 1.0}), encoding="utf-8")
    return path


def tune(checkout: Path, files: list[str], start: Path, out: Path, seed: int) -> None:
    """Tune weights by the default of the version in `checkout`."""
    given = ["--start", str(start), "--seed", str(seed), "--out", str(out), "--no-cache"]
    _run(checkout, "tune-mert", *files, *given)


def _run(checkout: Path | None, *command: str) -> None:
    """One command of the version in a checkout, or of the installed one."""
    env = os.environ if checkout is None else {**os.environ, "PYTHONPATH": str(checkout)}
    program = [sys.executable, "-P", "-m", "rerank"]  # -P: no package of this folder
    subprocess.run([*program, *command, "--quiet"], check=True, env=env)
