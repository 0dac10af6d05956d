"""What several test files need: one thread, and tiny language models with chance weights."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tensors so small that threads wait for each other

WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns", "no", "one")


@pytest.fixture(autouse=True)
def no_scores_of_before(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test begins with an empty score cache of its own."""
    monkeypatch.setenv("RERANK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folder of a tiny model of each published name, over twelve words.

    Its weights are large enough that contexts matter.
    """
    import torch

    from lm.checkpoint import save_model
    from lm.model import Config, DocumentLM
    from lm.vocabulary import Vocabulary
    from lm.zoo import ZOO

    vocabulary = Vocabulary(tuple(word.encode() for word in WORDS))
    folders = {name: tmp_path_factory.mktemp(name) for name in ZOO}
    for seed, (name, folder) in enumerate(folders.items()):
        model = DocumentLM.seeded(Config(name, len(vocabulary), 6, 8), seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3.0)
        save_model(folder, model, vocabulary, {"oov_rate": 0.25})
    return folders
