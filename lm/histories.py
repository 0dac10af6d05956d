"""Contexts after texts that are only read: no word of them is predicted."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.rows import Rows


@torch.no_grad()
def contexts_after(model: DocumentLM, corpus: Corpus) -> Rows:
    """Contexts (D rows) after the last sentence of each document, which may have none.

    The documents are read side by side, a sentence of each at a time. O(words · H²) time; the
    states of one sentence of each document are in memory.
    """
    contexts = model.context.start(corpus.n_documents)
    begins, lengths = corpus.documents[:-1], np.diff(corpus.documents)
    for t in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > t)
        index = torch.from_numpy(longer).to(contexts.device)
        contexts = contexts.put(
            index, read_on(model, corpus, begins[longer] + t, contexts.take(index))
        )
    return contexts


@torch.no_grad()
def read_on(
    model: DocumentLM, corpus: Corpus, sentences: NDArray[np.int64], contexts: Rows
) -> Rows:
    """Contexts (B rows) after one more sentence each: (B,) indices of sentences of a corpus."""
    batch = PackedBatch.of(corpus, sentences, contexts.device)
    contexts = entered(model, corpus, sentences, contexts)
    read = model.unroll(batch, contexts)
    return model.context.advance(contexts, model.context.summary(read))


@torch.no_grad()
def entered(
    model: DocumentLM, corpus: Corpus, sentences: NDArray[np.int64], contexts: Rows
) -> Rows:
    """Contexts (B rows) in which (B,) sentences are read, given side information if any is needed.

    The corpus has that of its sentences.
    """
    kinds = model.context.side_information
    if not kinds:
        return contexts
    side = corpus.side_rows(kinds, sentences, contexts.device)
    return model.context.enter(contexts, model.context.encoded(side))
