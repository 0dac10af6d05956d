"""The contextual LSTM of Ghosh et al. 2016 (arXiv:1602.06291) in scalar arithmetic.

Each function gives log p of the words and of `</s>` of every sentence of a document, in nats.
Parameters: X, rows of word embeddings; g, a `Stack` of
`cells.peephole`; W_o and b of the softmax; T_prev, T_sent, T_para and
T_given, rows of topic embeddings; given, the rows of the sentences; W
and prior of the topic model, of which row w is None for words that do not count; W_t of
thought vectors; g_s, a `Stack` over sentences.
"""

from collections.abc import Callable
from typing import TypeAlias

from support.scalar.algebra import Vector, plus, product, tanh
from support.scalar.cells import Parameters, State, top
from support.scalar.ji import Document, Scores, Sentence, log_probs

from lm.vocabulary import START

Features: TypeAlias = Callable[[Parameters, Document, int, int], Vector]
"""T at word j of sentence i of a document: j words of it have been read."""


def topic(p: Parameters, words: Sentence) -> int:
    """1 + argmax_z prior_z + Σ W[w][z]; the first of equal ones; 0 without words that count."""
    rows = [row for word in words if (row := p["W"][word]) is not None]
    if not rows:
        return 0
    scores = [prior + sum(row[z] for row in rows) for z, prior in enumerate(p["prior"])]
    return 1 + scores.index(max(scores))


def previous_topic(p: Parameters, document: Document, i: int, j: int) -> Vector:
    """PrevSentTopic, §3.3.1: Topic(w_{i−1,0} … w_{i−1,n−1})."""
    row: Vector = p["T_prev"][topic(p, document[i - 1]) if i else 0]
    return row


def sentence_topic(p: Parameters, document: Document, i: int, j: int) -> Vector:
    """SentSegTopic: Topic(w_{i,0} … w_{i,j}), of the words up to the one that is read."""
    row: Vector = p["T_sent"][topic(p, document[i][:j])]
    return row


def paragraph_topic(p: Parameters, document: Document, i: int, j: int) -> Vector:
    """ParaSegTopic: Topic(w_{0,0} … w_{i,j})."""
    words = [word for sentence in document[:i] for word in sentence]
    row: Vector = p["T_para"][topic(p, words + document[i][:j])]
    return row


def given_topic(p: Parameters, document: Document, i: int, j: int) -> Vector:
    """T of eq. 1 by the label that a file gives sentence i; row 0 is that of `<unk>`."""
    row: Vector = p["T_given"][p["given"][i]]
    return row


TABLES: dict[Features, str] = {
    previous_topic: "T_prev",
    sentence_topic: "T_sent",
    paragraph_topic: "T_para",
}


def clstm(p: Parameters, document: Document, *features: Features, carried: bool = False) -> Scores:
    """Eq. 1 as eq. 3 writes it: the input of the cell is [x_t T]; each sentence begins anew.

    carried: where the sentences' LSTMs are one chain (§5.1, and §4.3, which reads A, B, C, D).
    """
    scores, before = [], None
    for i, words in enumerate(document):
        inputs = []
        for j, word in enumerate([START, *words]):
            T = [entry for feature in features for entry in feature(p, document, i, j)]
            inputs.append([*p["X"][word], *T])
        states = p["g"].read(inputs, before)
        scores.append(_log_probs(p, states, words))
        before = states[-1] if carried else None
    return scores


def clstm_thought(p: Parameters, document: Document) -> Scores:
    """Fig. 8: one chain of LSTMs, of which each cell sees tanh(W_t h) of the last sentence's h.

    No sentence is before the first: its thought vector is 0.
    """
    scores, before = [], None
    for words in document:
        thought = _thought(p, before)
        inputs = [[*p["X"][word], *thought] for word in [START, *words]]
        states = p["g"].read(inputs, before)
        scores.append(_log_probs(p, states, words))
        before = states[-1]
    return scores


def hlstm(p: Parameters, document: Document) -> Scores:
    """Fig. 9: the thought vector is of g_s, an LSTM over the last states of the sentences."""
    scores: Scores = []
    above: list[State] | None = None
    for words in document:
        thought = _thought(p, above)
        states = p["g"].read([[*p["X"][word], *thought] for word in [START, *words]])
        scores.append(_log_probs(p, states, words))
        above = p["g_s"](top(states[-1]), above)
    return scores


def _thought(p: Parameters, states: list[State] | None) -> Vector:
    return tanh(product(p["W_t"], top(states))) if states else [0.0] * len(p["W_t"])


def _log_probs(p: Parameters, states: list[list[State]], words: Sentence) -> list[float]:
    return log_probs([plus(product(p["W_o"], top(s)), p["b"]) for s in states], words)
