"""The predictors of topics of Ghosh et al. 2016, §5, in scalar arithmetic.

Each function gives log p of every topic after each sentence of a document, in nats; topics are
numbers from 0. `known` is the topic that enters the cells while a sentence is read, None where
there is none. Parameters: X and T, rows of embeddings of words and topics, None where they are no
input; W_t of thought vectors, None without; g, a `Stack` of cells; W and b of the softmax over
topics; W_o and b_o of that over words; layers, pairs of W and b.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from support.scalar.algebra import Vector, log_softmax, plus, product, tanh
from support.scalar.cells import Parameters, State, top

from lm.vocabulary import END, START

Sentences: TypeAlias = Sequence[Sequence[int]]
Known: TypeAlias = Sequence[int | None]


def lstm(p: Parameters, document: Sentences, known: Known, *, rolled_up: bool) -> list[Vector]:
    """§5.1: p(T_{i+1} | s_i, T_i); eq. 3: cells read [x_t T], in fig. 8 a thought vector, too."""
    return [log_probs for log_probs, _ in _lstm(p, document, known, rolled_up=rolled_up)]


def lstm_word_nats(
    p: Parameters, document: Sentences, known: Known, *, rolled_up: bool
) -> list[float]:
    """−log p of the words and of `</s>` of each sentence, by the softmax of a joint target."""
    found = []
    read = _lstm(p, document, known, rolled_up=rolled_up)
    for (_, hidden), words in zip(read, document, strict=True):
        at = zip(hidden, [*words, END], strict=True)
        found.append(-sum(log_softmax(plus(product(p["W_o"], h), p["b_o"]))[w] for h, w in at))
    return found


def _lstm(
    p: Parameters, document: Sentences, known: Known, *, rolled_up: bool
) -> list[tuple[Vector, list[Vector]]]:
    """log p of the topics after each sentence, and its hidden states."""
    found = []
    before: list[State] | None = None
    for words, topic in zip(document, known, strict=True):
        beside = _topic(p, topic)
        if p["W_t"] is not None:
            beside = beside + _thought(p, before)
        read = [[]] if p["X"] is None else [p["X"][word] for word in [START, *words]]
        inputs = [x + beside for x in read]
        states = p["g"].read(inputs, before if rolled_up else None)
        before = states[-1]
        log_probs = log_softmax(plus(product(p["W"], top(before)), p["b"]))
        found.append((log_probs, [top(state) for state in states]))
    return found


def bow_dnn(p: Parameters, document: Sentences, known: Known) -> list[Vector]:
    """§5.3: tanh layers over the mean of the embeddings of a sentence's words."""
    found = []
    for words, topic in zip(document, known, strict=True):
        h: Vector = []
        if p["X"] is not None:
            total = [0.0] * len(p["X"][0])
            for word in words:
                total = plus(total, p["X"][word])
            h = [entry / max(1, len(words)) for entry in total]
        h = h + _topic(p, topic)
        for weight, bias in p["layers"]:
            h = tanh(plus(product(weight, h), bias))
        found.append(log_softmax(plus(product(p["W"], h), p["b"])))
    return found


def _topic(p: Parameters, topic: int | None) -> Vector:
    """T, if it is an input; 0 where there is no topic."""
    if p["T"] is None:
        return []
    own: Any = [0.0] * len(p["T"][0]) if topic is None else p["T"][topic]
    return list(own)


def _thought(p: Parameters, before: list[State] | None) -> Vector:
    """tanh(W_t h) of the previous sentence's last hidden state, 0 before the first one."""
    return tanh(product(p["W_t"], top(before))) if before else [0.0] * len(p["W_t"])
