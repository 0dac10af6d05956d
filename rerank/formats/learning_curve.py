"""Learning curves: a file with a line for every validation of a training run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.files.paths import display

if TYPE_CHECKING:
    from lm.training.trainer import Report
    from rerank.notices import Notices

COLUMNS = ("update", "epoch", "seconds", "training_nats", "valid_perplexity", "rate", "stage")
_HEADER = "\t".join(COLUMNS).encode()


class LearningCurve:
    """Tab-separated figures of the validations so far; each replaces the whole file at once.

    training_nats: per token, `</s>` included, since the line before; rate: learning rate; stage:
    part of the training, whose loss the two figures are.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.lines: list[bytes] = []
        if str(path) == "-" or (Path(path).exists() and not Path(path).is_file()):
            raise UsageError(
                f"--curve {path}: expected a file, which every validation replaces; name one"
            )

    def resume(self, update: int, notices: Notices) -> None:
        """Keep the lines of an existing file up to an update, from which a run goes on."""
        if not Path(self.path).exists():
            return
        header, *lines = [*read_lines(self.path, notices)] or [b""]
        try:
            if header != _HEADER:
                raise ValueError
            self.lines = [line for line in lines if int(line.partition(b"\t")[0]) <= update]
        except ValueError:
            raise InputError(
                "expected the learning curve of the interrupted run; name another file",
                source=display(self.path),
                line=1,
            ) from None

    def add(self, report: Report) -> None:
        """Write the file with one more line."""
        values = (getattr(report, name) for name in COLUMNS)
        columns = (f"{value:.7g}" if isinstance(value, float) else str(value) for value in values)
        self.lines.append("\t".join(columns).encode())
        with atomic(self.path) as file:
            file.write(b"\n".join([_HEADER, *self.lines, b""]))


def read_curve(path: str | Path, notices: Notices) -> list[tuple[float, float]]:
    """Seconds and validation perplexity of each line of a file; InputError for another file."""
    header, *lines = [*read_lines(path, notices)] or [b""]
    seconds, perplexity = COLUMNS.index("seconds"), COLUMNS.index("valid_perplexity")
    found = []
    for number, line in enumerate([header, *lines], 1):
        cells = line.decode(errors="replace").split("\t")
        try:
            if number == 1 and line == _HEADER:
                continue
            point = float(cells[seconds]), float(cells[perplexity])
            if number == 1 or not all(map(math.isfinite, point)):
                raise ValueError
        except (ValueError, IndexError):
            raise InputError(
                f"expected a learning curve, found {line.decode(errors='replace')!r:.60}; write it "
                "with train-lm --curve FILE",
                source=display(path),
                line=number,
            ) from None
        found.append(point)
    return found
