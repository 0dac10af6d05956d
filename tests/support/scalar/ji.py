"""The models of Ji et al. 2016 (arXiv:1511.03962) in scalar arithmetic, equation by equation.

Each function gives log p of the words and of `</s>` of every sentence of a document, in nats.
Parameters by their names in the paper: X, rows of word embeddings; g, the transition function
of eq. 1, a `Stack`; W_o, W_h, W_c and b; c_0. Inputs of a sentence are `<s> w_1 … w_M`; h_{t,M}
is the state after w_M, and after `<s>` where M = 0, since the authors' code never feeds `</s>`.
"""

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
from support.scalar.cells import Parameters, State, top

from lm.vocabulary import END, START

Sentence = list[int]
Document = list[Sentence]
Scores = list[list[float]]  # of each sentence's words and `</s>`


def log_probs(logits: list[Vector], words: Sentence) -> list[float]:
    """log p of each word and of `</s>`."""
    pairs = zip(logits, [*words, END], strict=True)
    return [log_softmax(values)[target] for values, target in pairs]


def _inputs(p: Parameters, words: Sentence) -> list[Vector]:
    return [p["X"][word] for word in [START, *words]]


def rnnlm(p: Parameters, document: Document, *, carried: bool = False) -> Scores:
    """Eqs. 1–2; the state begins anew in every sentence.

    carried: as in fig. 1, where the last state of a sentence, of all layers, begins the next one.
    """
    scores, before = [], None
    for words in document:
        states = p["g"].read(_inputs(p, words), before)
        logits = [plus(product(p["W_o"], top(s)), p["b"]) for s in states]
        scores.append(log_probs(logits, words))
        before = states[-1] if carried else None
    return scores


def ccdclm(p: Parameters, document: Document) -> Scores:
    """Eqs. 3–5, and eq. 2 for the output."""
    scores, c = [], p["c_0"]
    for words in document:
        states = p["g"].read([[*x, *c] for x in _inputs(p, words)])  # eqs. 4 and 5
        logits = [plus(product(p["W_o"], top(s)), p["b"]) for s in states]
        scores.append(log_probs(logits, words))
        c = top(states[-1])  # eq. 3
    return scores


def codclm(p: Parameters, document: Document) -> Scores:
    """Eqs. 6–7."""
    scores, c = [], p["c_0"]
    for words in document:
        states = p["g"].read(_inputs(p, words))  # eq. 6
        logits = [
            plus(product(p["W_h"], top(s)), product(p["W_c"], c), p["b"]) for s in states
        ]  # eq. 7
        scores.append(log_probs(logits, words))
        c = top(states[-1])
    return scores


def adclm(p: Parameters, document: Document) -> Scores:
    """Eqs. 8–12, of w_a, W_a1, W_a2, W_h (here W_m), W_c, W_o and b (H).

    As printed, a_n needs h_{t,n}, which needs c_{t−1,n}, which needs a_n: here the query is
    h_{t,n−1}, and there is none at n = 0. Without words to attend to, in the first sentence
    and after an empty one, c is zero.
    """
    scores = []
    memory: list[Vector] = []
    for words in document:
        state: list[State] | None = None
        hidden, logits = [], []
        for x in _inputs(p, words):
            c = _attention(p, memory, state) if memory else [0.0] * len(p["b"])
            state = p["g"]([*c, *x], state)  # eq. 11
            merged = plus(product(p["W_m"], top(state)), product(p["W_c"], c), p["b"])
            logits.append(product(p["W_o"], tanh(merged)))  # eq. 12
            hidden.append(top(state))
        scores.append(log_probs(logits, words))
        memory = hidden[1:]  # h_{t,1} … h_{t,M}
    return scores


def _attention(p: Parameters, memory: list[Vector], before: list[State] | None) -> Vector:
    """Eqs. 8–10."""
    query = [product(p["W_a1"], top(before))] if before else []
    a = [dot(p["w_a"], tanh(plus(product(p["W_a2"], h), *query))) for h in memory]  # eq. 10
    return weighted_sum(softmax(a), memory)  # eqs. 9 and 8


