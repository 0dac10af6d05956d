"""The store of answers: what was put is there, for other processes, too, if others are damaged."""

import os
import threading
from pathlib import Path

import pytest
from support.world import World

from rerank.files.cache import AnswerStore, Cache
from rerank.notices import Notices

GROUP = "ab" * 16
KEYS = [b"", b"\0\n ", *(str(n).encode() for n in range(200))]


def store(folder: Path | None, group: str = GROUP, limit: int = 10**9) -> AnswerStore:
    cache = Cache(folder, Notices(), limit) if folder else None
    return AnswerStore(cache, group)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{GROUP}/*.answers"))


@pytest.mark.parametrize("kept", [True, False])
def test_answers_are_found_by_key_and_by_later_stores(kept: bool, tmp_path: Path) -> None:
    first = store(tmp_path if kept else None)
    for key in KEYS:
        assert key not in first
        first.put(key, key * 3)
    for same in (first, *([store(tmp_path)] if kept else [])):
        assert [same.get(key) for key in KEYS] == [key * 3 for key in KEYS]
    assert b"other" not in store(tmp_path)
    assert b"1" not in store(tmp_path, "cd" * 16)
    if kept:
        (path,) = files(tmp_path)
        size = path.stat().st_size
        first.put(b"1", b"111")  # as it is
        store(tmp_path).put(b"2", b"222")
        assert (len(files(tmp_path)), path.stat().st_size) == (1, size)
        store(tmp_path).put(b"1", b"new")
        assert store(tmp_path).get(b"1") == b"new"


def test_half_and_damaged_records_are_ignored_and_harm_no_other(tmp_path: Path) -> None:
    store(tmp_path).put(b"one", b"1")
    (path,) = files(tmp_path)
    line = path.read_bytes()
    store(tmp_path).put(b"two", b"2")
    for damage in (line[:-9], b"\0" + line[2:], b"\xff\n a b c\n", line.replace(b"=", b"")):
        path.write_bytes(damage)
        again = store(tmp_path)
        assert (b"one" in again, again.get(b"two")) == (False, b"2")
    path.write_bytes(line[:-9] + line)  # another line after a half one
    assert store(tmp_path).get(b"one") == b"1"
    other = tmp_path / ("cd" * 16) / path.name
    other.parent.mkdir()
    other.write_bytes(line)
    assert b"one" not in store(tmp_path, "cd" * 16)


def test_stores_that_append_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    shared = store(tmp_path)

    def work(n: int) -> None:
        own = shared if n < 2 else store(tmp_path)
        for key in KEYS[n::4]:
            own.put(key, key * 2)

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store(tmp_path).get(key) for key in KEYS] == [key * 2 for key in KEYS]


def test_answers_are_counted_trimmed_and_cleared(world: World) -> None:
    folder = world.folder / "scores"
    store(folder).put(b"old", b"x" * 600)
    os.utime(files(folder)[0], (1, 1))
    store(folder, "cd" * 16).put(b"new", b"x" * 600)
    assert world.ok("cache info --cache scores --format json").json["shards"] == 2
    store(folder, "ef" * 16, limit=2_000).put(b"newest", b"x" * 600)
    assert files(folder) == []  # used longest ago
    assert world.ok("cache info --cache scores --format json").json["shards"] == 2
    world.ok("cache clear --cache scores")
    assert [*folder.iterdir()] == []


def test_a_cache_that_cannot_be_written_is_named_and_answers_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", fail)
    notices = Notices()
    own = AnswerStore(Cache(tmp_path, notices, 10**9), GROUP)
    for key in KEYS:
        own.put(key, b"1")
    assert all(own.get(key) == b"1" for key in KEYS)
    assert len(notices.lines()) == 1
