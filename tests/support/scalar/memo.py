"""The models of Eisenstein's memo "The Document Context Language Model" in scalar arithmetic.

Each function gives log p of the words and of `</s>` of every sentence of a document, in nats.
Parameters by their names in the memo: X, rows of word embeddings; R, a matrix for each relation;
g, the recurrence of eq. 1, a `Stack`; V_s, V_d and, where the memo has only the words "condition
also on", V_1 and V_2, and b, a bias of the softmax; f, the recurrence of eq. 5, a `Stack`; h_0. The
representation function of eq. 4 is one of the functions below: W and f_b are a convolution's,
reader is a `Stack` over words, of so many units.
Inputs of a sentence are `<s> w_1 … w_M`; its latent state at the end is that after w_M.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from support.scalar.algebra import Vector, log_softmax, plus, product, tanh
from support.scalar.cells import Parameters, State, top
from support.scalar.ji import Document, Scores, Sentence, log_probs

from lm.vocabulary import START

Representation: TypeAlias = Callable[[Parameters, Sentence], Vector]
Relations: TypeAlias = Sequence[int]  # of each sentence to the one before


def bag(p: Parameters, words: Sentence) -> Vector:
    """The mean of the words' embeddings."""
    return [x / max(1, len(words)) for x in sum_of_embeddings(p, words)]


def sum_of_embeddings(p: Parameters, words: Sentence) -> Vector:
    return plus([0.0] * len(p["X"][0]), *(p["X"][word] for word in words))


def cnn(p: Parameters, words: Sentence) -> Vector:
    """Kim 2014, eqs. 2–4: c_n = tanh(W x_{n−1:n+1} + b), and the largest of each filter.

    A window around each word, with zeros beyond the ends; zero without words.
    """
    W, b = p["W"], p["f_b"]
    zero = [0.0] * len(p["X"][0])
    x = [zero, *(p["X"][word] for word in words), zero]
    windows = [[*x[n - 1], *x[n], *x[n + 1]] for n in range(1, len(words) + 1)]
    c = [tanh(plus(product(W, window), b)) for window in windows]
    return [max(column) for column in zip(*c, strict=True)] if c else [0.0] * len(b)


def rnn(p: Parameters, words: Sentence) -> Vector:
    """The last state of a recurrence of its own over the words; zero without words."""
    states = p["reader"].read([p["X"][word] for word in words])
    return top(states[-1]) if states else [0.0] * p["units"]


def dclm(p: Parameters, document: Document, g: Representation, relations: Relations = ()) -> Scores:
    """Eqs. 1–5; before the first sentence the hidden state of f's top layer is h_0.

    With relations eq. 9: softmax(V_s a_n + V_d tanh(R_d h_{i−1}) + b).
    """
    scores, state = [], before_document(p)
    for i, words in enumerate(document):
        h = _transformed(p, relations[i], top(state)) if relations else top(state)
        scores.append(_sentence(p, words, product(p["V_d"], h)))
        state = p["f"](g(p, words), state)  # eqs. 4 and 5
    return scores


def right_context(p: Parameters, document: Document, g: Representation) -> Scores:
    """Eqs. 1–5 and 13 with g(w_{i+1}) in place of h_{i+1}: softmax(… + V_l h_{i−1} + V_r b_{i+1}).

    After the last sentence b is the vector of no words. V_d is V_l and V_r side by side.
    """
    scores, state = [], before_document(p)
    for i, words in enumerate(document):
        following = g(p, document[i + 1] if i + 1 < len(document) else [])
        scores.append(_sentence(p, words, product(p["V_d"], [*top(state), *following])))
        state = p["f"](g(p, words), state)  # eqs. 4 and 5
    return scores


def before_document(p: Parameters) -> list[State]:
    """h_0, and zeros for what else the state of f has."""
    zero = [0.0] * len(p["h_0"])
    rest = (zero,) * (p["state_tensors"] - 1)
    layers: list[State] = [(zero, *rest) for _ in p["f"].layers]
    layers[-1] = (p["h_0"], *rest)
    return layers


