"""Language models with chance weights."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from lm.checkpoint import save_model
from lm.model import Config, DocumentLM
from lm.rows import Rows
from lm.vocabulary import Vocabulary


def enlarged(model: DocumentLM, factor: float = 3.0) -> DocumentLM:
    """The model, all of its weights multiplied: so large that contexts matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model


def without_padding(contexts: Rows) -> list[Tensor]:
    """Numbers of the contexts, row by row, without the zeros to which memories are padded."""
    rows = (row for tensor in contexts.tensors for row in tensor)
    return [row[row.flatten(1).any(dim=1)] if row.ndim > 1 else row[row != 0] for row in rows]


def save_models(
    folders: Mapping[str, Path], words: Iterable[str], embed: int, hidden: int, *, oov_rate: float
) -> None:
    """Write a model of each name, over these words, into its folder."""
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    for seed, (name, folder) in enumerate(folders.items()):
        model = enlarged(DocumentLM.seeded(Config(name, len(vocabulary), embed, hidden), seed))
        save_model(folder, model, vocabulary, {"oov_rate": oov_rate})
