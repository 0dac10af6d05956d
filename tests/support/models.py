"""Language models with chance weights."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lm.checkpoint import save_model
from lm.model import Config, DocumentLM
from lm.parts import options_of
from lm.rows import Rows
from lm.training.optimisers import sparse_parameters
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO, Zoo


def enlarged(model: DocumentLM, factor: float = 3.0) -> DocumentLM:
    """The model, all of its weights multiplied: so large that contexts matter.

    Tables of hashed features, which are zero, get numbers of their own.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
        for table in sparse_parameters(model):
            table.copy_(torch.linspace(-1, 1, len(table)))
    return model


def config_of(
    name: str, vocabulary: int, embed: int, hidden: int, *, zoo: Zoo = ZOO, **others: Any
) -> Config:
    """A configuration with these values wherever the composition leaves a choice.

    Tables of hashed features are small, so that pairs share slots; there are few topics.
    """
    composition = zoo[name]
    if composition.fixed:
        others["head"] = None
    shape = {"vocabulary": vocabulary, "embed": embed, "hidden": hidden, **others}
    config = Config(name, **composition.adapted(shape))
    taken, size = options_of(config, composition), 2 * vocabulary
    names = ("hash_size", "topics_number", "thought")
    hashed, topics, thought = (size if name in taken else None for name in names)
    return replace(config, hash_size=hashed, topics_number=topics, thought=thought)


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
        config = config_of(name, len(vocabulary), embed, hidden)
        model = enlarged(DocumentLM.seeded(config, seed))
        save_model(folder, model, vocabulary, {"oov_rate": oov_rate})
