"""Perplexity and accuracy of predicted topics: of predictors, and of what needs no training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lm.batches import segments
from lm.corpus import Corpus
from lm.scoring import ScoreError
from lm.topics.prediction import LabelledText, TopicPredictor, topics_of

STREAMS, LENGTH = 32, 16  # of the segments that are read at once
MOST_NATS = 700.0  # a topic; exp of more overflows


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """Counts of predicted topics: nats is −Σ log p of the topics, infinite where one has p = 0.

    correct: how often the most probable topic, the first of equal ones, was the right one.
    """

    predictions: int
    correct: int
    nats: float = math.inf

    @property
    def accuracy(self) -> float:
        """Share of the predictions that are right."""
        return self.correct / self.predictions

    @property
    def nats_per_topic(self) -> float:
        """Nats / predictions."""
        return self.nats / self.predictions

    @property
    def perplexity(self) -> float | None:
        """exp(nats_per_topic), None if that is infinite."""
        return math.exp(self.nats_per_topic) if self.nats < math.inf else None

    def as_json(self) -> dict[str, float | None]:
        """The figures by name."""
        return {"perplexity": self.perplexity, "accuracy": self.accuracy}


@torch.no_grad()
def measure(model: TopicPredictor, text: LabelledText) -> TopicFigures:
    """Figures of a predictor, which is set to evaluation, on a text with at least one prediction.

    ScoreError if its weights give no probabilities.
    """
    model.eval()
    contexts, order = model.start(STREAMS), range(text.corpus.n_documents)
    nats, correct, predictions = 0.0, 0, 0
    for segment in segments(text.corpus, order, streams=STREAMS, length=LENGTH):
        found = model.read(text, segment, contexts, words=False)
        contexts = found.contexts
        nats += float(found.nll().double().sum())
        correct += found.correct
        predictions += len(found.targets)
    if not nats / max(1, predictions) < MOST_NATS:  # NaN, too
        raise ScoreError(f"expected log-probabilities of topics, found a sum of {-nats} nats")
    return TopicFigures(predictions, correct, nats)


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Counts of neighbouring sentences' topics, for baselines that need no other training.

    counts: (P, 3) int64 of the pairs that occur, ordered: the topic of a sentence, that of the
    next one, and how often. topics: C.
    """

    counts: NDArray[np.int64]
    topics: int

    @classmethod
    def of(cls, corpus: Corpus, topics: int) -> Transitions:
        """The transitions within the documents of a corpus with labels."""
        before, after = transitions_of(corpus)
        keys, counts = np.unique(before * topics + after, return_counts=True)
        return cls(np.stack([keys // topics, keys % topics, counts], axis=1), topics)

    def frequencies(self) -> NDArray[np.float64]:
        """p(T) (C,) of a next sentence's topic: counts, and one more for each topic."""
        counts = np.bincount(self.counts[:, 1], self.counts[:, 2], self.topics) + 1.0
        found: NDArray[np.float64] = counts / counts.sum()
        return found

    def given(self, before: int) -> NDArray[np.float64]:
        """p(T | T′) (C,), interpolated with p(T) as Witten & Bell 1991 do.

        (n(T′, T) + t p(T)) / (n(T′) + t), with the number t of topics that follow T′.
        """
        own = self.counts[self.counts[:, 0] == before]
        probabilities = self.frequencies()
        if len(own):
            probabilities *= len(own)
            probabilities[own[:, 1]] += own[:, 2]
            probabilities /= own[:, 2].sum() + len(own)
        return probabilities

    def figures(self, corpus: Corpus) -> Mapping[str, TopicFigures]:
        """Figures of the baselines on another text, by name. O(S + C · distinct topics) time."""
        before, after = transitions_of(corpus)
        frequencies, n = self.frequencies(), len(after)
        nats, correct = 0.0, 0
        for topic in np.unique(before).tolist():
            given, own = self.given(topic), after[before == topic]
            nats -= float(np.log(given[own]).sum())
            correct += int((own == given.argmax()).sum())
        return {
            "most frequent topic": TopicFigures(
                n,
                int((after == frequencies.argmax()).sum()),
                -float(np.log(frequencies[after]).sum()),
            ),
            "topic of the sentence before": TopicFigures(n, int((after == before).sum())),
            "bigram of topics": TopicFigures(n, correct, nats),
        }


def transitions_of(corpus: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Topics (N,) of each sentence of a document with a next one, and of the next one."""
    topics = topics_of(corpus)
    last = np.zeros(len(topics), dtype=np.bool_)
    last[corpus.documents[1:][np.diff(corpus.documents) > 0] - 1] = True
    place = np.flatnonzero(~last)
    return topics[place], topics[place + 1]
