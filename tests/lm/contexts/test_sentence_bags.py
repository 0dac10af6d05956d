"""The models of Lin et al. 2015 against scalar arithmetic of the paper's equations."""

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch
from support.hashing import first_slot
from torch import Tensor

from lm.batches import PackedBatch, segments
from lm.composition import Composition
from lm.contexts.sentence_bags import SentenceBags, SentenceLevel
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.heads.hashed_softmax import HashedBagSoftmax
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.scoring import after
from lm.tiny_models import DOCUMENT, context_after, last_score, tiny_model
from lm.trie import Candidates
from lm.vocabulary import END, START
from lm.zoo import ZOO

V, H, S = 10, 8, 13  # as in `lm.laws`: rows of the table overlap
FIRST, SECOND = [3, 7, 3, 5], [8, 5, 0]
Vector = list[float]
Matrix = list[Vector]
LIN = ("rnnslm", "rnnlm-lin", "hrnnlm-lin", "hrnnlm-lin-dual")


def htanh(vector: Vector) -> Vector:
    """Eq. 6."""
    return [max(-1.0, min(1.0, z)) for z in vector]


def product(matrix: Matrix, vector: Vector) -> Vector:
    return [math.fsum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def total(*vectors: Vector) -> Vector:
    return [math.fsum(column) for column in zip(*vectors, strict=True)]


def log_softmax(logits: Vector) -> Vector:
    """Eq. 7."""
    log_z = math.log(math.fsum(math.exp(z) for z in logits))
    return [z - log_z for z in logits]


def features(table: Vector, words: Sequence[int]) -> Vector:
    """Σ_w D[hash(w, t)] of all t."""
    rows = [table[first_slot([w], S, V) : first_slot([w], S, V) + V] for w in words]
    return total(*rows) if rows else [0.0] * V


class SentenceLM:
    """Eqs. 4–8 with W_s (V, H), U_s, V_s and D."""

    def __init__(self, embedding: Tensor, recurrent: Tensor, output: Tensor, table: Tensor) -> None:
        self.W: Matrix = embedding.tolist()
        self.U: Matrix = recurrent.tolist()
        self.V: Matrix = output.tolist()
        self.D: Vector = table.tolist()
        self.hs, self.bag = [0.1] * H, set[int]()

    def read(self, words: Sequence[int]) -> None:
        """hs_j of the counts of the words."""
        self.hs = htanh(total(product(self.U, self.hs), *(self.W[w] for w in words)))
        self.bag = set(words)

    def log_probs(self) -> Vector:
        """log y of all words but `</s>`."""
        logits = total(product(self.V, self.hs), features(self.D, sorted(self.bag)))
        logits[END] = -math.inf
        return log_softmax(logits)


def sentence_lm(model: DocumentLM) -> SentenceLM:
    """The sentence level of any of the models, from its tensors."""
    context: object = model.context
    head: object = model.head
    if isinstance(context, SentenceLevel):
        context, head = context.level, context.next_words
    assert isinstance(context, SentenceBags)
    assert isinstance(head, HashedBagSoftmax)
    parts = context.table.weight, context.upper.recurrent[0]
    return SentenceLM(*parts, head.layer.weight(), head.hashes.weight)


def word_scores(model: DocumentLM, words: Sequence[int], hs: Vector | None) -> float:
    """Eq. 10 and the softmax of V_w hw_i and bigrams, `</s>` included; hs: of the sentences before.

    The state begins with 0.1 in each sentence.
    """
    named = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    added = [0.0] * H if hs is None else product(named["recurrence.beside"], hs)
    hw, score = [0.1] * H, 0.0
    for word, target in zip([START, *words], [*words, END], strict=True):
        own = named["embedding.weight"][word]
        hw = htanh(total(product(named["recurrence.recurrent.0"], hw), own, added))
        logits = product(named["head.layer.output"], hw)
        logits = total(logits, features(named["head.hashes.weight"], [word]))
        score += log_softmax(logits)[target]
    return score


@torch.no_grad()
def found(model: DocumentLM, before: list[list[int]], words: list[int]) -> float:
    request = Candidates.of([[words]]), context_after(model, before)
    return float(after(ScoringEngine.of(model), [request])[0][0][0, 0])


def test_rnnslm_scores_two_sentences_as_the_equations_say() -> None:
    """A word that stands twice counts twice in eq. 4, and once in eq. 8; no `</s>`."""
    model = tiny_model(ZOO["rnnslm"])
    by_hand = sentence_lm(model)
    first = math.fsum(by_hand.log_probs()[w] for w in FIRST)  # from hs_0 alone
    by_hand.read(FIRST)
    second = math.fsum(by_hand.log_probs()[w] for w in SECOND)
    assert found(model, [], FIRST) == pytest.approx(first, abs=1e-5)
    assert found(model, [FIRST], SECOND) == pytest.approx(second, abs=1e-5)
    by_hand.read(SECOND)
    third = math.fsum(by_hand.log_probs()[w] for w in FIRST)
    assert found(model, [FIRST, SECOND], FIRST) == pytest.approx(third, abs=1e-5)
    assert found(model, [FIRST], []) == 0.0


def test_rnnlm_lin_scores_a_sentence_as_the_equations_say() -> None:
    model = tiny_model(ZOO["rnnlm-lin"])
    assert found(model, [], FIRST) == pytest.approx(word_scores(model, FIRST, None), abs=1e-5)
    assert found(model, [FIRST], SECOND) == pytest.approx(
        word_scores(model, SECOND, None), abs=1e-5
    )


@pytest.mark.parametrize("name", ["hrnnlm-lin", "hrnnlm-lin-dual"])
def test_hrnnlm_lin_scores_two_sentences_as_the_equations_say(name: str) -> None:
    model = tiny_model(ZOO[name])
    by_hand = sentence_lm(model)
    first = word_scores(model, FIRST, by_hand.hs)
    by_hand.read(FIRST)
    second = word_scores(model, SECOND, by_hand.hs)
    assert found(model, [], FIRST) == pytest.approx(first, abs=1e-5)
    assert found(model, [FIRST], SECOND) == pytest.approx(second, abs=1e-5)
    assert abs(second - word_scores(model, SECOND, [0.1] * H)) > 1e-3  # the context matters


def test_states_are_clipped_at_one() -> None:
    """The equations hold where HTanh is flat, too."""
    model = tiny_model(ZOO["rnnslm"])
    with torch.no_grad():
        model.embedding.weight.mul_(20)
    by_hand = sentence_lm(model)
    by_hand.read(FIRST)
    assert {1.0, -1.0} <= set(by_hand.hs)
    second = math.fsum(by_hand.log_probs()[w] for w in SECOND)
    assert found(model, [FIRST], SECOND) == pytest.approx(second, abs=1e-4)


def test_rnnslm_does_not_see_the_order_of_words() -> None:
    model = tiny_model(ZOO["rnnslm"])
    truth = last_score(model, [*DOCUMENT[:2], FIRST])
    for words in permutations(FIRST):
        assert last_score(model, [*DOCUMENT[:2], list(words)]) == pytest.approx(truth, abs=1e-5)
    truth = last_score(model, [FIRST, SECOND, DOCUMENT[2]])
    for words in permutations(FIRST):  # bit for bit: equal bags leave equal contexts
        assert last_score(model, [list(words), SECOND, DOCUMENT[2]]) == truth
    assert last_score(model, [SECOND, FIRST, DOCUMENT[2]]) != pytest.approx(truth, abs=1e-4)


def corpus(sentences: Sequence[list[int]]) -> Corpus:
    """One document."""
    words = [word for sentence in sentences for word in sentence]
    offsets = np.cumsum([0, *map(len, sentences)])
    return Corpus(np.array(words, dtype=np.int32), offsets, np.array([0, len(sentences)]))


def losses(model: DocumentLM, sentences: Sequence[list[int]]) -> tuple[float, float]:
    """Mean loss of each sentence's words, summed over the sentences; and the auxiliary loss."""
    text = corpus(sentences)
    (segment,) = segments(text, [0], streams=1, length=len(sentences))
    reading = read(model, text, segment, model.context.start(1))
    nll = model.head.loss(reading.features, reading.targets, None, torch.Generator())
    return float((nll / reading.lengths).sum()), float(reading.auxiliary_loss)


@torch.no_grad()
def test_the_loss_of_a_sentence_is_the_mean_of_its_words() -> None:
    """Eq. 9, for RNNSLM as for the sentence level of HRNNLM."""
    document = [FIRST, SECOND, [9]]
    model = tiny_model(ZOO["hrnnlm-lin"])
    by_hand, truth = sentence_lm(model), 0.0
    for words in document:
        truth -= math.fsum(by_hand.log_probs()[w] for w in words) / len(words)
        by_hand.read(words)
    assert losses(model, document)[1] == pytest.approx(truth, rel=1e-5)


@torch.no_grad()
def test_the_loss_of_a_sentence_level_is_that_of_an_rnnslm_with_its_weights() -> None:
    rnnslm, model = tiny_model(ZOO["rnnslm"]), tiny_model(ZOO["hrnnlm-lin"])
    assert isinstance(model.context, SentenceLevel)
    assert isinstance(rnnslm.context, SentenceBags)
    assert isinstance(rnnslm.head, HashedBagSoftmax)
    truth, none = losses(rnnslm, DOCUMENT)
    assert none == 0.0
    assert rnnslm.head.averaged
    assert losses(model, DOCUMENT)[1] != pytest.approx(truth, rel=1e-3)
    model.context.level.load_state_dict(rnnslm.context.state_dict())
    model.context.next_words.load_state_dict(rnnslm.head.state_dict())
    assert losses(model, DOCUMENT)[1] == pytest.approx(truth, rel=1e-5)


@torch.no_grad()
def test_nats_of_the_words_of_many_sentences_are_those_of_each() -> None:
    model = tiny_model(ZOO["hrnnlm-lin"])
    text = corpus([FIRST, SECOND, [9]])
    contexts = model.context.start(3)
    whole = PackedBatch.of(text, np.arange(3))
    parts = [PackedBatch.of(text, np.array([n])) for n in range(3)]
    found = model.context.auxiliary_nll(contexts, whole)
    assert found is not None
    for n, part in enumerate(parts):
        alone = model.context.auxiliary_nll(contexts.take(slice(0, 1)), part)
        torch.testing.assert_close(found[whole.order[whole.rows] == n], alone)


def test_weights_start_as_in_the_paper() -> None:
    """§4.3: hs_0 = 0.1, U(±1/V) for inputs, U(±1/H) for outputs, D = 0."""
    wide, hidden = 500, 40
    model = DocumentLM.seeded(Config("hrnnlm-lin", wide, hidden, hidden, hash_size=600), 1)
    (state, bags) = model.context.start(2).tensors
    assert torch.equal(state, torch.full((2, hidden), 0.1))
    assert bags.shape == (2, 0)
    for name, parameter in model.named_parameters():
        largest = float(parameter.detach().abs().max())
        if name.endswith("hashes.weight"):
            assert largest == 0.0
            continue
        bound = 1 / hidden if name.endswith("output") else 1 / wide
        assert 0.9 * bound < largest <= bound, name


def test_an_embedding_of_another_size_is_refused() -> None:
    loose = Composition(SentenceBags, "lm.fusions:Output", "", "")
    with pytest.raises(ValueError, match="an embedding of 4 columns, found 3"):
        DocumentLM(Config("loose", 9, 3, 4), {"loose": loose})
