"""`cache`: where the folder is, what it holds, and what `clear` removes."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.world import World

SCORE = "score --kbest dev.kbest --docs dev.docs --out out --lm lm=lm"


@pytest.fixture
def filled(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world with scores of two models in the folder `scores`."""
    monkeypatch.setenv("RERANK_CACHE", str(world.folder / "scores"))
    monkeypatch.delenv("RERANK_CACHE_GB", raising=False)
    for name in ("codclm", "rnnlm"):
        world.model(name)
        world.ok(SCORE)
    return world


def test_info_counts_shards_and_bytes_by_group(filled: World) -> None:
    folder = filled.folder / "scores"
    (folder / "mine").write_text("x" * 99)
    groups = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    (groups[0] / "mine.scores").write_text("x" * 99)
    sizes = [[path.stat().st_size for path in group.glob("????????*.scores")] for group in groups]
    result = filled.ok("cache info --format json", RERANK_CACHE_GB="1.5").json
    assert result == {
        "schema": 1,
        "folder": str(folder),
        "shards": 4,
        "bytes": sum(map(sum, sizes)),
        "limit": 1_500_000_000,
        "groups": [{"group": group.name, "shards": 2, "bytes": sum(size)}
            for group, size in zip(groups, sizes, strict=True)],
    }  # fmt: skip
    first, *others = filled.ok("cache info").lines
    assert first == f"{folder}: 4 shards, {result['bytes'] / 1e6:.1f} MB of at most 20.0 GB"
    assert others == [
        f"{group.name}: 2 shards, {sum(size) / 1e6:.1f} MB"
        for group, size in zip(groups, sizes, strict=True)
    ]


def test_clear_removes_what_is_ours_and_nothing_else(filled: World) -> None:
    folder = filled.folder / "scores"
    one, other = sorted(path for path in folder.iterdir())
    name = next(one.iterdir()).stem
    size = sum(path.stat().st_size for path in folder.glob("*/*.scores"))
    left = other / f".{name[:50]}.4194304.01234567.tmp"
    left.write_bytes(b"by a dead writer")
    os.utime(left, (time.time() - 7_200,) * 2)
    strangers = {
        "mine.scores",
        f"notes/{name}.scores",
        f"{one.name}/notes",
        f"{one.name}/{name.upper()}x.scores",
        f"{one.name}/{name}.scores.bak",
        f"{one.name}/.{name[:50]}.1.01234567.tmp",  # a process may be writing it
        f"{one.name}/sub/{name}.scores",
        f"{one.name.upper()}x/{name}.scores",
    }
    for stranger in strangers:
        filled.write(f"scores/{stranger}", "mine")
    far = filled.write(f"far/{name}.scores", "precious")
    links = {"a" * 16: far.parent, f"{one.name}/{'b' * 16}.scores": far}
    for link, target in links.items():
        (folder / link).symlink_to(target)
    run = filled.ok("cache clear")
    assert run.out == f"removed {(size + 16) / 1e6:.1f} MB of scores from {folder}\n"
    paths = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    assert {str(path.relative_to(folder)) for path in paths} == strangers | links.keys()
    assert not other.exists()
    assert far.read_text() == "precious"
    assert filled.ok("cache info --format json").json["shards"] == 0
    assert "tokens scored" in filled.ok(SCORE).err  # and it can be filled again


def test_shards_that_vanish_do_not_count(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    @contextmanager
    def emptied(folder: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(folder) as entries:
            result = list(entries)
        for entry in result:
            if entry.name.endswith(".scores"):
                os.unlink(entry.path)
        yield result

    monkeypatch.setattr(os, "scandir", emptied)
    result = filled.ok("cache info --format json").json
    assert (result["shards"], result["bytes"], result["groups"]) == (0, 0, [])


def test_the_folder_that_is_named_is_used_shown_and_cleared(filled: World) -> None:
    filled.ok(SCORE, "--cache", "own")
    assert filled.ok("cache info --cache own --format json").json["shards"] == 2
    assert filled.ok("cache clear --cache none").out == "removed 0.0 MB of scores from none\n"
    filled.ok("cache clear --cache own")
    assert [*(filled.folder / "own").iterdir()] == []
    assert filled.ok("cache info --format json").json["shards"] == 4


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
        ("linux", {"XDG_CACHE_HOME": "/xdg", "RERANK_CACHE": "own"}, "own"),
        ("linux", {"RERANK_CACHE": "", "XDG_CACHE_HOME": ""}, "house/.cache/rerank"),
    ],
)
def test_the_folder_is_the_users_wish_or_the_systems_custom(
    platform: str,
    variables: dict[str, str],
    folder: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RERANK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("house"))
    monkeypatch.setattr(sys, "platform", platform)
    assert world.ok("cache info --format json", **variables).json["folder"] == folder


def test_without_a_home_a_cure_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("RERANK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert "set RERANK_CACHE=DIR" in world.refused("cache info")
