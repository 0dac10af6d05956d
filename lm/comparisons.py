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

from lm.checkpoint import SavedModel
from lm.corpus import Corpus
from lm.evaluation import perplexity_by_document
from lm.model import DocumentLM
from lm.reading import contexts_after, entered
from lm.scoring import LogProbs, ScoringEngine, after
from lm.sentences import Rows
from lm.side_information import SideText
from lm.trie import Candidates

TOGETHER = 128  # items scored at once
Sentence = Sequence[int]  # of ids
Document = Sequence[Sentence]
TOKENS = 1 << 20  # words and sentences held at once, or one document
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
    apart are read once, and variants are scored once after them: their scores have equal bits.
    `TOGETHER` items are scored at once. Any model. Errors: LogProbError, MemoryError.
    """
    for begin in range(0, len(variants), TOGETHER):
        items = slice(begin, begin + TOGETHER)
        keys = [[context_key(engine.model, text) for text in own] for own in contexts[items]]
        texts: dict[Hashable, Document]
        if sources is None:
            texts = dict(zip(chain(*keys), chain(*contexts[items]), strict=True))
            rows = contexts_after(engine.model, Corpus.of([*texts.values()]))
        else:
            keys = [
                [(key, _source_key(engine.model, source)) for key, source in zip(*own, strict=True)]
                for own in zip(keys, sources[items], strict=True)
            ]
            texts = dict(zip(chain(*keys), chain(*contexts[items]), strict=True))
            beside = dict(zip(chain(*keys), chain(*sources[items]), strict=True))
            rows = _contexts_of_translations(engine.model, [*texts.values()], [*beside.values()])
        number = {key: n for n, key in enumerate(texts)}
        requests, places = [], []
        for candidates, own in zip(variants[items], keys, strict=True):
            chosen, place = np.unique([number[key] for key in own], return_inverse=True)
            index = torch.from_numpy(chosen).to(rows.device)
            requests.append((Candidates.of([candidates]), rows.take(index)))
            places.append(place)
        found = after(engine, requests)
        yield from (scores[place] for (scores, _), place in zip(found, places, strict=True))


def _source_key(model: DocumentLM, sources: Document) -> Hashable:
    """A key that is equal for source sentences after which the model gives equal scores."""
    known = sources[-1:] if model.context.alone else sources
    return tuple(map(tuple, known))


def _contexts_of_translations(
    model: DocumentLM, texts: Sequence[Document], sources: Sequence[Document]
) -> Rows:
    """Contexts (D rows) after each text, in which a sentence is read, whose source is the last."""
    corpus = Corpus.of([[*text, ()] for text in texts])
    beside = Corpus.of(sources)
    side = {"source": SideText(beside.tokens, beside.sentences)}
    corpus = replace(corpus, side=side)
    return entered(model, corpus, corpus.documents[1:] - 1, contexts_after(model, corpus, unread=1))


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

    contexts: indices of the sentences of each, none for the beginning of a document. Candidates
    and contexts are given their own side information, if the model needs any. O(C · K) sentences
    are scored. Errors: LogProbError, MemoryError.
    """
    rows = contexts_after(engine.model, corpus.rearranged(contexts))
    requests = []
    for candidate in candidates.tolist():
        begin, end = corpus.sentences[candidate : candidate + 2].tolist()
        own = entered(engine.model, corpus, np.full(len(rows), candidate), rows)
        requests.append((Candidates.of([[corpus.tokens[begin:end].tolist()]]), own))
    return np.concatenate([scores for scores, _ in after(engine, requests)], axis=1)


