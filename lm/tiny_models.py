"""Tiny models of ten words, a document for them, and sentences read word by word: for checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from lm.composition import Composition, load
from lm.corpus import Corpus
from lm.model import Config, DocumentLM, options_of
from lm.scoring import ScoringEngine, after
from lm.sentences import Positions, PositionStates, ReadSentences, Rows
from lm.side_information import (
    KINDS,
    LABELS,
    NUMBERS,
    SentenceNumbers,
    SideText,
    SideTexts,
    information_of,
)
from lm.training.optimisers import sparse_parameters
from lm.trie import Candidates
from lm.vocabulary import SPECIAL, START

Sentence = list[int]


DOCUMENT: tuple[Sentence, ...] = ([3, 4, 5], [6, 7], [8, 3, 9, 4], [5, 6, 8], [9, 7, 3], [4, 8])


OTHER: Sentence = [4, 9, 9, 3, 6]


OTHERS: tuple[Sentence, ...] = (OTHER, [5] * 9, [8] * 9)


SENTENCES: list[Sentence] = [[3, 4, 5], [], [8, 3, 9, 4, 0], [9, 7], [6]]


def tiny_model(
    composition: Composition,
    *,
    recurrence: str | None = None,
    layers: int = 1,
    tied: bool | None = None,
    scale: float = 2.0,
) -> DocumentLM:
    """A model of ten words, whose weights are large enough for contexts to matter."""
    embed = 8 if composition.one_size else 6
    config = Config("composition", 10, embed, 8, recurrence, layers, tied)
    hashed = "hash_size" in options_of(config, composition)
    config = replace(config, hash_size=13 if hashed else None)  # with collisions
    kinds = information_of(load(composition.context))
    sizes: dict[str, Any] = {KINDS[kind]: 8 for kind in kinds if kind in KINDS}
    config = replace(config, **sizes)
    model = DocumentLM.seeded(config, 3, {"composition": composition}).eval()
    sparse = {id(parameter) for parameter in sparse_parameters(model)}
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            if id(parameter) in sparse:  # zero at first
                parameter.uniform_(-0.5, 0.5, generator=generator)
            else:
                parameter.mul_(scale)
    return model


def side_of(model: DocumentLM, sentences: Sequence[int]) -> SideTexts:
    """Side information of sentences by number, words that follow from the number.

    Three words each, or one of a kind whose sentences are labels; of numbers of sentences, one of
    these, but none for every fourth.
    """
    found: dict[str, SideText] = {}
    for kind in information_of(model.context):
        if kind in NUMBERS:
            numbers = np.array(sentences)
            numbers = np.where(numbers % 4 == 3, -1, (numbers + 2) % len(numbers))
            found[kind] = SentenceNumbers.of(numbers)
            continue
        words = np.arange(1 if kind in LABELS else 3)
        tokens = [len(SPECIAL) + (7 * n + words * (words + 1)) % 5 for n in sentences]
        offsets = np.arange(len(tokens) + 1) * len(words)
        found[kind] = SideText(np.array([*chain(*tokens)], np.int32), offsets)
    return found


def entered(model: DocumentLM, contexts: Rows, number: int, *, other: str = "") -> Rows:
    """Contexts in which sentence `number` of a document is read, given its side information.

    other: a kind of which that of another sentence is given.
    """
    kinds = model.context.side_information
    if not kinds:
        return contexts
    device = contexts.device
    numbers = (np.full(len(contexts), number + 3 * (kind == other)) for kind in kinds)
    side = [
        beside(model).side_rows([kind], chosen, device).tensors[0]
        for kind, chosen in zip(kinds, numbers, strict=True)
    ]
    return model.context.enter(contexts, model.context.encoded(Rows.of(*side)))


def beside(model: DocumentLM) -> Corpus:
    """A document of twelve sentences of one word each, with side information."""
    sentences = [[len(SPECIAL) + n % 7] for n in range(12)]
    return corpus_of(sentences, side_of(model, range(12)))


def read_by_words(model: DocumentLM, sentence: Sequence[int], context: Rows) -> ReadSentences:
    """One sentence read word by word in one context: the definition of all other ways."""
    inputs = model.word_inputs()
    states = [model.start(context, inputs)]
    for word in sentence:
        states.append(model.step(states[-1], torch.tensor([word]), inputs))
    words, place = torch.tensor([START, *sentence]), torch.arange(len(sentence) + 1)
    positions = Positions(words, place - 1, torch.zeros_like(place), place[-1:], len(sentence))
    return ReadSentences.of(positions, PositionStates.cat([model.kept(s) for s in states]))


@torch.no_grad()
def context_after(model: DocumentLM, document: Sequence[Sentence]) -> Rows:
    """The context after a document's sentences, in which the next one is read."""
    context = entered(model, model.context.start(1), 0)
    for t, sentence in enumerate(document, 1):
        summary = model.context.summary(read_by_words(model, sentence, context))
        context = entered(model, model.context.advance(context, summary), t)
    return context


def last_score(model: DocumentLM, document: Sequence[Sentence]) -> float:
    """Score of the last sentence after the others."""
    request = Candidates.of([[document[-1]]]), context_after(model, document[:-1])
    return float(after(ScoringEngine.of(model), [request])[0][0][0, 0])


def corpus_of(sentences: Sequence[Sentence], side: SideTexts | None = None) -> Corpus:
    """One document."""
    offsets, ends = np.cumsum([0, *map(len, sentences)]), np.array([0, len(sentences)])
    words = [word for sentence in sentences for word in sentence]
    return Corpus(np.array(words, np.int32), offsets, ends, side or {})
