"""Language models with chance weights."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lm.checkpoint import save_model
from lm.model import Config, DocumentLM, options_of, sparse_parameters
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO, Composition, Zoo


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

    Tables of hashed features are small, so that pairs share slots.
    """
    composition = zoo[name]
    embed = hidden if composition.one_size else embed
    if composition.only_head:
        others["head"] = None
    config = Config(name, vocabulary, embed, hidden, **{**others, **_own_choices(composition)})
    hashed = "hash_size" in options_of(config, composition)
    return replace(config, hash_size=2 * vocabulary if hashed else None)


def _own_choices(composition: Composition) -> dict[str, None]:
    """Fields that a composition decides."""
    decided = {"recurrence": composition.recurrence, "tied": composition.tied}
    return {name: None for name, value in decided.items() if value is not None}


def save_models(
    folders: Mapping[str, Path], words: Iterable[str], embed: int, hidden: int, *, oov_rate: float
) -> None:
    """Write a model of each name, over these words, into its folder."""
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    for seed, (name, folder) in enumerate(folders.items()):
        config = config_of(name, len(vocabulary), embed, hidden)
        model = enlarged(DocumentLM.seeded(config, seed))
        save_model(folder, model, vocabulary, {"oov_rate": oov_rate})
