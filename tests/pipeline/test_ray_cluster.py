"""Shards as tasks of Ray; a cluster of this machine where Ray is installed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.cli import finish, start
from support.files import write_weights

from rerank.cache import cache_folder
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, Scoring, Shard, decode
from rerank.pipeline.ray_cluster import shard_task

OPTIONS = "decode --kbest dev.kbest --docs dev.docs --weights w.json --device cpu --deterministic"


@pytest.fixture
def here(tuning_lists: Path) -> Path:
    write_weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5})
    return tuning_lists


def test_without_the_package_the_cure_is_one_line(
    here: Path, model_folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    lms = (("lm", model_folders["codclm"]),)
    scoring = Scoring(device="cpu", cache="c", ray="local")
    given = Lists("dev.kbest", "dev.docs", lms=lms, scoring=scoring)
    with pytest.raises(UsageError, match=r"pip install 'rerank-mt\[ray\]'"):
        decode(given, "w.json", "out", notices=Notices())


def test_a_worker_without_the_common_folder_says_so(here: Path) -> None:
    lists = Lists("dev.kbest", "dev.docs")
    probe = cache_folder(here / "elsewhere") / "probe"
    lines, code, message = shard_task((print, lists, (probe, "token"), str(here)), Shard(1, 2))
    assert (lines, code) == ([], 2)
    assert "the machines need a common file system" in message


def workers() -> list[int]:
    """Processes that run a task of ours."""
    found = subprocess.run(["pgrep", "-f", "^ray::shard_task"], capture_output=True, check=False)
    return [int(number) for number in found.stdout.split()]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray")
def test_a_cluster_gives_the_bytes_of_one_process_though_a_worker_is_killed(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    options = [*OPTIONS.split(), "--lm", f"lm={model_folders['ccdclm']}"]
    assert finish(*options, "--cache", "alone", "--out", "alone.out")[0] == 0
    before = set(workers())
    program = start(*options, "--cache", "shared", "--out", "shared.out", "--ray", "local")
    killed = None
    while program.poll() is None:
        own = set(workers()) - before
        if killed is None and own:
            killed = min(own)
            os.kill(killed, signal.SIGKILL)
        time.sleep(0.05)
    _, message = program.communicate(timeout=300)
    assert program.returncode == 0, message
    assert killed is not None
    assert Path("shared.out").read_bytes() == Path("alone.out").read_bytes()
