"""Topics of sequences of words, and what they are learned from."""

import numpy as np
from numpy.typing import NDArray

from lm.contexts.topics import STRETCH, TopicModel, counts_of
from lm.corpus import Corpus


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


def test_texts_are_stretches_of_documents_without_words_that_are_too_common_or_too_rare() -> None:
    """Word 3 is in every stretch, word 5 in one; 4 and 6 in two each of thirty; 0 is unknown."""
    long = [[3, 4, 4]] + [[3]] * (STRETCH - 1) + [[3, 4, 6, 0]]
    kept, counts = counts_of(Corpus.of([long, [[3, 5, 6]], [], *[[[3, 7], [8]]] * 27]), 9, 1)
    assert kept.tolist() == [4, 6]
    assert counts.toarray().tolist() == [[2, 0], [1, 1], [0, 1]]
    kept, counts = counts_of(Corpus.of([[[3, 4]], [[4, 3, 0]]]), 5, 1)  # all words are common
    assert kept.tolist() == [3, 4]
    assert counts.toarray().tolist() == [[1, 1], [1, 1]]
