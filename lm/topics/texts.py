"""The texts from which topics are learned: stretches of documents as counts of words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.vocabulary import SPECIAL

STRETCH = 10  # sentences: single ones have too few words to learn topics from
MOST_STRETCHES = 50_000  # drawn from longer texts
COMMON = 0.1  # share of the stretches from which on a word is too common to have a topic
RARE = 2  # stretches that a word is in, at least


def counts_of(corpus: Corpus, words: int, seed: int) -> tuple[NDArray[np.int64], Any]:
    """Ids (V′,) of the words that may have a topic, ascending, and their counts (M, V′), CSR.

    A row is a stretch of up to `STRETCH` sentences of one document. Words that are too common
    or too rare are left out, unless nothing remains; `<unk>` always is. O(words) time.
    """
    from scipy.sparse import csr_matrix

    spans = pairwise(corpus.documents.tolist())
    begins = np.concatenate([np.arange(a, b, STRETCH) for a, b in spans])
    bounds = corpus.sentences[np.append(begins, corpus.n_sentences)]
    rows = np.repeat(np.arange(len(begins)), np.diff(bounds))
    ones = np.ones(len(rows))
    counts = csr_matrix((ones, (rows, corpus.tokens)), shape=(len(begins), words))
    if len(begins) > MOST_STRETCHES:
        rng = np.random.default_rng(seed)
        counts = counts[np.sort(rng.permutation(len(begins))[:MOST_STRETCHES])]
    present = counts.astype(bool).sum(axis=0).A1
    present[: len(SPECIAL)] = 0
    kept = np.flatnonzero((present >= RARE) & (present <= COMMON * counts.shape[0]))
    if not len(kept):
        kept = np.flatnonzero(present)
    counts = counts[:, kept]
    return kept, counts[np.flatnonzero(counts.sum(axis=1).A1)]
