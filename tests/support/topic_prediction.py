"""Texts with topics, and predictors of them, for tests."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lm.composition import TOPIC_INPUTS
from lm.corpus import Corpus
from lm.side_information import SideText
from lm.topics.prediction import PredictorConfig, TopicPredictor, make

V, LABELS = 9, 7  # sizes of vocabularies, special words included; topics are 0 … 4
DOCUMENTS = [
    [[3, 4, 8], [], [5, 5, 6, 3]],
    [[7, 3]],
    [[4], [6, 7, 8, 3, 4], [0, 3], [5], [8, 8]],
    [[6], [3]],
]
TOPICS = [[1, 3, 1], [2], [4, 1, 0, 2, 1], [3, 4]]


def labelled(
    documents: Sequence[Sequence[Sequence[int]]], topics: Sequence[Sequence[int]]
) -> Corpus:
    """A corpus with a topic for each sentence; topic 0 is that of `<unk>`."""
    flat = np.array([topic for own in topics for topic in own], dtype=np.int32)
    ids = np.where(flat > 0, flat + 2, 0).astype(np.int32)
    side = {"topics": SideText(ids, np.arange(len(ids) + 1))}
    return replace(Corpus.of(documents), side=side)


def configs() -> list[PredictorConfig]:
    """Every architecture with every input and target that it has."""
    found = []
    for n, inputs in enumerate(TOPIC_INPUTS):
        for architecture in ("unrolled", "rolled-up"):
            layers = 1 + n % 2
            shape = PredictorConfig(
                V, LABELS, architecture, inputs, embed=3, hidden=4, layers=layers
            )
            found.append(shape)
            if shape.reads("words"):
                found.append(replace(shape, target="joint", recurrence="lstm"))
                found.append(replace(shape, given_next_words=True))
    for inputs, layers in (("words", 1), ("topics", 2), ("words+topics", 2)):
        found.append(
            PredictorConfig(V, LABELS, "bow-dnn", inputs, embed=3, hidden=4, layers=layers)
        )
    return [*found, replace(found[-1], given_next_words=True)]


def predictor(config: PredictorConfig) -> TopicPredictor:
    """A predictor of random weights, none of them 0, in evaluation."""
    model = make(config, 3)
    rng = np.random.default_rng(5)
    for parameter in model.parameters():
        noise = rng.normal(scale=0.4, size=parameter.shape)
        parameter.data += parameter.new_tensor(noise)
    return model.eval()


def name_of(config: PredictorConfig) -> str:
    """A test's id."""
    return "-".join(
        [config.architecture, config.inputs, config.target]
        + ["given-next-words"] * config.given_next_words
    )
