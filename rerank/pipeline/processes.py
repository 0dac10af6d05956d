"""Runs of several processes, which `torchrun` has started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import UsageError

if TYPE_CHECKING:
    import torch

    from lm.training.processes import Processes


def is_first_process() -> bool:
    """Whether this process is the one that prints: alone, or the first of `torchrun`."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("RANK", "0") == "0"


@contextmanager
def processes(
    device: torch.device, inputs: Sequence[str | Path]
) -> Iterator[tuple[torch.device, Processes]]:
    """The device of this process, and the processes among which it is.

    Each of several processes on one machine has a CUDA device of its own, and all of them read the
    inputs: UsageError for standard input.
    """
    import torch

    from lm.training.processes import joined

    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "TORCHELASTIC_RUN_ID" in os.environ
    if several and "-" in map(str, inputs):
        raise UsageError("several processes cannot share standard input; name files instead of -")
    if several and device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    with joined(device) as group:
        yield device, group
