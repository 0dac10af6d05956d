"""The larger-context language model of Wang & Cho 2015 (arXiv:1511.03729) in scalar arithmetic.

`larger_context_lm` gives log p of the words and of `</s>` of every sentence of a document, in
nats, with one of three contexts (§3.1) and one of two fusions (§3.2). Parameters by their names
in the paper, but for X, rows of word embeddings (E), and W_o and b of the output after eq. 5, which
eq. 7 uses for others: g, a `Stack` of one layer with W_i, U_i, b_i, …, of the LSTM, eqs. 6–9; P,
W_p; W_r, V_r and b_r, where the paper writes W_r for two matrices, of which V_r is that of c;
context and reverse, layers of LSTMs over sentences.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from support.scalar.algebra import (
    Vector,
    dot,
    plus,
    product,
    sigmoid,
    softmax,
    tanh,
    times,
    weighted_sum,
)
from support.scalar.cells import Parameters, State, gate, lstm
from support.scalar.ji import Document, Scores, Sentence, log_probs

from lm.vocabulary import START

ContextVector: TypeAlias = Callable[[Vector], Vector]  # p_t, given h_{t−1}
Representation: TypeAlias = Callable[[Parameters, Document], ContextVector]
Fusion: TypeAlias = Callable[[Parameters, Vector, Vector, State], State]


def larger_context_lm(
    p: Parameters, document: Document, n: int, representation: Representation, fusion: Fusion
) -> Scores:
    """Eqs. 10–11: each sentence given the n sentences before it, fewer at the beginning."""
    scores, q = [], p["g"].layers[0]
    for t, words in enumerate(document):
        context = representation(p, document[max(0, t - n) : t])
        size = len(q["b_i"])
        state: State = [0.0] * size, [0.0] * size  # h_0 = 0
        logits = []
        for word in [START, *words]:
            state = fusion(p, p["X"][word], context(state[0]), state)
            logits.append(plus(product(p["W_o"], state[0]), p["b"]))  # after eq. 5
        scores.append(log_probs(logits, words))
    return scores


def frequencies(words: Sentence, size: int) -> Vector:
    """s ∈ [0, 1]^V, §3.1: counts over the number of words, so that they sum to 1; else zeros."""
    counts = Counter(words)
    return [counts[word] / max(1, len(words)) for word in range(size)]


def bow(p: Parameters, sentences: Document) -> ContextVector:
    """BoW, §3.1: p = P s of all words of the context's sentences."""
    s = frequencies([word for words in sentences for word in words], len(p["X"]))
    vector = product(p["P"], s)
    return lambda h: vector


def seqbow(p: Parameters, sentences: Document) -> ContextVector:
    """SeqBoW, §3.1: p is the last state z_{l−1} of an LSTM over the sentences' bags, else 0."""
    states = _context_states(p["context"], _bags(p, sentences))
    vector = states[-1] if states else [0.0] * len(p["context"]["b_i"])
    return lambda h: vector


def seqbow_att(p: Parameters, sentences: Document) -> ContextVector:
    """SeqBoW-ATT, §3.1: p_t = Σ α_{t,l′} z_{l′} of a bidirectional LSTM's annotations.

    z = [→z; ←z]; α is the softmax of score(z_{l′}, h), which the paper leaves open: here
    v · tanh(W_z z + W_q h) of Bahdanau et al. 2015. h is h_{t−1}, since h_t depends on p_t.
    Without sentences, 0.
    """
    bags = _bags(p, sentences)
    forward = _context_states(p["context"], bags)
    backward = _context_states(p["reverse"], bags[::-1])[::-1]
    annotations = [[*f, *b] for f, b in zip(forward, backward, strict=True)]
    zero = [0.0] * len(p["context"]["b_i"] + p["reverse"]["b_i"])

    def vector(h: Vector) -> Vector:
        if not annotations:
            return zero
        query = product(p["W_q"], h)
        scores = [dot(p["v"], tanh(plus(product(p["W_z"], z), query))) for z in annotations]
        return weighted_sum(softmax(scores), annotations)

    return vector


def _bags(p: Parameters, sentences: Document) -> list[Vector]:
    """s_j of each context sentence.

    The paper has no sentence without words. Here it is none of the sequence's, though one of
    the n: φ would make a state of its biases.
    """
    return [frequencies(words, len(p["X"])) for words in sentences if words]


def _context_states(p: Parameters, bags: list[Vector]) -> list[Vector]:
    """z_j = φ(s_j, z_{j−1}), the hidden states of the context's LSTM."""
    state, hidden = None, []
    for s in bags:
        state = lstm(p, s, state)
        hidden.append(state[0])
    return hidden


def early_fusion(p: Parameters, x: Vector, context: Vector, before: State) -> State:
    """Early fusion, §3.2: x = Eᵀ w_t + W_p p is the input of the LSTM."""
    return lstm(p["g"].layers[0], plus(x, product(p["W_p"], context)), before)


def late_fusion(p: Parameters, x: Vector, context: Vector, before: State) -> State:
    """Late fusion, §3.2: h_t = o_t ∘ tanh(c_t + r_t ∘ (W_p p)), c_t of eqs. 6–9 unchanged.

    r_t = σ(W_r (W_p p) + V_r c_t + b_r).
    """
    c = lstm(p["g"].layers[0], x, before)[1]
    o = sigmoid(gate(p["g"].layers[0], "o", x, before[0]))  # eq. 7
    share = product(p["W_p"], context)
    r = sigmoid(plus(product(p["W_r"], share), product(p["V_r"], c), p["b_r"]))
    return times(o, tanh(plus(c, times(r, share)))), c
