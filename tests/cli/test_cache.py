"""`rerank cache`: its text and JSON, and what it removes."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.cli import examples

from rerank.cache import Cache
from rerank.cli import run
from rerank.cli.cache import cache
from rerank.notices import Notices

GROUP = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, with one shard in it."""
    monkeypatch.setenv("RERANK_CACHE", str(tmp_path / "scores"))
    monkeypatch.delenv("RERANK_CACHE_GB", raising=False)
    Cache(tmp_path / "scores", Notices(), 10**9).put(GROUP, GROUP, {"a": np.zeros(150_000)})
    return tmp_path / "scores"


@pytest.mark.parametrize("name", sorted(cache.commands))
def test_the_help_has_an_example_that_runs(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(["cache", name, "--help"]) == 0
    (words,) = examples(capsys.readouterr().out)
    assert words[:3] == ["rerank", "cache", name]
    assert run(words[1:]) == 0


def test_info_is_for_people_or_for_machines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cache", "info"]) == 0
    text = f"{folder}: 1 shard, 1.2 MB of at most 20.0 GB\n{GROUP}: 1 shard, 1.2 MB\n"
    assert capsys.readouterr().out == text
    assert run(["cache", "info", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["folder"], found["shards"]) == (1, str(folder), 1)


def test_clear_removes_the_scores_of_the_folder_that_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert run(["cache", "clear", "--cache", str(other)]) == 0
    assert capsys.readouterr().out == f"removed 0.0 MB of scores from {other}\n"
    assert list(folder.iterdir()) != []
    assert run(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed 1.2 MB of scores from {folder}\n"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "--cache", "file"], "expected a folder, found the file 'file'"),
        (["clear", "--cache", "file"], "expected a folder, found the file 'file'"),
        (["info"], "expected RERANK_CACHE_GB to be a positive number of gigabytes, found '-1'"),
        (["purge"], "No such command 'purge'"),
    ],
)
def test_usage_errors_are_one_line_and_change_nothing(
    arguments: list[str],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RERANK_CACHE_GB", "-1")
    Path("file").write_text("mine")
    assert run(["cache", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert Path("file").read_text() == "mine"
    assert (folder / GROUP).exists()