def decoupled(
    p: Parameters, document: Document, g: Representation, relations: Relations = ()
) -> Scores:
    """§3.1: h_{i−1} = g(w_{i−1}); h_0 before the first sentence. With relations eq. 9, too."""
    scores, h = [], p["h_0"]
    for i, words in enumerate(document):
        h = _transformed(p, relations[i], h) if relations else h
        scores.append(_sentence(p, words, product(p["V_d"], h)))
        h = g(p, words)
    return scores


def two_sentence(p: Parameters, document: Document) -> Scores:
    """§1: the RNNLM given also the states at the ends of the two sentences before.

    softmax(V_s a_n + V_1 a_{n'} + V_2 a_{n''} + b), where n' ends the previous sentence and n''
    the one before it; h_0 for sentences that are missing. The recurrence begins anew in each
    sentence.
    """
    scores, one, two = [], p["h_0"], p["h_0"]
    for words in document:
        share = plus(product(p["V_1"], one), product(p["V_2"], two))
        scores.append(_sentence(p, words, share))
        one, two = top(_latent_states(p, words)[-1]), one
    return scores


def relation_recurrence(
    p: Parameters, document: Document, g: Representation, relations: Relations
) -> Scores:
    """Eqs. 3 and 10: h_i = f(b_i, tanh(R_d h_{i−1})), in the top layer of f."""
    scores, state = [], before_document(p)
    for words, d in zip(document, relations, strict=True):
        scores.append(_sentence(p, words, product(p["V_d"], top(state))))
        h, *rest = state[-1]
        before = [*state[:-1], (_transformed(p, d, h), *rest)]
        state = p["f"](g(p, words), before)
    return scores


def source_context(
    p: Parameters,
    document: Document,
    source: Document,
    g: Representation,
    *,
    given: tuple[bool, bool],
    others: list[list[int | None]],
) -> Scores:
    """Eqs. 6–8, 13 and 14: V_d times h_{i−1}, h_i, both, and vectors of other source sentences.

    given: whether h_{i−1} enters, and h_i; others: for each further vector the source sentence of
    which it is at every i, None for no words.
    """
    of_source = {**p, "X": p["X_s"]}
    b = [g(of_source, words) for words in source]
    scores, state = [], before_document(p)
    for i, words in enumerate(document):
        before, state = top(state), p["f"](b[i], state)  # eq. 7
        entering = [h for h, enters in zip((before, top(state)), given, strict=True) if enters]
        entering += [g(of_source, []) if other[i] is None else b[other[i] or 0] for other in others]
        scores.append(_sentence(p, words, product(p["V_d"], [x for h in entering for x in h])))
    return scores


def relation_nats(
    p: Parameters, document: Document, relations: list[int], g: Representation
) -> float:
    """Eqs. 11 and 12: −Σ log p(d_i) from the second sentence on, h as in eq. 5."""
    nats, state = 0.0, before_document(p)
    for i, (words, d) in enumerate(zip(document, relations, strict=True)):
        before, state = top(state), p["f"](g(p, words), state)
        if "Theta" in p:
            logits = [product([top(state)], product(Theta, before))[0] for Theta in p["Theta"]]
        else:
            units = tanh(plus(product(p["W_1"], [*top(state), *before]), p["b_1"]))
            logits = plus(product(p["W_2"], units), p["b_2"])
        if i:
            nats -= log_softmax(logits)[p["labels"].index(d)]
    return nats


def _transformed(p: Parameters, relation: int, h: Vector) -> Vector:
    """tanh(R_d h)."""
    return tanh(product(p["R"][relation], h))


def _latent_states(p: Parameters, words: Sentence) -> list[list[State]]:
    """a_n of eq. 1."""
    states: list[list[State]] = p["g"].read([p["X"][word] for word in [START, *words]])
    return states


def _sentence(p: Parameters, words: Sentence, share: Vector) -> list[float]:
    """softmax(V_s a_n + share + b), eqs. 2 and 3."""
    states = _latent_states(p, words)
    return log_probs([plus(product(p["V_s"], top(s)), share, p["b"]) for s in states], words)
