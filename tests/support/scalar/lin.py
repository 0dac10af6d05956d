"""The models of Lin et al. 2015 (HRNNLM) in scalar arithmetic, equation by equation.

Parameters by their names in the paper: sentence level U_s, W_s (H × V), V_s and the hash array
D_s; word level U_w, W_w (H × V), V_w, U_sw and the hash array D_w. No layer has a bias. hs_0 is
0.1 in every unit (§4.3), and so is hw_0, of which §5.2 says no more than that all is initialised
as in §4.3. `hash` maps a word to a number; the weight of the pair (w, t) is at (hash(w) + t) mod
the array's size.
Log-probabilities are in nats.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

from support.scalar.algebra import Vector, htanh, log_softmax, plus, product
from support.scalar.cells import Parameters, top
from support.scalar.ji import Document, Scores, Sentence, log_probs

from lm.vocabulary import END, START

Hash: TypeAlias = Callable[[int], int]

INITIAL = 0.1


def hashed(D: Vector, hashes: list[int], size: int) -> Vector:
    """Σ_w D_{hash(w,t)} of the words with these hashes, for every word t of V, eq. 8."""
    return [sum(D[(number + t) % len(D)] for number in hashes) for t in range(size)]


def hashed_rnnlm(p: Parameters, document: Document, hash: Hash) -> Scores:
    """Eqs. 1–2 of Ji et al. 2016 with hashed bigrams (Mikolov 2012); `<s>` is a first word, too."""
    scores = []
    for words in document:
        read, logits = [START, *words], []
        states = p["g"].read([p["X"][word] for word in read])
        for word, state in zip(read, states, strict=True):
            values = plus(product(p["W_o"], top(state)), p["b"])
            logits.append(plus(values, hashed(p["D"], [hash(word)], len(values))))
        scores.append(log_probs(logits, words))
    return scores


def sentence_history(p: Parameters, document: Document) -> list[Vector]:
    """hs_0, hs_1, … of eq. 4; xs_j counts the words of sentence j."""
    hs = [[INITIAL] * len(p["U_s"])]
    for words in document:
        xs = [float(words.count(word)) for word in range(len(p["W_s"][0]))]
        hs.append(htanh(plus(product(p["U_s"], hs[-1]), product(p["W_s"], xs))))
    return hs


def rnnslm(p: Parameters, document: Document, hash: Hash) -> Scores:
    """log p(w_t | earlier sentences) of each word, eqs. 4–9 (8 for 5); no `</s>`.

    The score of a sentence is the sum; its mean is the objective, eq. 9. The paper does not say
    whether w ∈ xs_j in eq. 8 counts a word once or as often as it occurs; here once. Nothing is
    hashed before the first sentence.
    """
    scores = []
    for words, hs, before in zip(
        document, sentence_history(p, document), [Sentence(), *document], strict=False
    ):
        pairs = [hash(word) for word in sorted(set(before))]
        logits = product(p["V_s"], hs)
        logits = plus(logits, hashed(p["D_s"], pairs, len(logits)))
        logits[END] = -math.inf  # it is no word of a bag
        log_y = log_softmax(logits)
        scores.append([log_y[word] for word in words])
    return scores


def rnnlm_lin(p: Parameters, document: Document, hash: Hash) -> Scores:
    """The word level alone: eq. 10 without U_sw hs."""
    nothing = [0.0] * len(p["U_w"])
    return [_word_level(p, words, nothing, hash) for words in document]


def hrnnlm_lin(
    p: Parameters, document: Document, hash: Hash, data: Parameters | None = None
) -> Scores:
    """Eq. 10: sentence j + 1 is read with U_sw hs_j; log p of its words and of `</s>`.

    data: parameters of the sentence level where that is fixed (§5.2), by default `p`.
    """
    history = sentence_history(data or p, document)
    return [
        _word_level(p, words, product(p["U_sw"], hs), hash)
        for words, hs in zip(document, history, strict=False)
    ]


def _word_level(p: Parameters, words: Sentence, share: Vector, hash: Hash) -> list[float]:
    """hw_i = HTanh(U_w hw_{i−1} + W_w xw_i + share); softmax(V_w hw_i + hashed bigrams)."""
    hw, logits = [INITIAL] * len(p["U_w"]), []
    for word in [START, *words]:
        xw = [row[word] for row in p["W_w"]]  # W_w times the one-hot vector
        hw = htanh(plus(product(p["U_w"], hw), xw, share))
        values = product(p["V_w"], hw)
        logits.append(plus(values, hashed(p["D_w"], [hash(word)], len(values))))
    return log_probs(logits, words)
