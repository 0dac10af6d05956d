"""Figures of topic predictors, and baselines by hand."""

import math

import numpy as np
import pytest
import torch
from support.topic_prediction import DOCUMENTS, LABELS, TOPICS, V, labelled, predictor

from lm.scoring import ScoreError
from lm.topics.prediction import LabelledText, PredictorConfig
from lm.topics.prediction.evaluation import TopicFigures, Transitions, measure, transitions_of

CONFIG = PredictorConfig(V, LABELS, "rolled-up", embed=3, hidden=4)


def test_figures_are_exponents_and_shares() -> None:
    figures = TopicFigures(4, 3, 8.0)
    assert figures.as_json() == {"perplexity": pytest.approx(math.exp(2)), "accuracy": 0.75}
    assert TopicFigures(4, 3).as_json() == {"perplexity": None, "accuracy": 0.75}


def test_figures_do_not_depend_on_how_documents_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    model = predictor(CONFIG)
    text = LabelledText.of(labelled(DOCUMENTS, TOPICS), CONFIG)
    found = []
    for streams, length in ((32, 16), (1, 1), (3, 2)):
        monkeypatch.setattr("lm.topics.prediction.evaluation.STREAMS", streams)
        monkeypatch.setattr("lm.topics.prediction.evaluation.LENGTH", length)
        found.append(measure(model, text))
    assert [one.predictions for one in found] == [7] * 3
    assert len({one.correct for one in found}) == 1
    assert [one.nats for one in found] == [pytest.approx(found[0].nats, rel=1e-5)] * 3


def test_weights_without_probabilities_are_an_error() -> None:
    model = predictor(CONFIG)
    model.output.bias.data[0] = torch.nan
    text = LabelledText.of(labelled(DOCUMENTS, TOPICS), CONFIG)
    with pytest.raises(ScoreError, match="expected log-probabilities of topics"):
        measure(model, text)


def test_transitions_are_within_documents() -> None:
    before, after = transitions_of(labelled(DOCUMENTS, TOPICS))
    assert list(zip(before.tolist(), after.tolist(), strict=True)) == [
        *((1, 3), (3, 1), (4, 1), (1, 0), (0, 2), (2, 1), (3, 4))
    ]


def test_baselines_have_their_probabilities_by_hand() -> None:
    """Topics 1 → 2, 2, 3 and 2 → 1; of four next topics two are 2; C = 5 topics."""
    train = labelled([[[3]] * 2] * 4, [[1, 2], [1, 2], [1, 3], [2, 1]])
    transitions = Transitions.of(train, 5)
    assert transitions.counts.tolist() == [[1, 2, 2], [1, 3, 1], [2, 1, 1]]
    frequencies = np.array([1, 2, 3, 2, 1]) / 9
    np.testing.assert_allclose(transitions.frequencies(), frequencies)
    # Witten & Bell: two topics follow topic 1, three times
    after_1 = (np.array([0, 0, 2, 1, 0]) + 2 * frequencies) / 5
    np.testing.assert_allclose(transitions.given(1), after_1)
    np.testing.assert_allclose(transitions.given(4), frequencies)  # never seen
    for topic in range(5):
        assert transitions.given(topic).sum() == pytest.approx(1.0)
    test = labelled([[[3]] * 3, [[3]] * 2], [[1, 2, 2], [4, 3]])
    figures = transitions.figures(test)
    most, before, bigram = (
        figures[name]
        for name in ("most frequent topic", "topic of the sentence before", "bigram of topics")
    )
    assert (most.predictions, most.correct) == (3, 2)
    assert most.nats == pytest.approx(-math.log(3 / 9 * 3 / 9 * 2 / 9))
    assert (before.correct, before.perplexity) == (1, None)
    after_2 = (np.array([0, 1, 0, 0, 0]) + frequencies) / 2
    assert bigram.nats == pytest.approx(-math.log(after_1[2] * after_2[2] * frequencies[3]))
    assert bigram.correct == 1