def dam(p: Parameters, document: Document) -> Scores:
    """The authors' attentional model (`dam` of jiyfeng/dclm), which is not eqs. 8–12.

    The memory holds the final hidden states of all layers, [h¹; h²; …], of all sentences before.
    Without a sentence c = 0, after one sentence c is its state, and later
    c = Σ α_s f_s, α = softmax(v_a · tanh(W_a q + U_a f_s)), where q is the hidden states at the
    word before, of all layers, and W_a q is absent at n = 0. Then h = LSTM([x; c]),
    r = tanh(h + Q c + P x) and p = softmax(R r + b), where R is W_o.
    """
    scores = []
    memory: list[Vector] = []
    for words in document:
        state: list[State] | None = None
        logits = []
        for x in _inputs(p, words):
            c = _final_states_attention(p, memory, state)
            state = p["g"]([*x, *c], state)
            r = tanh(plus(top(state), product(p["Q"], c), product(p["P"], x)))
            logits.append(plus(product(p["W_o"], r), p["b"]))
        scores.append(log_probs(logits, words))
        memory.append(_all_layers(state or []))
    return scores


def _final_states_attention(
    p: Parameters, memory: list[Vector], before: list[State] | None
) -> Vector:
    if not memory:
        return [0.0] * len(p["U_a"][0])
    if len(memory) == 1:
        return memory[0]
    query = [product(p["W_a"], _all_layers(before))] if before else []
    e = [dot(p["v_a"], tanh(plus(product(p["U_a"], f), *query))) for f in memory]
    return weighted_sum(softmax(e), memory)


def _all_layers(states: list[State]) -> Vector:
    """Hidden states of all layers side by side, the lowest first."""
    return [entry for state in states for entry in state[0]]


def hrnnlm(p: Parameters, document: Document, data: Parameters | None = None) -> Scores:
    """The authors' form of Lin et al.'s model: an LSTM over sentences, above eqs. 1–2.

    g_s reads each sentence as the sum of its word embeddings, without `<s>` and `</s>`; its
    hidden state after sentence t − 1 is concatenated to the inputs of sentence t, c_0 to those
    of the first. The authors allocate a bias of the output and leave it out; here b is that of
    eq. 2. data: parameters of what counts as constant for gradients (all but c_0 of these
    contexts), by default `p`.
    """
    above = [top(states) for states in sentence_states(data or p, document)]
    scores = []
    for words, c in zip(document, [p["c_0"], *above], strict=False):
        states = p["g"].read([[*x, *c] for x in _inputs(p, words)])
        logits = [plus(product(p["W_o"], top(s)), p["b"]) for s in states]
        scores.append(log_probs(logits, words))
    return scores


def sentence_states(
    p: Parameters, document: Document, data: Parameters | None = None
) -> list[list[State]]:
    """States of the sentence level after each sentence; data: as in `hrnnlm`, of embeddings."""
    X = (data or p)["X"]
    zero = [0.0] * len(X[0])
    bags = [plus(zero, *(X[word] for word in words)) for words in document]
    states: list[list[State]] = p["g_s"].read(bags)
    return states


def next_sentence_scores(
    p: Parameters, document: Document, data: Parameters | None = None
) -> Scores:
    """log p of the words of each sentence but the first, given the sentence level before them.

    softmax(R_2 hs_{t−1} + b_2), where the authors leave b_2 out; `</s>` is not among the words.
    The authors' code counts the first word of a sentence twice; here each counts once.
    """
    states = sentence_states(p, document, data)
    scores = []
    for words, before in zip(document[1:], states, strict=False):
        log_y = log_softmax(plus(product(p["R_2"], top(before)), p["b_2"]))
        scores.append([log_y[word] for word in words])
    return scores
