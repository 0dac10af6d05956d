"""Models of the golden outputs."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of their folders."""
    from support.golden import save_models

    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return folder
