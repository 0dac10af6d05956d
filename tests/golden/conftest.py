"""Models of the golden outputs."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed does not depend on the packages that are installed."""
    monkeypatch.setattr("rerank.commands.list_parts.find_spec", lambda package: None)


@pytest.fixture(scope="session")
def golden_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of their folders."""
    from support.golden import save_models

    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return folder
