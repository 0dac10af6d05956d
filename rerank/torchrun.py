"""What `torchrun` tells a process of the others that it has started; without it, one is alone."""

from __future__ import annotations

import os


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
