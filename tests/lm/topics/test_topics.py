"""Topics of sequences of words: sums, and what they are learned from."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.topics import UNIT, TopicModel
from lm.topics.texts import STRETCH, counts_of


def given(weights: list[list[float]], prior: list[float]) -> TopicModel:
    """A topic model whose words 3, 4, … have these weights."""

    def learner(*_: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.array(weights), np.array(prior)

    n = len(weights)
    model = TopicModel(3 + n, len(prior))
    sentences = [[word] for word in range(3, 3 + n) for _ in range(STRETCH * 3)]
    model.learn(learner, Corpus.of([sentences]), 1)
    return model


def topic(model: TopicModel, *words: int) -> int:
    return model.of_sentence(np.array(words, dtype=np.int32))


def test_the_topic_of_a_sequence_has_the_largest_sum_with_the_prior() -> None:
    model = given([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [0.0, -0.5, -3.0])
    assert [topic(model, 3), topic(model, 4), topic(model, 3, 3, 4)] == [2, 1, 1]
    assert topic(model, 3, 3, 3, 4) == 2
    assert topic(model, 4, 3, 3, 3) == 2


def test_a_sequence_without_words_that_count_has_topic_zero() -> None:
    model = given([[0.0, 1.0], [1.0, 0.0]], [0.0, 0.0])
    assert topic(model) == topic(model, 0, 0) == topic(model, 1, 2) == 0
    assert topic(model, 0, 4) == 1


def test_equal_sums_have_the_first_of_their_topics() -> None:
    assert topic(given([[1.0, 1.0], [1.0, 1.0]], [0.0, 0.0]), 3, 4) == 1


def test_weights_are_kept_to_a_thousandth_up_to_a_number_for_each_word() -> None:
    weights = np.array([[-7.3, -2.1], [-1.2, -9.7]])
    model = given(weights.tolist(), [-1.0, -2.0])
    expected = weights[:, 1] - weights[:, 0]
    found = (model.terms[3:, 2] - model.terms[3:, 1]).numpy() / UNIT
    np.testing.assert_allclose(found, expected, atol=1 / UNIT)
    assert (model.prior / UNIT).tolist() == [0.0, -1.0]


def test_more_topics_than_stretches_are_refused() -> None:
    model = TopicModel(9, 4)
    with pytest.raises(ValueError, match="as topics, 4, found 3; ask for fewer"):
        model.learn(lambda *_: pytest.fail("not reached"), Corpus.of([[[3], [4]]] * 3), 1)


def test_texts_are_stretches_of_documents_without_words_that_are_too_common_or_too_rare() -> None:
    """Word 3 is in every stretch, word 5 in one; 4 and 6 in two each of thirty; 0 is unknown."""
    long = [[3, 4, 4]] + [[3]] * (STRETCH - 1) + [[3, 4, 6, 0]]
    corpus = Corpus.of([long, [[3, 5, 6]], [], *[[[3, 7], [8]]] * 27])
    kept, counts = counts_of(corpus, 9, 1)
    assert kept.tolist() == [4, 6]
    assert counts.toarray().tolist() == [[2, 0], [1, 1], [0, 1]]


def test_a_text_whose_words_are_all_common_keeps_them() -> None:
    kept, counts = counts_of(Corpus.of([[[3, 4]], [[4, 3, 0]]]), 5, 1)
    assert kept.tolist() == [3, 4]
    assert counts.toarray().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("kind", ["kmeans", "lda"])
def test_planted_topics_are_found(kind: str) -> None:
    """Two sets of words that never occur together, behind a word that occurs everywhere."""
    pytest.importorskip("sklearn")
    from lm.composition import TOPIC_MODELS, load

    rng = np.random.default_rng(3)
    sets = np.arange(4, 64), np.arange(64, 124)
    documents = [[[3, *rng.choice(sets[n % 2], 8).tolist()]] for n in range(400)]
    found = []
    for _ in range(2):
        model = TopicModel(124, 2)
        model.learn(load(TOPIC_MODELS[kind]), Corpus.of(documents), 1)
        found.append([topic(model, *sentence) for (sentence,) in documents])
        assert topic(model, 3) == 0
    assert found[0] == found[1]
    assert {tuple(found[0][n::2]) for n in range(2)} == {(1,) * 200, (2,) * 200}


def test_sums_over_a_tree_of_prefixes_are_those_of_its_paths() -> None:
    from lm.sentences import Positions

    before = torch.tensor([-1, -1, 0, 1, 0, 2, 5, 6, 7])
    positions = Positions(before, before, before, before, 8)
    terms = torch.randint(0, 99, (9, 2), generator=torch.Generator().manual_seed(1))
    expected = []
    for at in range(9):
        total, n = terms[at].clone(), at
        while (n := int(before[n])) >= 0:
            total += terms[n]
        expected.append(total)
    assert torch.equal(positions.sums(terms), torch.stack(expected))
