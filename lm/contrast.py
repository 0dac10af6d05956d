"""Scores of variants of a sentence in several contexts: which variant fits, and where."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.histories import contexts_after, entered
from lm.model import DocumentLM
from lm.scoring import Scores, after
from lm.trie import Candidates

TOGETHER = 128  # items scored at once
Sentence = Sequence[int]
Document = Sequence[Sentence]
Variants = Sequence[Sentence]


def scores_in_contexts(
    engine: ScoringEngine,
    variants: Sequence[Sequence[Sentence]],
    contexts: Sequence[Sequence[Document]],
) -> Iterator[Scores]:
    """Scores (C, K) of each item's K variants after its C contexts, in nats, `</s>` included.

    contexts: C texts of ids for each item, `()` for none. Contexts that the model cannot tell
    apart are read once, and variants are scored once after them: their scores have equal bits.
    `TOGETHER` items are scored at once. Any model. Errors: ScoreError, MemoryError.
    """
    for begin in range(0, len(variants), TOGETHER):
        items = slice(begin, begin + TOGETHER)
        yield from _scores(engine, variants[items], contexts[items])


def _scores(
    engine: ScoringEngine,
    variants: Sequence[Sequence[Sentence]],
    contexts: Sequence[Sequence[Document]],
) -> list[Scores]:
    keys = [[context_key(engine.model, text) for text in texts] for texts in contexts]
    texts = {
        key: text
        for own, given in zip(keys, contexts, strict=True)
        for key, text in zip(own, given, strict=True)
    }
    number = {key: n for n, key in enumerate(texts)}
    rows = contexts_after(engine.model, Corpus.of([*texts.values()]))
    requests, places = [], []
    for candidates, own in zip(variants, keys, strict=True):
        chosen, place = np.unique([number[key] for key in own], return_inverse=True)
        index = torch.from_numpy(chosen).to(rows.device)
        requests.append((Candidates.of([candidates]), rows.take(index)))
        places.append(place)
    found = after(engine, requests)
    return [scores[place] for (scores, _), place in zip(found, places, strict=True)]


def context_key(model: DocumentLM, text: Document) -> Hashable:
    """A key that is equal for texts after which the model gives equal scores."""
    order = model.order
    last = text if order is None else text[max(0, len(text) - order) :]
    keys = [model.context.sentence_key(np.asarray(words, dtype=np.int32)) for words in last]
    return tuple(keys) if order is None else model.context.history_key(keys)


def scores_of_followers(
    engine: ScoringEngine,
    corpus: Corpus,
    contexts: Sequence[NDArray[np.int64]],
    candidates: NDArray[np.int64],
) -> Scores:
    """Scores (C, K) of K sentences of a corpus, each after C contexts of its sentences, in nats.

    contexts: indices of the sentences of each, none for the beginning of a document. Candidates
    and contexts are given their own side information, if the model needs any. O(C · K) sentences
    are scored. Errors: ScoreError, MemoryError.
    """
    rows = contexts_after(engine.model, corpus.rearranged(contexts))
    requests = []
    for candidate in candidates.tolist():
        begin, end = corpus.sentences[candidate : candidate + 2].tolist()
        own = entered(engine.model, corpus, np.full(len(rows), candidate), rows)
        requests.append((Candidates.of([[corpus.tokens[begin:end].tolist()]]), own))
    return np.concatenate([scores for scores, _ in after(engine, requests)], axis=1)
