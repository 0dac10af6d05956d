"""What a model prefers: an answer to a gap, a variant of a sentence, an order of sentences.

The order of sentences is the discrimination task of Barzilay & Lapata (2008),
https://aclanthology.org/J08-1001, as Lin et al. (2015), §6.1, and Ji et al. (2016), §4.2, give it
to language models; blocks of passages are those of Ghosh et al. (2016), §4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from math import comb

import numpy as np
import torch
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.evaluation import perplexity
from lm.folders import SavedModel
from lm.model import DocumentLM
from lm.reading import contexts_after, entered
from lm.scoring import LogProbs, ScoringEngine, after
from lm.side_information import SideText
from lm.trie import Candidates

TOGETHER = 128  # items scored at once
Sentence = Sequence[int]  # of ids
Document = Sequence[Sentence]
TOKENS = 1 << 20  # words and sentences held at once, unless a document has more
STREAMS = 64  # documents read side by side
Orders = NDArray[np.int64]


def scores_in_contexts(
    engine: ScoringEngine,
    variants: Sequence[Sequence[Sentence]],
    contexts: Sequence[Sequence[Document]],
    sources: Sequence[Sequence[Document]] | None = None,
) -> Iterator[LogProbs]:
    """Scores (C, K) of each item's K variants after its C contexts, in nats, `</s>` included.

    contexts: C texts of ids for each item, `()` for none. sources: of a model that reads them, the
    source sentences of each context, and last that of the item. Contexts that the model cannot tell
    apart are read once, so that scores after them have equal bits. Any model. Errors: LogProbError,
    MemoryError.
    """
    for begin in range(0, len(variants), TOGETHER):
        items = slice(begin, begin + TOGETHER)
        keys = [[context_key(engine.model, text) for text in texts] for texts in contexts[items]]
        if sources is not None:
            last = -1 if engine.model.context.alone else None  # sources that scores depend on
            keys = [
                [(key, tuple(map(tuple, text[last:]))) for key, text in zip(*pair, strict=True)]
                for pair in zip(keys, sources[items], strict=True)
            ]
        texts = dict(zip(chain(*keys), chain(*contexts[items]), strict=True))
        if sources is None:
            rows = contexts_after(engine.model, Corpus.of([*texts.values()]))
        else:
            beside = dict(zip(chain(*keys), chain(*sources[items]), strict=True))
            columns = Corpus.of([*beside.values()])
            side = {"source": SideText(columns.tokens, columns.sentences)}
            corpus = replace(Corpus.of([[*text, ()] for text in texts.values()]), side=side)
            rows = contexts_after(engine.model, corpus, unread=1)
            rows = entered(engine.model, corpus, corpus.documents[1:] - 1, rows)
        number = {key: n for n, key in enumerate(texts)}
        requests, places = [], []
        for candidates, of_item in zip(variants[items], keys, strict=True):
            chosen, place = np.unique([number[key] for key in of_item], return_inverse=True)
            index = torch.from_numpy(chosen).to(rows.device)
            requests.append((Candidates.of([candidates]), rows.take(index)))
            places.append(place)
        answers = after(engine, requests)
        yield from (scores[place] for (scores, _), place in zip(answers, places, strict=True))


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
) -> LogProbs:
    """Scores (C, K) of K sentences of a corpus, each after C contexts of its sentences, in nats.

    contexts: indices of the sentences of each, none for the beginning of a document. Side
    information is that of the corpus. O(C · K) sentences are scored. Errors: LogProbError,
    MemoryError.
    """
    rows = contexts_after(engine.model, corpus.rearranged(contexts))
    requests = []
    for candidate in candidates.tolist():
        begin, end = corpus.sentences[candidate : candidate + 2].tolist()
        contexts_of_it = entered(engine.model, corpus, np.full(len(rows), candidate), rows)
        requests.append((Candidates.of([[corpus.tokens[begin:end].tolist()]]), contexts_of_it))
    return np.concatenate([scores for scores, _ in after(engine, requests)], axis=1)


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
    orders = {labels.tobytes(): np.arange(len(labels))}
    while len(orders) <= wanted:
        order = rng.permutation(len(labels))
        orders.setdefault(labels[order].tobytes(), order)
    return np.array([*orders.values()], dtype=np.int64)[1:]


def log_probs_of_orders(
    saved: SavedModel, corpus: Corpus, orders: Mapping[int, Orders], *, means: bool = False
) -> Iterator[NDArray[np.float64]]:
    """Log p (1 + P,) of documents as they are, and with their sentences in P other orders.

    corpus: in the model's ids, but not yet in its reading order; orders: (P, n) by number of the
    document. means: of a model of bags of words, a sentence counts as the mean over its words, by
    which such models are trained (Lin et al. 2015, eq. 9). Normalised exactly, in nats, float32
    sums of a word in float64; equal for all orders if the model is of order 0.
    O((1 + P) words · (H² + V R)) time; `TOKENS` words are in memory. LogProbError for NaN.
    """
    alike = saved.model.order == 0
    read = {d: permuted[:0] for d, permuted in orders.items()} if alike else orders
    texts = map(saved.in_reading_order, _texts(corpus, read))
    figures = (perplexity(saved.model, t, per_document=True, streams=STREAMS) for t in texts)
    documents = (document for of_text in figures for document in of_text.documents or ())
    nats = (document.sentence_means if means else document.nats for document in documents)
    for d, permuted in read.items():
        log_probs = -np.fromiter(islice(nats, 1 + len(permuted)), dtype=np.float64)
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
    for d, permuted in orders.items():
        first, last = corpus.documents[d : d + 2].tolist()
        each = int(corpus.sentences[last] - corpus.sentences[first]) + last - first
        for order in chain([np.arange(last - first)], permuted):
            if held and size + each > TOKENS:
                yield corpus.rearranged(held)
                held, size = [], 0
            held.append(first + order)
            size += each
    if held:
        yield corpus.rearranged(held)


# Passages, and blocks of them whose last sentences are candidates of each other


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences first..last of the text, in a document; topic: of the last, where it is known."""

    document: int
    first: int
    last: int
    topic: int | None = None


Block = Sequence[Passage]


def separate(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` blocks of random passages from `size` documents, fullest first (§4.4)."""
    left: dict[int, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        left.setdefault(passages[k].document, []).append(passages[k])
    blocks: list[Block] = []
    while len(left) >= size and len(blocks) < most:
        shuffled = [list(left)[k] for k in rng.permutation(len(left)).tolist()]
        chosen = sorted(shuffled, key=lambda d: -len(left[d]))[:size]
        blocks.append([left[d].pop() for d in chosen])
        left = {d: remaining for d, remaining in left.items() if remaining}
    return blocks


def consecutive(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` random blocks of passages that follow each other, also across documents."""
    blocks = _dealt(passages, size)
    return [blocks[b] for b in sorted(rng.permutation(len(blocks))[:most].tolist())]


def of_one_topic(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` random blocks of passages whose last sentences have the same topic (§4.4)."""
    of_topics: dict[int | None, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        of_topics.setdefault(passages[k].topic, []).append(passages[k])
    blocks = [block for of_topic in of_topics.values() for block in _dealt(of_topic, size)]
    return [blocks[b] for b in rng.permutation(len(blocks))[:most].tolist()]


def _dealt(passages: Block, size: int) -> list[Block]:
    """Blocks of passages in their order, without a rest that fills none."""
    return [passages[i : i + size] for i in range(0, len(passages) - size + 1, size)]


BLOCKS = {"separate": separate, "consecutive": consecutive, "same-topic": of_one_topic}
