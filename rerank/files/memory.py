"""Memory that a process may use: what the machine has left, and what a container leaves of it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

SHARE = 0.5  # of the available memory that arrays take by default
_OTHERS = 240 << 20  # bytes that a run takes beside these arrays once its libraries are loaded
_ROOT = Path("/")
_MEMINFO = re.compile(r"^MemAvailable:\s*(\d+) kB", re.MULTILINE)
# limit and use of a control group: version 2, then version 1 (Linux)
_GROUPS = (
    ("", "sys/fs/cgroup", "memory.max", "memory.current"),
    ("memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
_CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)  # can be dropped at once


def available_memory(root: Path = _ROOT) -> int:
    """Bytes that can be used without swapping; `sys.maxsize` where the system does not say.

    The least of what Linux states as available and of what the limits of the process's control
    group, and of the groups around it, leave. root: of the file system.
    """
    found = _MEMINFO.search(_text(root / "proc/meminfo"))
    if found is None:
        return sys.maxsize
    return min([int(found[1]) << 10, *_left_by_groups(root)])


def resident_memory(root: Path = _ROOT) -> tuple[int, int]:
    """Bytes of this process in memory, and those of mapped files among them.

    Zeros where the system does not say.
    """
    pages = _text(root / "proc/self/statm").split()[1:3]
    if not pages:
        return 0, 0
    resident, of_files = (int(number) * os.sysconf("SC_PAGE_SIZE") for number in pages)
    return resident, of_files


def array_memory(memory: int | None) -> int:
    """Bytes for the large arrays of this process, which may have `memory` bytes in all.

    Without a number, half of what is available.
    """
    if memory is None:
        return int(SHARE * available_memory())
    return max(0, memory - resident_memory()[0] - _OTHERS)


def size_text(size: int) -> str:
    """A number of bytes for people, in units of 1,024 bytes each as options have them.

    >>> size_text(3 << 30), size_text(1_600_000_000)
    ('3G', '1.49G')
    """
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M")):
        if size >= unit:
            return f"{size / unit:.3g}{letter}"
    return f"{size / 1024:.3g}K"


def _left_by_groups(root: Path) -> list[int]:
    """What each limit of a control group of this process leaves."""
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for name, folder, limit, used in _GROUPS:
            if name not in controllers.split(","):
                continue
            own = root / folder / path.lstrip("/")
            for group in (own, *own.parents[: len(Path(path).parts) - 1]):
                numbers = [_text(group / file).strip() for file in (limit, used)]
                if all(number.isdecimal() for number in numbers):
                    cached = _CACHED.findall(_text(group / "memory.stat"))
                    use = int(numbers[1]) - max(map(int, cached), default=0)
                    left.append(max(0, int(numbers[0]) - use))
    return left


def _text(file: Path) -> str:
    """Text of a file of the system; empty where there is none."""
    try:
        return file.read_text()
    except OSError:
        return ""
