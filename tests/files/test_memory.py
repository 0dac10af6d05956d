"""Memory that is left: of the machine, and of the control groups of a made-up file system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rerank.files import memory
from rerank.files.memory import array_memory, available_memory, resident_memory, size_text

MEMINFO = "MemTotal:       24684084 kB\nMemFree: 1 kB\nMemAvailable:   8000 kB\n"


def root_of(folder: Path, files: dict[str, str]) -> Path:
    """A folder that stands for the root of the file system."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_without_limits_it_is_what_linux_states(tmp_path: Path) -> None:
    unlimited = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/fs/cgroup/memory.current": "5\n",
    }
    assert available_memory(root_of(tmp_path, unlimited)) == 8000 << 10


def test_a_system_that_does_not_say_sets_no_limit(tmp_path: Path) -> None:
    assert available_memory(tmp_path) == sys.maxsize
    assert resident_memory(tmp_path) == (0, 0)


@pytest.mark.parametrize("group", ["/", "/job/step"])
def test_a_control_group_of_version_2_leaves_less(tmp_path: Path, group: str) -> None:
    """Cached files, which can be dropped at once, do not count as used."""
    limited = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": f"0::{group}\n",
        f"sys/fs/cgroup{group}/memory.max": "5000000\n",
        f"sys/fs/cgroup{group}/memory.current": "4000000\n",
        f"sys/fs/cgroup{group}/memory.stat": "anon 3\ninactive_file 1000000\n",
    }
    assert available_memory(root_of(tmp_path, limited)) == 2_000_000


def test_the_groups_around_limit_too_in_version_1(tmp_path: Path) -> None:
    limited = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "3:cpu:/a/b\n4:memory:/a/b\n",
        "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "1000\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000\n",
        "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000\n",
        "sys/fs/cgroup/cpu/a/b/memory.limit_in_bytes": "1\n",
        "sys/fs/cgroup/cpu/a/b/memory.usage_in_bytes": "0\n",
    }
    assert available_memory(root_of(tmp_path, limited)) == 2000


def test_arrays_get_half_of_what_is_available_or_what_the_program_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1000 << 20)
    monkeypatch.setattr(memory, "resident_memory", lambda: (200 << 20, 0))
    assert array_memory(None) == 500 << 20
    assert array_memory(1000 << 20) == (800 << 20) - memory._OTHERS
    assert array_memory(100 << 20) == 0


def test_this_process_takes_some_memory() -> None:
    resident, of_files = resident_memory()
    assert 10 << 20 < resident < available_memory() + resident
    assert 0 < of_files < resident


@pytest.mark.parametrize(
    ("size", "text"),
    [(3 << 30, "3G"), (500 << 20, "500M"), (1_600_000_000, "1.49G"), (2048, "2K")],
)
def test_sizes_are_written_as_options_have_them(size: int, text: str) -> None:
    assert size_text(size) == text
