"""What `torchrun` tells a process of the others; without it, one is alone.

Processes that share the work of a run send each other numbers by `lm.training.processes`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rerank.errors import RerankError, UsageError
from rerank.files.paths import FilePath

if TYPE_CHECKING:
    import torch

    from lm.training.processes import Processes

LONGEST_SHARD = timedelta(days=30)  # torch ends a process that has waited for longer


def process_number() -> int:
    """Which of all processes this is, from 0 on; the first one writes and prints."""
    return _stated("RANK", 0)


def number_of_processes() -> int:
    """How many processes there are on all machines."""
    return max(1, _stated("WORLD_SIZE", 1))


def local_number() -> int:
    """Which of the processes on this machine this is, from 0 on."""
    return _stated("LOCAL_RANK", 0)


def local_processes() -> int:
    """How many processes there are on this machine."""
    return max(1, _stated("LOCAL_WORLD_SIZE", 1))


def _stated(name: str, alone: int) -> int:
    """A variable that other programs set, too: that of `torchrun`, or the value without it."""
    return int(os.environ.get(name, alone)) if "TORCHELASTIC_RUN_ID" in os.environ else alone


@contextmanager
def processes(
    device: torch.device, inputs: Sequence[FilePath], patience: timedelta | None = None
) -> Iterator[tuple[torch.device, Processes]]:
    """The device of this process, and the processes among which it is.

    Each of several processes on one machine has a CUDA device of its own, and all of them read the
    inputs: UsageError for standard input. patience: how long each waits for the others.
    """
    import torch

    from lm.training.processes import joined

    if number_of_processes() > 1:
        if "-" in map(str, inputs):
            raise UsageError(
                "several processes cannot share standard input; name files instead of -"
            )
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", local_number())
    with joined(device, patience) as group:
        yield device, group


@contextmanager
def sharing_documents(inputs: Sequence[FilePath]) -> Iterator[Processes]:
    """The processes of `torchrun` that share the documents of a run.

    They send numbers and short messages to each other over the CPU, wherever the models are.
    RerankError if another one ends before its part of the work is done.
    """
    import torch

    with processes(torch.device("cpu"), inputs, LONGEST_SHARD) as (_, group):
        yield group


@contextmanager
def others_alive(
    after: str = "the scores so far are in the cache, and the same command goes on from there",
) -> Iterator[None]:
    """A wait for the other processes: RerankError in place of torch's error if one has ended.

    after: what the error says of the work so far.
    """
    try:
        yield
    except RuntimeError as fault:
        reason = str(fault).split("\n", 1)[0]
        raise RerankError(
            f"another process has ended before its documents were scored; {after} (torch: "
            f"{reason:.120})"
        ) from None
