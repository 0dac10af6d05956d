"""Log-probabilities of documents whose sentences are in another order.

The discrimination task of Barzilay & Lapata (2008), https://aclanthology.org/J08-1001, as Lin et
al. (2015), §6.1, and Ji et al. (2016), §4.2, give it to language models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from lm.checkpoint import SavedModel
from lm.corpus import Corpus
from lm.evaluation import perplexity_by_document

TOKENS = 1 << 20  # words and sentences held at once, or one document
STREAMS = 64  # documents read side by side
Orders = NDArray[np.int64]


def distinct_orders(corpus: Corpus, document: int, most: int, rng: np.random.Generator) -> Orders:
    """Random orders (P, n) of a document's n sentences, P ≤ `most`, each with another text.

    None has the text of the document itself; P is smaller where fewer texts exist. Each set of P
    texts is equally likely. Expected time O(P (n + log P)).
    """
    first, last = corpus.documents[document : document + 2].tolist()
    offsets = corpus.sentences[first : last + 1].tolist()
    texts = [corpus.tokens[a:b].tobytes() for a, b in pairwise(offsets)]
    numbers = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    labels = np.array([numbers[text] for text in texts], dtype=np.int32)
    wanted = min(most, _number_of_texts(labels, most + 1) - 1)
    found: list[Orders] = []
    seen = {labels.tobytes()}
    while len(found) < wanted:
        order = rng.permutation(len(labels))
        text = labels[order].tobytes()
        if text not in seen:
            seen.add(text)
            found.append(order)
    return np.array(found, dtype=np.int64).reshape(wanted, len(labels))


def log_probs_of_orders(
    saved: SavedModel, corpus: Corpus, orders: Mapping[int, Orders]
) -> Iterator[NDArray[np.float64]]:
    """Log p (1 + P,) of documents as they are, and with their sentences in P other orders.

    corpus: in the model's ids, but not yet in its reading order; orders: (P, n) by number of the
    document. Normalised exactly, in nats, float32 sums of a word in float64; equal for all orders
    if the model is of order 0. O((1 + P) words · (H² + V R)) time; `TOKENS` words are in memory.
    ScoreError for a model that returns NaN.
    """
    alike = saved.model.order == 0
    read = {d: own[:0] for d, own in orders.items()} if alike else orders
    found = chain.from_iterable(_log_probs(saved, text) for text in _texts(corpus, read))
    for d, own in read.items():
        log_probs = np.fromiter(islice(found, 1 + len(own)), dtype=np.float64)
        yield np.repeat(log_probs, 1 + len(orders[d])) if alike else log_probs


def _number_of_texts(labels: NDArray[np.int32], most: int) -> int:
    """Number of distinct orders of labels (n,), n! / Π n_i!, or `most` if there are more."""
    number, placed = 1, 0
    for count in Counter(labels.tolist()).values():
        placed += count
        number *= comb(placed, count)
        if number >= most:
            return most
    return number


def _texts(corpus: Corpus, orders: Mapping[int, Orders]) -> Iterator[Corpus]:
    """Documents, each followed by its other orders, `TOKENS` words and sentences at a time."""
    held: list[Orders] = []
    size = 0
    for d, own in orders.items():
        first, last = corpus.documents[d : d + 2].tolist()
        each = int(corpus.sentences[last] - corpus.sentences[first]) + last - first
        for order in chain([np.arange(last - first)], own):
            if held and size + each > TOKENS:
                yield corpus.rearranged(held)
                held, size = [], 0
            held.append(first + order)
            size += each
    if held:
        yield corpus.rearranged(held)


def _log_probs(saved: SavedModel, text: Corpus) -> Iterator[float]:
    """Log p of each document of a text."""
    found = perplexity_by_document(saved.model, saved.in_reading_order(text), streams=STREAMS)
    return (-document.nats for document in found.documents or ())
