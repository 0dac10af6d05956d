"""Large arrays: the same values in memory and in files, which leave nothing behind."""

from __future__ import annotations

import errno
import gc
import mmap
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.errors import RerankError
from rerank.files import arrays
from rerank.files.arrays import IN_MEMORY, SMALL, ArrayStore
from rerank.files.memory import resident_memory


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def in_file(array: NDArray[Any]) -> bool:
    """Whether the memory of an array is that of a file."""
    base: object = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    return isinstance(base, mmap.mmap)


def test_without_a_limit_everything_stays_in_memory() -> None:
    array = np.arange(1000.0)
    assert IN_MEMORY.kept(array) is array
    assert not in_file(IN_MEMORY.large((1000, 1000), np.float64))
    assert IN_MEMORY.on_disk == 0


def test_an_array_beyond_the_limit_lies_in_a_file_without_a_name(folder: Path) -> None:
    store = ArrayStore(0)
    large = store.large((300, 500), np.int32)
    working = store.working((SMALL,), np.float64)
    assert in_file(large)
    assert in_file(working)
    assert large.shape == (300, 500)
    assert large.dtype == np.int32
    assert store.on_disk == 600_000 + 8 * SMALL
    large[:], working[:] = 7, 0.5
    store.release()
    assert large.sum() == 7 * 150_000
    assert working.sum() == SMALL / 2
    assert not list(folder.iterdir())


def test_small_arrays_stay_in_memory() -> None:
    assert not in_file(ArrayStore(0).large((SMALL - 1,), np.int8))


def test_kept_arrays_share_a_file_and_have_their_values(folder: Path) -> None:
    store, rng = ArrayStore(0), np.random.default_rng(1)
    given = [rng.standard_normal((n, 3)).astype(kind) for n in (5, 1, 400) for kind in "fd"]
    found = [store.kept(array) for array in given]
    for before, after in zip(given, found, strict=True):
        assert in_file(after)
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
    assert store.on_disk == arrays._BLOCK
    assert not list(folder.iterdir())
    nothing = np.zeros((0, 3))
    assert store.kept(nothing) is nothing


def test_an_array_larger_than_a_block_has_a_file_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrays, "_BLOCK", 4096)
    store = ArrayStore(0)
    sizes = (300, 1000, 20, 500, 500)
    found = [store.kept(np.full(n, float(n))) for n in sizes]
    assert [array.tolist() for array in found] == [[float(n)] * n for n in sizes]


def test_the_memory_of_an_array_that_is_gone_is_free_again() -> None:
    store = ArrayStore(10 * SMALL)
    first = store.working((8 * SMALL,), np.int8)
    assert not in_file(first)
    assert in_file(store.working((8 * SMALL,), np.int8))
    view = first[:5]
    del first
    gc.collect()
    assert in_file(store.working((8 * SMALL,), np.int8))  # the view still holds it
    del view
    gc.collect()
    assert not in_file(store.working((8 * SMALL,), np.int8))


def test_a_document_has_a_quarter_of_the_memory() -> None:
    assert IN_MEMORY.has_room(1 << 60)
    store = ArrayStore(400)
    assert [store.has_room(size) for size in (0, 100, 101)] == [True, True, False]


def test_arrays_are_copied_into_files_whatever_there_is_room_for(folder: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    copy = IN_MEMORY.filed(array)
    assert in_file(copy)
    np.testing.assert_array_equal(copy, array)
    assert not in_file(IN_MEMORY.in_file((SMALL - 1,), np.int8))
    assert in_file(IN_MEMORY.in_file((SMALL,), np.int8))
    assert not list(folder.iterdir())


def test_what_is_needed_most_finds_room_last() -> None:
    store = ArrayStore(16 * SMALL)
    kept = [store.kept(np.zeros(SMALL, np.int8)) for _ in range(8)]
    assert [in_file(array) for array in kept] == [False] * 4 + [True] * 4
    large = [store.large((SMALL,), np.int8) for _ in range(12)]
    assert [in_file(array) for array in large] == [False] * 8 + [True] * 4
    working = [store.working((SMALL,), np.int8) for _ in range(8)]
    assert [in_file(array) for array in working] == [False] * 4 + [True] * 4


def test_pages_are_released_while_the_process_has_too_much_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first look is at the pages of other files, which stay."""
    few = arrays._FEW
    looks = [(0, 3), (99, 4 + few), (100, 4 + few), (101, 3 + few), (101, 4 + few), (200, 9 + few)]
    released, left, done = list[int](), iter(looks), Event()

    def look() -> tuple[int, int]:
        found = next(left, None)
        if found is None:
            done.set()
        return found or (0, 0)

    monkeypatch.setattr(arrays, "_SECONDS", 0.0)
    monkeypatch.setattr(arrays, "resident_memory", look)
    monkeypatch.setattr(ArrayStore, "release", lambda store: released.append(1))
    store = ArrayStore(0, 100)
    watched = [store.large((SMALL,), np.int8) for _ in range(2)]  # by one thread
    assert done.wait(20)
    assert len(released) == 2
    assert len(watched) == 2


def test_a_store_that_is_gone_is_no_longer_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_SECONDS", 0.001)
    store = ArrayStore(0, 1 << 40)
    array = store.large((SMALL,), np.int8)
    watching = [one for one in threading.enumerate() if one.name == arrays.WATCH]
    assert watching
    del store
    for thread in watching:
        thread.join(20)
        assert not thread.is_alive()
    array[:] = 1  # it outlives the store


def test_released_pages_leave_the_memory_of_the_process() -> None:
    store = ArrayStore(0)
    array = store.large((64 << 20,), np.uint8)
    array[:] = 3
    before = resident_memory()[1]
    store.release()
    assert resident_memory()[1] < before - (60 << 20)
    assert array.max() == array.min() == 3


def test_a_full_disk_is_one_line_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(arrays, "_reserve", full)
    with pytest.raises(RerankError, match=r"no space left in .* for 8 MB .*; name .* in TMPDIR"):
        ArrayStore(0).large((1_000_000,), np.float64)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_killed_leaves_no_file(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import numpy as np, time\nfrom rerank.files.arrays import ArrayStore\n"
        "store = ArrayStore(0)\na = store.large((10**6,), float)\na[:] = 1\n"
        "b = store.kept(a[:9])\nprint('made', flush=True)\ntime.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"made\n"
        child.send_signal(number)
        assert child.wait() == -number
    assert not list(tmp_path.iterdir())
