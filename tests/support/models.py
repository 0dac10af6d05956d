"""Language models with chance weights."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from support.world import WORDS
from torch import Tensor

from lm.checkpoint import load_model, save_model
from lm.composition import Zoo, fact, load
from lm.corpus import Corpus, PackedBatch, segments
from lm.folders import SavedModel
from lm.model import Config, DocumentLM, options_of
from lm.reading import read
from lm.sentences import Rows
from lm.side_information import KINDS, LABELS, SentenceNumbers, SideText, information_of
from lm.subwords import SubwordVocabulary
from lm.training.optimisers import sparse_parameters
from lm.vocabulary import SPECIAL, Vocabulary
from lm.zoo import ZOO

# models that read nothing beside the target text
OF_TEXT_ALONE = sorted(
    name for name in ZOO if not fact(load(ZOO[name].context), "side_information")
)


def enlarged(model: DocumentLM, factor: float = 3.0) -> DocumentLM:
    """The model, all of its weights multiplied: so large that contexts matter.

    Tables of hashed features and matrices of contexts, which are zero, get numbers of their own.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(factor)
            if name.startswith("context.") and parameter.ndim == 2 and not parameter.any():
                dice = torch.Generator().manual_seed(parameter.numel())
                parameter.copy_(2 * torch.rand(parameter.shape, generator=dice))
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
    taken = options_of(config, composition)
    own = dict.fromkeys(("hash_size", "topics_number", "thought"), 2 * vocabulary)
    own["source_words"] = vocabulary + 1
    own["relation_labels"] = own["topic_labels"] = vocabulary + 2
    sizes: dict[str, Any] = {name: n if name in taken else None for name, n in own.items()}
    return replace(config, **sizes)


def beside(corpus: Corpus) -> Corpus:
    """A corpus with side information of every kind: the sentences themselves, or first words.

    Parents are other sentences of the same document, and some of them none.
    """
    text, n = SideText(corpus.tokens, corpus.sentences), corpus.n_sentences
    labels = SideText(corpus.tokens[corpus.sentences[:-1]], np.arange(n + 1))
    side = {kind: labels if kind in LABELS else text for kind in KINDS}
    sizes = np.diff(corpus.documents)
    starts = np.repeat(corpus.documents[:-1], sizes)  # of each sentence's document
    place, size = np.arange(n) - starts, np.repeat(sizes, sizes)
    numbers = starts + (2 * place + 1) % np.maximum(size, 1)
    side["parents"] = SentenceNumbers.of(np.where(place % 3 == 1, -1, numbers))
    return replace(corpus, side=side)


def entered(model: DocumentLM, text: Corpus, context: Rows, s: int) -> Rows:
    """A context in which sentence s is read, given its side information, if the model needs any."""
    kinds = model.context.side_information
    if not kinds:
        return context
    side = text.side_rows(kinds, np.array([s]), context.device)
    return model.context.enter(context, model.context.encoded(side))


@torch.no_grad()
def nll_one_by_one(model: DocumentLM, text: Corpus) -> list[Tensor]:
    """−log p of the words and of `</s>` of each sentence, read alone after those before it."""
    result = []
    for first, stop in pairwise(text.documents.tolist()):
        context = model.context.start(1)
        for s in range(first, stop):
            context = entered(model, text, context, s)
            batch = PackedBatch.of(text, np.array([s]))
            read = model.unroll(batch, context)
            result.append(model.head.nll(model.features(read, context), batch.targets))
            context = model.context.advance(context, model.context.summary(read))
    return result


def side_vocabularies(model: DocumentLM) -> dict[str, Vocabulary]:
    """Vocabularies of the side information that a model needs, of the sizes that it says."""
    sizes = {
        kind: getattr(model.config, KINDS[kind])
        for kind in information_of(model.context)
        if kind in KINDS
    }
    return {
        kind: Vocabulary(tuple(b"%d" % n for n in range(size - len(SPECIAL))))
        for kind, size in sizes.items()
    }


@torch.no_grad()
def scores_of_sentences(saved: SavedModel, texts: Sequence[str]) -> list[float]:
    """log p of each sentence of a document, which is read as training reads it."""
    words = [saved.vocabulary.encode(one.encode().split()) for one in texts]
    text = Corpus.of([[saved.reading_order(word) for word in words]])
    (segment,) = segments(text, [0], streams=1, length=len(texts))
    reading = read(saved.model, text, segment, saved.model.context.start(1))
    nll = saved.model.head.nll(reading.features, reading.targets).double()
    zeros = torch.zeros(len(texts), dtype=torch.float64)
    found: list[float] = zeros.index_add(0, reading.sentences, -nll).tolist()
    return found


def without_padding(contexts: Rows) -> list[Tensor]:
    """Numbers of the contexts, row by row, without the zeros to which memories are padded."""
    rows = (row for tensor in contexts.tensors for row in tensor)
    return [row[row.flatten(1).any(dim=1)] if row.ndim > 1 else row[row != 0] for row in rows]


def save_models(
    folders: Mapping[str, Path],
    words: Iterable[str],
    embed: int,
    hidden: int,
    *,
    oov_rate: float,
    **others: Any,
) -> None:
    """Write a model of each name, over these words, into its folder; others: of `config_of`."""
    vocabulary = Vocabulary(tuple(word.encode() for word in words))
    for seed, (name, folder) in enumerate(folders.items()):
        config = config_of(name, len(vocabulary), embed, hidden, **others)
        model = enlarged(DocumentLM.seeded(config, seed))
        about = {"oov_rate": oov_rate}
        save_model(folder, model, vocabulary, about, side_vocabularies(model))


@cache
def drawn(name: str, seed: int = 0, **shape: Any) -> tuple[SavedModel, Mapping[str, bytes]]:
    """A model over `WORDS` with drawn weights, and the files of its folder.

    shape: of `config_of`, as `layers=2`; also `oov_rate`, which the folder states, `nan`, the
    name of a parameter that is filled with NaN, and `pieces`, whether it reads subword units.
    """
    vocabulary = Vocabulary(tuple(word.encode() for word in WORDS))
    if shape.pop("pieces", False):
        vocabulary = SubwordVocabulary.of({"▁": -2.0, "▁l": -3.0, "it": -2.5}, {}, "unigram")
    about, broken = {"oov_rate": shape.pop("oov_rate", 0.25)}, shape.pop("nan", None)
    sizes = {"embed": 6, "hidden": 8, **shape}
    model = enlarged(DocumentLM.seeded(config_of(name, len(vocabulary), **sizes), seed))
    if broken is not None:
        with torch.no_grad():
            model.get_parameter(broken).fill_(torch.nan)
    with TemporaryDirectory() as folder:
        save_model(Path(folder), model, vocabulary, about, side_vocabularies(model))
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        return load_model(Path(folder)), files
