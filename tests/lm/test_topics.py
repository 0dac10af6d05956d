"""Topics of sequences of words, what they are learned from, and predictors of the next topic."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.side_information import SideText
from lm.topics import UNIT, TopicModel
from lm.topics.prediction.evaluation import Transitions
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
    """The first of equal ones; 0 without words that count."""
    model = given([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]], [0.0, -0.5, -3.0])
    for words, expected in (
        *(((3,), 2), ((4,), 1), ((3, 3, 4), 1), ((3, 3, 3, 4), 2), ((0, 4), 1)),
        *(((), 0), ((0, 0), 0), ((1, 2), 0)),
    ):
        assert topic(model, *words) == expected
    assert topic(given([[1.0, 1.0], [1.0, 1.0]], [0.0, 0.0]), 3, 4) == 1


def test_weights_are_kept_to_a_thousandth_up_to_a_number_for_each_word() -> None:
    weights = np.array([[-7.3, -2.1], [-1.2, -9.7]])
    model = given(weights.tolist(), [-1.0, -2.0])
    found = (model.terms[3:, 2] - model.terms[3:, 1]).numpy() / UNIT
    np.testing.assert_allclose(found, weights[:, 1] - weights[:, 0], atol=1 / UNIT)
    assert (model.prior / UNIT).tolist() == [0.0, -1.0]
    with pytest.raises(ValueError, match="as topics, 4, found 3; ask for fewer"):
        TopicModel(9, 4).learn(lambda *_: pytest.fail("reached"), Corpus.of([[[3], [4]]] * 3), 1)


def test_texts_are_stretches_of_documents_without_words_that_are_too_common_or_too_rare() -> None:
    """Word 3 is in every stretch, word 5 in one; 4 and 6 in two each of thirty; 0 is unknown."""
    long = [[3, 4, 4]] + [[3]] * (STRETCH - 1) + [[3, 4, 6, 0]]
    kept, counts = counts_of(Corpus.of([long, [[3, 5, 6]], [], *[[[3, 7], [8]]] * 27]), 9, 1)
    assert kept.tolist() == [4, 6]
    assert counts.toarray().tolist() == [[2, 0], [1, 1], [0, 1]]
    kept, counts = counts_of(Corpus.of([[[3, 4]], [[4, 3, 0]]]), 5, 1)  # all words are common
    assert kept.tolist() == [3, 4]
    assert counts.toarray().tolist() == [[1, 1], [1, 1]]


# Predictors of the next topic (Ghosh et al. 2016, §5)


def labelled(documents: list[list[list[int]]], topics: list[list[int]]) -> Corpus:
    """A corpus with a topic for each sentence; topic 0 is that of `<unk>`."""
    flat = np.array([topic for own in topics for topic in own])
    ids = np.where(flat > 0, flat + 2, 0).astype(np.int32)
    text = Corpus.of(documents)
    side: dict[str, Any] = {"topics": SideText(ids, np.arange(len(ids) + 1))}
    return Corpus(text.tokens, text.sentences, text.documents, side)


def test_baselines_have_their_probabilities_by_hand() -> None:
    """Topics 1 → 2, 2, 3 and 2 → 1; of four next topics two are 2; C = 5 topics."""
    transitions = Transitions.of(labelled([[[3]] * 2] * 4, [[1, 2], [1, 2], [1, 3], [2, 1]]), 5)
    assert transitions.counts.tolist() == [[1, 2, 2], [1, 3, 1], [2, 1, 1]]
    frequencies = np.array([1, 2, 3, 2, 1]) / 9
    np.testing.assert_allclose(transitions.frequencies(), frequencies)
    # Witten & Bell: two topics follow topic 1, three times
    after_1 = (np.array([0, 0, 2, 1, 0]) + 2 * frequencies) / 5
    np.testing.assert_allclose(transitions.given(1), after_1)
    np.testing.assert_allclose(transitions.given(4), frequencies)  # never seen
    figures = transitions.figures(labelled([[[3]] * 3, [[3]] * 2], [[1, 2, 2], [4, 3]]))
    most, before, bigram = (
        figures[name]
        for name in ("most frequent topic", "topic of the sentence before", "bigram of topics")
    )
    assert (most.predictions, most.correct, before.correct, bigram.correct) == (3, 2, 1, 1)
    assert most.nats == pytest.approx(-np.log(3 / 9 * 3 / 9 * 2 / 9))
    after_2 = (np.array([0, 1, 0, 0, 0]) + frequencies) / 2
    assert bigram.nats == pytest.approx(-np.log(after_1[2] * after_2[2] * frequencies[3]))
