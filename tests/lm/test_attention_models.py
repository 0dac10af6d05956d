"""The attentional models of Ji et al., sentence by sentence, against scalar arithmetic.

Written from the paper's equations (adclm) and from those of the authors' program (dam), for two
layers of their cell, in lists of numbers.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from support.models import enlarged

from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.evaluation import perplexity
from lm.laws import context_after
from lm.model import Config, DocumentLM
from lm.scoring import after
from lm.trie import Candidates
from lm.vocabulary import END, START

Vector = list[float]
Matrix = list[Vector]
V, K, H, A = 7, 2, 3, 4
DOCUMENT = [[3, 5, 4], [6, 3], [4, 4, 6], [5]]


class Numbers:
    """The weights of a model by name, as lists."""

    def __init__(self, model: DocumentLM) -> None:
        self.held = {name: p.tolist() for name, p in model.double().named_parameters()}

    def __call__(self, name: str) -> Matrix:
        found: Matrix = self.held[name]
        return found

    def vector(self, name: str) -> Vector:
        found: Vector = self.held[name]
        return found


def dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def times(matrix: Matrix, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix]


def added(*vectors: Vector) -> Vector:
    return [math.fsum(column) for column in zip(*vectors, strict=True)]


def softmax(logits: Vector) -> Vector:
    total = math.fsum(map(math.exp, logits))
    return [math.exp(x) / total for x in logits]


def mixture(shares: Vector, vectors: Matrix) -> Vector:
    return [dot(shares, list(column)) for column in zip(*vectors, strict=True)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def two_layers(w: Numbers, u: Vector, state: list[Vector]) -> list[Vector]:
    """(h_1, c_1, h_2, c_2) after the input u: the authors' cell with coupled gates."""
    following: list[Vector] = []
    for layer in range(2):
        h, c = state[2 * layer : 2 * layer + 2]
        z = added(
            times(w(f"recurrence.lower.{layer}"), u),
            times(w(f"recurrence.recurrent.{layer}"), h),
            w.vector(f"recurrence.bias.{layer}"),
        )
        peephole = w(f"recurrence.peephole.{layer}")
        i = [sigmoid(x) for x in added(z[:H], times(peephole[:H], c))]
        c = [(1 - i[n]) * c[n] + i[n] * math.tanh(z[H + n]) for n in range(H)]
        o = [sigmoid(x) for x in added(z[2 * H :], times(peephole[H:], c))]
        u = [o[n] * math.tanh(c[n]) for n in range(H)]
        following += [u, c]
    return following


def attended(w: Numbers, query: Vector | None, memory: Matrix, width: int) -> Vector:
    """Σ softmax(w · tanh(W_1 q + W_2 f)) f over the memory; zeros without one."""
    if not memory:
        return [0.0] * width
    energies = []
    for f in memory:
        z = times(w("context.memory.weight"), f)
        if query is not None:  # it is dropped at the first position
            z = added(z, times(w("context.query.weight"), query))
        energies.append(dot(w("context.weight.weight")[0], [math.tanh(x) for x in z]))
    return mixture(softmax(energies), memory)


def adclm(w: Numbers) -> Iterator[float]:
    """Log p of each word and </s> of the document: eqs. 8–12, with h_{n-1} for h_n in eq. 10."""
    memory: Matrix = []  # h of the previous sentence's words
    for sentence in DOCUMENT:
        state, query, words = [[0.0] * H] * 4, None, []
        for read, target in zip([START, *sentence], [*sentence, END], strict=True):
            c = attended(w, query, memory, H)
            state = two_layers(w, w("embedding.weight")[read] + c, state)
            query = h = state[2]
            words += [h] if read != START else []
            z = added(
                times(w("fusion.merge.of_hidden.weight"), h),
                times(w("fusion.merge.of_value.weight"), c),
                w.vector("fusion.merge.of_hidden.bias"),
            )
            logits = times(w("head.output"), [math.tanh(x) for x in z])
            yield math.log(softmax(logits)[target])
        memory = words


def dam(w: Numbers) -> Iterator[float]:
    """Log p of each word and </s> of the document, as in the authors' program `dam`."""
    memory: Matrix = []  # [h_1; h_2] at the end of all earlier sentences
    for sentence in DOCUMENT:
        state, query = [[0.0] * H] * 4, None
        for read, target in zip([START, *sentence], [*sentence, END], strict=True):
            x = w("embedding.weight")[read]
            c = memory[0] if len(memory) == 1 else attended(w, query, memory, 2 * H)
            state = two_layers(w, x + c, state)
            query = state[0] + state[2]
            z = added(
                state[2],
                times(w("fusion.of_value.weight"), c),
                times(w("fusion.of_word.weight"), x),
            )
            logits = times(w("head.output"), [math.tanh(x) for x in z])
            yield math.log(softmax(added(logits, w.vector("head.bias")))[target])
        memory = [*memory, state[0] + state[2]]


def model_of(name: str) -> DocumentLM:
    config = Config(name, V, K, H, "cifg", 2, tied=False, attention=A)
    return enlarged(DocumentLM.seeded(config, 5), 4.0).eval()


BY_HAND: dict[str, Callable[[Numbers], Iterator[float]]] = {"adclm": adclm, "dam": dam}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_document_has_the_probability_that_the_equations_give_it(name: str) -> None:
    """Read as in training, and by the scoring engine after each context."""
    offsets = np.cumsum([0, *map(len, DOCUMENT)])
    words = np.array([word for sentence in DOCUMENT for word in sentence], dtype=np.int32)
    corpus = Corpus(words, offsets, np.array([0, len(DOCUMENT)]))
    expected = list(BY_HAND[name](Numbers(model_of(name))))
    found = perplexity(model_of(name), corpus)
    assert found.nats == pytest.approx(-math.fsum(expected), rel=1e-5)
    model = model_of(name)
    engine, terms = ScoringEngine.of(model), iter(expected)
    for t, sentence in enumerate(DOCUMENT):
        request = Candidates.of([[sentence, [3]]]), context_after(model, DOCUMENT[:t])
        ((scores, _),) = after(engine, [request])
        own = math.fsum(next(terms) for _ in range(len(sentence) + 1))
        assert scores[0, 0] == pytest.approx(own, abs=1e-4)


@pytest.mark.parametrize("name", BY_HAND)
def test_the_attention_and_the_context_matter_in_the_examples(name: str) -> None:
    """Otherwise the equations above would show nothing."""
    model = model_of(name)
    whole = list(BY_HAND[name](Numbers(model)))
    for part in ("context.query.weight", "context.weight.weight"):
        other = model_of(name)
        with torch.no_grad():
            other.get_parameter(part).zero_()
        changed = list(BY_HAND[name](Numbers(other)))
        first = 4 if name == "adclm" else 4 + 3  # its second sentence attends to one state only
        assert changed[:first] == whole[:first]
        assert max(abs(a - b) for a, b in zip(changed[first:], whole[first:], strict=True)) > 1e-3
