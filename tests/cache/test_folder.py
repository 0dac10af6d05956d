"""Folder of the score cache: where it is, what it may take, and what is ours in it."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rerank.cache import Cache, Info, cache_folder, cache_limit, clear, info
from rerank.errors import UsageError
from rerank.notices import Notices

GROUP, OTHER = "0123456789abcdef", "fedcba9876543210"
ENVIRONMENT = ("RERANK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA", "RERANK_CACHE_GB")


def filled(folder: Path, group: str = GROUP, number: int = 0, size: int = 3) -> Path:
    """A new shard of the cache in a folder."""
    name = f"{number:016x}"
    assert Cache(folder, Notices(), 10**9).put(group, name, {"scores": np.zeros(size)})
    return folder / group / f"{name}.scores"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that says nothing but where home is."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("house"))
    return monkeypatch


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, "house/.cache/rerank"),
        ("darwin", {}, "house/Library/Caches/rerank"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/rerank/cache"),
        ("win32", {}, "house/.cache/rerank"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/rerank"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/rerank"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "house/.cache/rerank"),
        ("linux", {"XDG_CACHE_HOME": ""}, "house/.cache/rerank"),
        ("linux", {"XDG_CACHE_HOME": "/xdg", "RERANK_CACHE": "own"}, "own"),
        ("linux", {"RERANK_CACHE": ""}, "house/.cache/rerank"),
    ],
)
def test_the_folder_is_the_users_wish_or_the_systems_custom(
    environment: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)
    environment.setattr(sys, "platform", platform)
    assert cache_folder() == Path(folder)
    assert cache_folder(Path("given")) == Path("given")


def test_an_account_without_a_home_is_told_what_to_set(environment: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    environment.setattr(Path, "home", homeless)
    with pytest.raises(UsageError, match="set RERANK_CACHE=DIR"):
        cache_folder()


@pytest.mark.parametrize(
    ("value", "limit"),
    [(None, 20 * 10**9), ("", 20 * 10**9), ("1", 10**9), ("0.5", 5 * 10**8), ("1e3", 10**12)],
)
def test_the_limit_is_in_gigabytes(
    environment: pytest.MonkeyPatch, value: str | None, limit: int
) -> None:
    if value is not None:
        environment.setenv("RERANK_CACHE_GB", value)
    assert cache_limit() == limit


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e999", "1e300000", "20 GB", "x"])
def test_a_limit_that_is_none_is_refused_with_a_cure(
    environment: pytest.MonkeyPatch, value: str
) -> None:
    environment.setenv("RERANK_CACHE_GB", value)
    with pytest.raises(UsageError, match=f"found '{value}'; .* RERANK_CACHE_GB=20"):
        cache_limit()


# What people see of it


def test_the_report_counts_shards_and_bytes_by_group(
    tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("RERANK_CACHE_GB", "1.5")
    for number in range(2):
        large = filled(tmp_path, OTHER, number, 150_000).stat().st_size
    small = filled(tmp_path).stat().st_size
    (tmp_path / "mine").write_text("x" * 99)
    (tmp_path / GROUP / "mine.scores").write_text("x" * 99)
    found = info(tmp_path)
    groups = ((GROUP, 1, small), (OTHER, 2, 2 * large))
    assert found == Info(tmp_path, 3, small + 2 * large, 1_500_000_000, groups)
    assert found.to_text() == (
        f"{tmp_path}: 3 shards, 2.4 MB of at most 1.5 GB\n"
        f"{GROUP}: 1 shard, 0.0 MB\n{OTHER}: 2 shards, 2.4 MB"
    )
    assert json.loads(json.dumps(found.to_dict())) == {
        "schema": 1,
        "folder": str(tmp_path),
        "shards": 3,
        "bytes": small + 2 * large,
        "limit": 1_500_000_000,
        "groups": [
            {"group": GROUP, "shards": 1, "bytes": small},
            {"group": OTHER, "shards": 2, "bytes": 2 * large},
        ],
    }


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert info(tmp_path / "none").shards == 0
    assert clear(tmp_path / "none") == 0


def test_clearing_removes_what_is_ours_and_nothing_else(tmp_path: Path) -> None:
    folder, outside = tmp_path / "scores", tmp_path / "outside"
    for group in (GROUP, OTHER):
        filled(folder, group)
    freed = info(folder).bytes
    left = folder / OTHER / f".{GROUP}.scores.4194304.01234567.tmp"
    left.write_bytes(b"by a dead writer")
    os.utime(left, (time.time() - 7_200,) * 2)
    strangers = {
        "mine.scores",
        f"notes/{GROUP}.scores",
        f"{GROUP}/notes",
        f"{GROUP}/{GROUP.upper()}.scores",
        f"{GROUP}/{GROUP}.scores.bak",
        f"{GROUP}/.{GROUP}.scores.1.01234567.tmp",  # a process may be writing it
        f"{GROUP}/sub/{GROUP}.scores",
        f"{GROUP.upper()}/{GROUP}.scores",
    }
    for stranger in strangers:
        (folder / stranger).parent.mkdir(exist_ok=True)
        (folder / stranger).write_text("mine")
    far = filled(outside)
    links = {"a" * 16: far.parent, f"{GROUP}/{'b' * 16}.scores": far}
    for link, target in links.items():
        (folder / link).symlink_to(target)
    before = far.read_bytes()
    assert clear(folder) == freed + len(b"by a dead writer")
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink() or p.is_file()}
    assert found == strangers | links.keys()
    assert not (folder / OTHER).exists()
    assert far.read_bytes() == before
    assert info(folder).shards == 0


def test_a_cleared_cache_is_empty_and_can_be_filled_again(tmp_path: Path) -> None:
    filled(tmp_path)
    clear(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert filled(tmp_path).exists()


@pytest.mark.parametrize("length", [16, 45, 64])
def test_what_outputs_writes_aside_is_known_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(os, "replace", lambda old, new: None)  # as if it died just before
    Cache(tmp_path, Notices(), 10**9).put(GROUP, "c" * length, {"scores": np.zeros(3)})
    monkeypatch.undo()
    monkeypatch.setattr(time, "time_ns", lambda: 2**62)  # long after
    assert clear(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []
