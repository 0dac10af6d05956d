"""The larger-context models against scalar code written from Wang & Cho 2015, eqs. 5–11 and §3."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from lm.engine import ScoringEngine
from lm.model import DocumentLM
from lm.scoring import pairs
from lm.tiny_models import Sentence, last_score, tiny_model
from lm.trie import Candidates
from lm.vocabulary import END, START
from lm.zoo import ZOO

Vector = list[float]
Matrix = list[Vector]
FIRST, SECOND, THIRD = [3, 4, 3], [5, 6], [4, 7, 8, 3]
DOCUMENTS = {
    "first sentence": [THIRD],
    "second sentence": [FIRST, THIRD],
    "third sentence": [FIRST, SECOND, THIRD],
    "after an empty sentence": [FIRST, [], THIRD],
    "fourth sentence": [[9, 9], FIRST, SECOND, THIRD],
}


def sigma(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def times(matrix: Matrix, vector: Vector) -> Vector:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def plus(*vectors: Vector) -> Vector:
    return [sum(column) for column in zip(*vectors, strict=True)]


def softmax(z: Vector) -> Vector:
    e = [math.exp(one - max(z)) for one in z]
    return [one / sum(e) for one in e]


class Scalar:
    """A model of one LSTM layer, its numbers read by name, its equations written out."""

    def __init__(self, model: DocumentLM, name: str) -> None:
        self.numbers = {key: tensor.tolist() for key, tensor in model.state_dict().items()}
        self.late, self.attends = "-lf-" in name, "-att-" in name
        self.sequence, self.n = "seqbow" in name, int(name.rpartition("-")[2])

    def memory(self, part: str, x: Vector, h: Vector, c: Vector) -> tuple[Vector, Vector]:
        """c_t and o_t of eqs. 6–9."""
        w, u, b = (self.numbers[f"{part}.{key}.0"] for key in ("lower", "recurrent", "bias"))
        z = plus(times(w, x), times(u, h), b)
        i, f, o, g = (z[k * len(h) : (k + 1) * len(h)] for k in range(4))
        gates = zip(i, f, g, c, strict=True)
        new = [sigma(f) * c + sigma(i) * math.tanh(g) for i, f, g, c in gates]
        return new, [sigma(one) for one in o]

    def projected_bag(self, words: Sequence[int]) -> Vector:
        """P s: s has the frequencies of the words."""
        rows, counts = self.numbers["context.table"], Counter(words)
        zero = [0.0] * len(rows[0])
        shares = [[n / len(words) * one for one in rows[w]] for w, n in counts.items()]
        return plus(zero, *shares)

    def read(self, part: str, bags: Sequence[Vector]) -> list[Vector]:
        """Hidden states of a context recurrence."""
        size = len(self.numbers[f"{part}.recurrent.0"][0])
        h = c = [0.0] * size
        states = []
        for bag in bags:
            c, o = self.memory(part, bag, h, c)
            h = [a * math.tanh(b) for a, b in zip(o, c, strict=True)]
            states.append(h)
        return states

    def context(self, before: Sequence[Sentence], query: Vector) -> Vector:
        """p, or p_t for the query h_{t-1}."""
        last = before[max(0, len(before) - self.n) :]
        if not self.sequence:
            return self.projected_bag([word for sentence in last for word in sentence])
        bags = [self.projected_bag(sentence) for sentence in last if sentence]
        states = self.read("context.reader", bags)
        if not self.attends:
            return states[-1] if states else [0.0] * len(query)
        backward = self.read("context.backward_reader", bags[::-1])[::-1]
        annotations = [a + b for a, b in zip(states, backward, strict=True)]
        asked = times(self.numbers["context.query.weight"], query)
        keys = [times(self.numbers["context.annotation.weight"], z) for z in annotations]
        (v,) = self.numbers["context.weight.weight"]
        hidden = [[math.tanh(one) for one in plus(asked, key)] for key in keys]
        alphas = softmax([times([v], one)[0] for one in hidden]) if hidden else []
        shares = [[a * one for one in z] for a, z in zip(alphas, annotations, strict=True)]
        return plus([0.0] * 2 * len(query), *shares)

    def step(self, word: int, p: Vector, h: Vector, c: Vector) -> tuple[Vector, Vector]:
        """h_t and c_t of early or late fusion."""
        x = self.numbers["embedding.weight"][word]
        w_p_p = times(self.numbers["fusion.projection.weight"], p)
        c, o = self.memory("recurrence", x if self.late else plus(x, w_p_p), h, c)
        inside = c
        if self.late:
            gate, bias = (self.numbers[f"fusion.gate.{key}"] for key in ("weight", "bias"))
            of_memory = times(self.numbers["fusion.memory_gate.weight"], c)
            r = [sigma(one) for one in plus(times(gate, w_p_p), of_memory, bias)]
            inside = plus(c, [a * b for a, b in zip(r, w_p_p, strict=True)])
        return [a * math.tanh(b) for a, b in zip(o, inside, strict=True)], c

    def log_prob(self, document: Sequence[Sentence]) -> float:
        """log P(S_l | S_{l-n} … S_{l-1}) of the last sentence, `</s>` included (eq. 11)."""
        *before, sentence = document
        h = c = [0.0] * len(self.numbers["recurrence.recurrent.0"][0])
        total = 0.0
        for word, target in zip([START, *sentence], [*sentence, END], strict=True):
            h, c = self.step(word, self.context(before, h), h, c)
            logits = plus(times(self.numbers["head.output"], h), self.numbers["head.bias"])
            total += math.log(softmax(logits)[target])
        return total


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("family", [name.removesuffix("N") for name in ZOO.families])
def test_scores_are_those_of_the_equations(family: str, n: int) -> None:
    name = f"{family}{n}"
    model = tiny_model(ZOO[name], tied=False)
    scalar, found = Scalar(model, name), {}
    for place, document in DOCUMENTS.items():
        found[place] = last_score(model, document)
        assert found[place] == pytest.approx(scalar.log_prob(document), rel=1e-5), place
    assert (found["fourth sentence"] == pytest.approx(found["third sentence"])) == (n <= 2)
    assert len({round(score, 4) for score in found.values()}) >= 3


def test_one_bag_in_a_sequence_says_as_much_as_one_bag() -> None:
    """The scores of both change with the words of the last sentence, not with their order."""
    histories: list[list[Sentence]]
    histories = [[FIRST], [[4, 3, 3]], [SECOND, FIRST], [[3, 4]], [SECOND], [[]], [FIRST, []]]
    partitions = []
    for name in ("rlm-bow-lf-1", "rlm-seqbow-lf-1", "rlm-seqbow-att-lf-1"):
        model = tiny_model(ZOO[name])
        scores = [last_score(model, [*history, THIRD]) for history in histories]
        close = [[abs(a - b) < 1e-5 for a in scores] for b in scores]
        partitions.append(close)
    assert partitions[0] == partitions[1] == partitions[2]
    assert [row.count(True) for row in partitions[0]] == [3, 3, 3, 1, 1, 2, 2]


@pytest.mark.parametrize("family", ["rlm-bow-ef-2", "rlm-seqbow-lf-2", "rlm-seqbow-att-lf-2"])
def test_the_order_of_sentences_matters_where_they_are_a_sequence(family: str) -> None:
    model = tiny_model(ZOO[family])
    one = last_score(model, [FIRST, SECOND, THIRD])
    other = last_score(model, [SECOND, FIRST, THIRD])
    assert (one == other) == ("-bow-" in family)
    shuffled = last_score(model, [[4, 3, 3], [6, 5], THIRD])
    assert shuffled == one


def test_without_sentences_before_the_context_is_zero() -> None:
    for family in ZOO.families:
        model = tiny_model(ZOO[family.removesuffix("N") + "2"])
        contexts = model.context.start(2)
        if model.context.per_word:
            query = torch.randn(2, model.config.hidden)
            prepared = model.context.prepared(contexts)
            value = model.context.word_values(prepared, torch.arange(2), query)
        else:
            value = model.context.value(contexts)
        assert torch.equal(value, torch.zeros(2, model.context.width))


@pytest.mark.parametrize("name", ["rlm-bow-ef-1", "rlm-seqbow-att-lf-1"])
def test_candidates_with_equal_bags_are_one_context_for_the_next_list(name: str) -> None:
    engine = ScoringEngine.of(tiny_model(ZOO[name]))
    lists = Candidates.of([[[3, 4], [4, 3], [5]], [[6, 7], [6, 8]]])
    scores = pairs(engine, lists, np.array([True, False]))[1]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).all()
    shared = len({(), (3,), (3, 4), (4,), (4, 3), (5,), (6,), (6, 7), (6, 8)})
    first, second = 6, 4  # nodes of each list's own trie
    assert engine.counts.nodes == shared + first + 2 * second
