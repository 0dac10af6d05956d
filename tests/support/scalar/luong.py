"""Attention over source words between two levels of a recurrence, in scalar arithmetic.

Global attention with the dot product of Luong et al. 2015 (arXiv:1508.04025), eqs. 5 and 7, once
for each level: f_m = W_f [→f_m; ←f_m]; c = Σ softmax(h · f_m) f_m; h' = g'([h; c]), c' likewise;
the head reads tanh(W_m h' + W_c c' + b_m).
"""

from collections.abc import Sequence
from math import exp, isqrt

from support.scalar.algebra import (
    Vector,
    dot,
    log_softmax,
    plus,
    product,
    softmax,
    tanh,
    weighted_sum,
)
from support.scalar.cells import Parameters, top
from support.scalar.ji import Document, Scores

from lm.vocabulary import END, START


def attention_and_words(p: Parameters, document: Document, source: Document) -> Scores:
    """Ours: c + σ(W_g [h; d] + b_g) ∘ Z d in place of c, on both levels.

    d = Σ softmax(h · W_p x_m) W_p x_m over the embeddings x_m of the sentence before.
    """
    before = [[], *document[:-1]]
    memories = [[product(p["W_p"], p["X"][word]) for word in words] for words in before]
    return attention(p, document, source, memories)


def attention(
    p: Parameters,
    document: Document,
    source: Document,
    memories: Sequence[list[Vector]] | None = None,
) -> Scores:
    """The source of each sentence is the only context; p["classes"] is None of a softmax.

    memories: f_m of the words before each sentence, if values have a gated sum of these.
    """
    scores: Scores = []
    besides = memories or [[] for _ in document]
    for words, own, beside in zip(document, source, besides, strict=True):
        x = [p["X_s"][word] for word in own]
        ahead = [top(state) for state in p["ahead"].read(x)]
        back = [top(state) for state in p["back"].read(x[::-1])][::-1]
        memory = [product(p["W_f"], [*f, *b]) for f, b in zip(ahead, back, strict=True)]
        below = p["g"].read([p["X"][word] for word in [START, *words]])
        both = memory, beside
        above = p["upper"].read([[*top(s), *_value(p, *both, top(s))] for s in below])
        scores.append([])
        for state, target in zip(above, [*words, END], strict=True):
            h = top(state)
            merged = plus(product(p["W_m"], h), product(p["W_c"], _value(p, *both, h)), p["b_m"])
            scores[-1].append(_log_prob(p, tanh(merged), target))
    return scores


def _value(p: Parameters, memory: list[Vector], beside: list[Vector], query: Vector) -> Vector:
    c, d = _attended(p, memory, query), _attended(p, beside, query)
    if not beside:
        return c
    gate = plus(product(p["W_g"], [*query, *d]), p["b_g"])
    return [x + z / (1 + exp(-r)) for x, z, r in zip(c, product(p["Z"], d), gate, strict=True)]


def _attended(p: Parameters, memory: list[Vector], query: Vector) -> Vector:
    if not memory:
        return [0.0] * len(p["b_m"])
    return weighted_sum(softmax([dot(query, f) for f in memory]), memory)


def _log_prob(p: Parameters, features: Vector, word: int) -> float:
    """Of a softmax over all words, or of one over classes and of one over the words of a class."""
    logits = plus(product(p["W_o"], features), p["b"])
    if p["classes"] is None:
        return log_softmax(logits)[word]
    own = isqrt(word)
    of_class = log_softmax(plus(product(p["classes"], features), p["b_classes"]))[own]
    return of_class + log_softmax(logits[own**2 : (own + 1) ** 2])[word - own**2]