def answer_log_probs(
    engine: ScoringEngine, document: Document, query: tuple[Sentence, Sentence], answers: Sentence
) -> NDArray[np.float64]:
    """Log-probabilities (A,) of answers to be the missing word of a query, in nats.

    Eq. 12 of Wang & Cho 2015, arXiv:1511.03729, §4.5: p(q_k | q_<k, q_>k, D). As they propose, an
    unchanged language model scores the query completed with each possible answer, and the scores
    are normalised over the answers. document: sentences of ids before the query; query: ids
    before and after the missing word; answers: A ids, each once.
    O(A · (words after + 1) · (H² + V R)) time, as the paper warns. Errors: LogProbError,
    MemoryError.
    """
    left, right = (list(ids) for ids in query)
    context = engine.model.context.start(1).detach()
    for sentence in document:
        ((_, summary),) = after(engine, [(Candidates.of([[sentence]]), context)])
        with engine.backend.inference():
            context = engine.model.context.advance(context, summary)
    words = len(left) + 1 + len(right)
    at_once = max(1, engine.backend.tokens(engine.model.config.hidden) // words)
    parts = [answers[i : i + at_once] for i in range(0, len(answers), at_once)]
    lists = [Candidates.of([[[*left, answer, *right] for answer in part]]) for part in parts]
    scores = [s[0] for s, _ in after(engine, [(own, context) for own in lists])]
    joint = np.concatenate([np.zeros(0), *scores])
    return joint - float(np.logaddexp.reduce(joint))


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
    saved: SavedModel, corpus: Corpus, orders: Mapping[int, Orders], *, means: bool = False
) -> Iterator[NDArray[np.float64]]:
    """Log p (1 + P,) of documents as they are, and with their sentences in P other orders.

    corpus: in the model's ids, but not yet in its reading order; orders: (P, n) by number of the
    document. means: of a model of bags of words, a sentence counts as the mean over its words, by
    which such models are trained (Lin et al. 2015, eq. 9), not as their sum. Normalised exactly, in
    nats, float32 sums of a word in float64; equal for all orders if the model is of order 0.
    O((1 + P) words · (H² + V R)) time; `TOKENS` words are in memory. LogProbError for a model that
    returns NaN.
    """
    alike = saved.model.order == 0
    read = {d: own[:0] for d, own in orders.items()} if alike else orders
    texts = map(saved.in_reading_order, _texts(corpus, read))
    found = (perplexity_by_document(saved.model, text, streams=STREAMS) for text in texts)
    documents = (document for one in found for document in one.documents or ())
    nats = (document.sentence_means if means else document.nats for document in documents)
    for d, own in read.items():
        log_probs = -np.fromiter(islice(nats, 1 + len(own)), dtype=np.float64)
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


# Passages, and blocks of them whose last sentences are candidates of each other


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive sentences of a document: indices of the first and the last one in the text.

    topic: of the last sentence, where topics are known.
    """

    document: int
    first: int
    last: int
    topic: int | None = None


Block = Sequence[Passage]


def separate(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` blocks of passages from `size` different documents each.

    As in the paper, where a block has one random passage from each of 50 random paragraphs. Each
    block takes a random passage from the documents that have the most left, ties at random, which
    makes as many blocks as there can be.
    """
    left: dict[int, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        left.setdefault(passages[k].document, []).append(passages[k])
    blocks: list[Block] = []
    while len(left) >= size and len(blocks) < most:
        shuffled = [list(left)[k] for k in rng.permutation(len(left)).tolist()]
        chosen = sorted(shuffled, key=lambda d: -len(left[d]))[:size]
        blocks.append([left[d].pop() for d in chosen])
        left = {d: own for d, own in left.items() if own}
    return blocks


def consecutive(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` blocks, chosen at random, of passages that follow each other in the text.

    Candidates are about the same things, which makes the choice harder. A block may hold several
    documents.
    """
    blocks = _dealt(passages, size)
    return [blocks[b] for b in sorted(rng.permutation(len(blocks))[:most].tolist())]


def of_one_topic(passages: Block, size: int, most: int, rng: np.random.Generator) -> list[Block]:
    """At most `most` blocks, chosen at random, of passages whose last sentences have one topic.

    The second experiment of §4.4, where all candidates come from the same topic. A topic's
    passages are dealt in random order; a rest that fills no block is left out.
    """
    of_topics: dict[int | None, list[Passage]] = {}
    for k in rng.permutation(len(passages)).tolist():
        of_topics.setdefault(passages[k].topic, []).append(passages[k])
    blocks = [block for own in of_topics.values() for block in _dealt(own, size)]
    return [blocks[b] for b in rng.permutation(len(blocks))[:most].tolist()]


def _dealt(passages: Block, size: int) -> list[Block]:
    """Blocks of passages in their order, without a rest that fills none."""
    return [passages[i : i + size] for i in range(0, len(passages) - size + 1, size)]


BLOCKS = {"separate": separate, "consecutive": consecutive, "same-topic": of_one_topic}
