"""What several test files need: one thread, a folder of files, and tiny language models."""

import itertools
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import settings
from support.world import SOUND, World

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tensors so small that threads wait for each other
# a shell has what runs in the background ignore SIGINT, and so would the runs that tests interrupt
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# of each law; tests that need more say so
settings.register_profile("suite", max_examples=30, deadline=None)
settings.load_profile("suite")

NUMBERS = itertools.count()


def folder(factory: pytest.TempPathFactory) -> Path:
    """A new one; for its own, pytest looks at the names of all others, which takes 3 ms."""
    path = factory.getbasetemp() / str(next(NUMBERS))
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory)


@pytest.fixture(autouse=True)
def no_scores_of_before(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test begins with an empty score cache of its own."""
    monkeypatch.setenv("RERANK_CACHE", str(folder(tmp_path_factory)))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """An empty folder, from now on the current one, with the files of a sound run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut in these tests
    result = World(tmp_path)
    for name, content in SOUND.items():
        result.write(name, content)
    return result


@pytest.fixture
def drawn(world: World) -> World:
    """Lists whose better candidates have, on the whole, higher scores."""
    world.draw()
    return world


class Folders(dict[str, Path]):
    """By published name, a folder of a tiny model with drawn weights, written when asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __missing__(self, name: str) -> Path:
        from support.models import OF_TEXT_ALONE, drawn

        self[name] = self.root / name
        self[name].mkdir()
        for file, content in drawn(name, OF_TEXT_ALONE.index(name))[1].items():
            (self[name] / file).write_bytes(content)
        return self[name]


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return Folders(tmp_path_factory.mktemp("models"))
