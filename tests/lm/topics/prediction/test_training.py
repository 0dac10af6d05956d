"""Training of topic predictors: better than bigrams where topics follow a rule, and repeatable."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from support.topic_prediction import LABELS, labelled

from lm.corpus import Corpus
from lm.topics.prediction import LabelledText, PredictorConfig, TopicPredictor, make
from lm.topics.prediction.evaluation import TopicFigures, Transitions, measure
from lm.topics.prediction.training import EpochReport, PredictorSettings, train

V, TOPICS = 20, 4
HINTS = 3 + 4 * np.arange(TOPICS)  # word ids
SETTINGS = PredictorSettings(epochs=8, learning_rate=0.03, streams=8, dropout=0.0)


def by_hints(documents: int, seed: int) -> Corpus:
    """Topics are random; a word of each sentence says which one the next sentence has."""
    rng = np.random.default_rng(seed)
    topics = 1 + rng.integers(TOPICS, size=(documents, 6))
    sentences = [
        [[4, int(HINTS[topic - 1]), 5] for topic in [*own[1:], own[0]]] for own in topics.tolist()
    ]
    return labelled(sentences, topics.tolist())


def by_turns(documents: int, seed: int) -> Corpus:
    """The first two topics of a document are random, and take turns from then on."""
    rng = np.random.default_rng(seed)
    topics = [rng.choice(np.arange(1, 1 + TOPICS), 2, replace=False) for _ in range(documents)]
    return labelled([[[4]] * 8] * documents, [own.tolist() * 4 for own in topics])


def trained(
    corpus: Corpus, valid: Corpus, settings: PredictorSettings = SETTINGS, **shape: Any
) -> tuple[TopicPredictor, list[EpochReport]]:
    config = PredictorConfig(V, LABELS, embed=8, hidden=16, **shape)
    model = make(config, settings.seed)
    text, held_out = (LabelledText.of(one, config) for one in (corpus, valid))
    return model, list(train(model, text, held_out, settings))


def measured(model: TopicPredictor, corpus: Corpus) -> TopicFigures:
    return measure(model, LabelledText.of(corpus, model.config))


@pytest.mark.parametrize(
    ("architecture", "inputs"),
    [
        ("unrolled", "words"),
        ("unrolled", "words+topics"),
        ("rolled-up", "words"),
        ("bow-dnn", "words"),
    ],
)
def test_words_that_tell_the_next_topic_are_learned(architecture: str, inputs: str) -> None:
    text, valid, test = (by_hints(n, seed) for n, seed in ((60, 1), (20, 2), (20, 3)))
    model, _ = trained(text, valid, architecture=architecture, inputs=inputs)
    found = measured(model, test)
    bigram = Transitions.of(text, model.config.topics).figures(test)["bigram of topics"]
    assert found.accuracy > 0.95 > 0.5 > bigram.accuracy
    assert found.nats_per_topic < 0.3 < 1.2 < bigram.nats_per_topic


def test_a_joint_target_predicts_the_words_too() -> None:
    """Topics are learned more slowly beside words, as in §5 of the paper."""
    text, valid = by_hints(60, 1), by_hints(20, 2)
    settings = replace(SETTINGS, epochs=14, streams=4, learning_rate=0.05)
    model, reports = trained(text, valid, settings, target="joint", inputs="words")
    found = measured(model, valid)
    bigram = Transitions.of(text, model.config.topics).figures(valid)["bigram of topics"]
    assert found.nats_per_topic < 0.5 * bigram.nats_per_topic
    # five topics of six sentences are predicted; one word of a sentence is any of four
    words = reports[-1].training_nats - found.nats_per_topic
    assert words == pytest.approx(6 / 5 * np.log(TOPICS), rel=0.2)


def test_the_words_of_the_next_sentence_tell_what_those_before_do_not() -> None:
    """Here a word says which topic its own sentence has."""
    shifted: list[Corpus] = []
    for n, seed in ((60, 1), (20, 2)):
        corpus = by_hints(n, seed)
        sentences = corpus.tokens.reshape(n, 6, 3)
        moved = np.roll(sentences, 1, axis=1)
        shifted.append(replace(corpus, tokens=np.ascontiguousarray(moved).reshape(-1)))
    for given, least, most in ((True, 0.95, 1.0), (False, 0.0, 0.5)):
        model, _ = trained(shifted[0], shifted[1], given_next_words=given, inputs="words")
        assert least <= measured(model, shifted[1]).accuracy <= most


@pytest.mark.parametrize(
    ("architecture", "inputs", "learns"),
    [
        ("rolled-up", "topics", True),
        ("rolled-up", "words+topics", True),
        ("rolled-up", "words+topics+thought", True),
        ("unrolled", "words+topics+thought", True),
        ("unrolled", "words+topics", False),
        ("bow-dnn", "words+topics", False),
    ],
)
def test_topics_of_two_sentences_ago_are_learned_where_they_are_remembered(
    architecture: str, inputs: str, learns: bool
) -> None:
    """All predictions of a document but the first one are certain."""
    text, valid = by_turns(60, 1), by_turns(20, 2)
    settings = replace(SETTINGS, epochs=12)
    model, _ = trained(text, valid, settings, architecture=architecture, inputs=inputs)
    found = measured(model, valid)
    bigram = Transitions.of(text, model.config.topics).figures(valid)["bigram of topics"]
    assert bigram.accuracy < 0.5
    assert (found.accuracy > 0.65) == learns
    assert (found.nats_per_topic < 0.7 * bigram.nats_per_topic) == learns


def test_the_best_weights_are_kept_and_patience_ends_a_run() -> None:
    """Topics without a rule: the longer the training, the worse the validation."""
    rng = np.random.default_rng(4)
    corpora = []
    for n in (8, 30):
        topics = 1 + rng.integers(TOPICS, size=(n, 6))
        words = rng.integers(3, V, size=(n, 6, 4))
        corpora.append(labelled(words.tolist(), topics.tolist()))
    settings = replace(SETTINGS, epochs=20, patience=2, schedule="constant")
    model, reports = trained(corpora[0], corpora[1], settings)
    nats = [one.valid.nats_per_topic for one in reports]
    assert len(reports) < 20
    best = int(np.argmin(nats))
    assert len(reports) == best + 3
    assert [one.best for one in reports][best:] == [True, False, False]
    assert measured(model, corpora[1]).nats_per_topic == pytest.approx(nats[best], rel=1e-6)


def test_a_halved_rate_ends_a_run_after_the_second_epoch_that_gains_little() -> None:
    settings = replace(SETTINGS, epochs=30, patience=0, schedule="halving")
    _, reports = trained(by_turns(20, 1), by_turns(5, 2), settings)
    assert len(reports) < 30
    nats = [one.valid.nats_per_topic for one in reports]
    ratios = [before / after for before, after in pairwise(nats)]
    assert sum(ratio <= 1.003 for ratio in ratios) == 2
    assert ratios[-1] <= 1.003


def test_a_run_is_a_function_of_its_seed() -> None:
    text, valid = by_hints(20, 1), by_hints(5, 2)
    settings = replace(SETTINGS, epochs=2, dropout=0.3)
    first, again, other = (
        trained(text, valid, replace(settings, seed=seed))[0].state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
