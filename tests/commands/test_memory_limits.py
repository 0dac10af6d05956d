"""How much memory large lists may take: what the system and its control groups leave.

The system's own files are made up; lists that do not fit lie in files, with equal results.
"""

import errno
import os
import re
from collections.abc import Callable
from os.path import isdir
from pathlib import Path

import pytest
from support.world import DECODE, World

LITTLE, MUCH = 4 << 10, 8 << 30  # bytes
MEMINFO = "MemTotal: 24684084 kB\nMemFree: 1 kB\nMemAvailable:   {} kB\n"
V2 = "/sys/fs/cgroup{}/memory.{}"
V1 = "/sys/fs/cgroup/memory{}/memory.{}"
SCORE = "score --kbest list --no-docs one --scores qe=qe"


def version_2(group: str, limit: object, used: int, cached: int = 0) -> dict[str, str]:
    return {
        "/proc/self/cgroup": f"0::{group}\n",
        V2.format(group.rstrip("/"), "max"): f"{limit}\n",
        V2.format(group.rstrip("/"), "current"): f"{used}\n",
        V2.format(group.rstrip("/"), "stat"): f"anon 3\ninactive_file {cached}\n",
    }


def version_1(group: str, limit: int) -> dict[str, str]:
    """The process is in /a/b; groups of processors do not count."""
    return {
        "/proc/self/cgroup": "3:cpu:/a/b\n4:memory:/a/b\n",
        V1.format("/a/b", "limit_in_bytes"): "9223372036854771712\n",
        V1.format("/a/b", "usage_in_bytes"): "1000\n",
        V1.format(group, "limit_in_bytes"): f"{limit}\n",
        V1.format(group, "usage_in_bytes"): "1000\n",
        "/sys/fs/cgroup/cpu/a/b/memory.limit_in_bytes": "1\n",
        "/sys/fs/cgroup/cpu/a/b/memory.usage_in_bytes": "0\n",
    }


SYSTEMS: dict[str, tuple[int | None, dict[str, str], bool]] = {
    "nothing said": (None, {}, False),
    "much": (MUCH, {}, False),
    "little": (LITTLE, {}, True),
    "no limit of the group": (MUCH, version_2("/", "max", 5), False),
    "a small group": (MUCH, version_2("/", 5_000_000, 4_999_000), True),
    "a small group of a job": (MUCH, version_2("/job/step", 5_000_000, 4_999_000), True),
    "a group with cached files": (MUCH, version_2("/job", MUCH, MUCH - 1000, MUCH // 2), False),
    "a small group, version 1": (MUCH, version_1("/a/b", 3000), True),
    "a small group around, version 1": (MUCH, version_1("/a", 3000), True),
    "large groups, version 1": (MUCH, version_1("/a", MUCH), False),
}  # fmt: skip


@pytest.fixture
def large(world: World) -> World:
    """A list whose arrays are worth a file."""
    rows = [(t, k) for t in range(30) for k in range(110)]
    world.write("list", [f"{t} ||| w{k} ||| A= {k} B= {t} C= 1 ||| 0" for t, k in rows])
    world.write("qe", [k for _, k in rows])
    (world.folder / "tmp").mkdir()
    return world


@pytest.mark.parametrize("name", SYSTEMS)
def test_lists_that_do_not_fit_into_what_the_system_leaves_lie_in_files(
    name: str, large: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    available, groups, in_files = SYSTEMS[name]
    files = {"/proc/meminfo": MEMINFO.format(available >> 10)} if available else {}
    read, files = Path.read_text, {**files, **groups}

    def made_up(path: Path, *others: str | None) -> str:
        if not str(path).startswith(("/proc/", "/sys/")) or path.name == "statm":
            return read(path, *others)
        if str(path) not in files:
            raise FileNotFoundError(str(path))
        return files[str(path)]

    expected = large.ok(SCORE, "--memory", "64G").out
    monkeypatch.setattr(Path, "read_text", made_up)
    monkeypatch.setattr("tempfile.tempdir", str(large.folder / "tmp"))
    run = large.ok(SCORE)
    assert ("candidates that did not fit into memory: " in run.err) == in_files, run.err
    assert run.out == expected
    assert not os.listdir("tmp")


@pytest.mark.parametrize(("change", "command"), [
    (lambda lines: [re.sub("LM0=.* \\|\\|\\|", " |||", line) for line in lines],
        "score --kbest dev.kbest --docs dev.docs --scores qe=dev.qe"),
    (lambda lines: lines[:2] + lines[5:], f"{DECODE} --missing source --source dev.src"),
], ids=["without features", "with a source line"])  # fmt: skip
def test_lists_in_files_are_those_in_memory(
    change: Callable[[list[str]], list[str]],
    command: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.write("dev.kbest", change(world.lines("dev.kbest")))
    monkeypatch.setattr("tempfile.tempdir", str(world.folder))
    run = world.ok(f"{command} --memory 256M")
    assert "candidates that did not fit into memory: " in run.err
    assert run.out == world.ok(f"{command} --memory 64G").out


def test_without_proc_as_on_macos_a_list_from_a_pipe_is_decoded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = DECODE.replace("--kbest dev.kbest", "--kbest -")
    expected, read, lists = world.ok(DECODE).out, Path.read_text, world.text("dev.kbest").encode()

    def silent(path: Path, *others: str | None) -> str:
        if str(path).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(str(path))
        return read(path, *others)

    monkeypatch.setattr(Path, "read_text", silent)
    monkeypatch.setattr(Path, "is_dir", lambda path: path.parts[1:2] != ("proc",) and isdir(path))
    for module, name in ((os, "sched_getaffinity"), (os, "posix_fallocate")):
        monkeypatch.delattr(module, name)
    assert world.ok(piped, stdin=lists).out == expected


def test_a_full_disk_is_one_line_and_a_cure(large: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr("tempfile.tempdir", str(large.folder / "tmp"))
    run = large.run(f"{SCORE} --memory 256M --out out -q")
    assert (run.exit, run.err.count("\n"), os.listdir("tmp")) == (1, 1, [])
    assert "no space left in " in run.err
    assert "in TMPDIR" in run.err
