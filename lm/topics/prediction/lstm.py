"""LSTMs that predict the topic of the next sentence (Ghosh et al. 2016, §5.1, §5.4, fig. 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.batches import PackedBatch, Segment
from lm.composition import RECURRENCES, load
from lm.contexts.states import ThoughtVector
from lm.noise import Noise
from lm.recurrences import Recurrence
from lm.sentences import Rows
from lm.topics.prediction import (
    LabelledText,
    Predictions,
    PredictorConfig,
    TopicPredictor,
    topic_vectors,
)

Drop = Callable[[Tensor], Tensor]


class LSTMPredictor(TopicPredictor):
    """Base: an LSTM over `<s>` and a sentence's words, whose last state predicts a topic.

    The input of every cell is [x_t T u] (eq. 3): the word's embedding, that of the topic, and the
    thought vector u of the previous sentence's last hidden state. Without words each sentence is
    one input. A joint target adds a softmax over the words and `</s>` at every position, and its
    loss is that of p(words, topic): the sum of both.

    Parameters beside those of `TopicPredictor`: the recurrence's, of inputs of K columns for words,
    K for topics and D for u; DH for u; (H + 1)V for a joint target. O(words · H²) time.

    carried: whether a sentence begins in the state after the previous one. Contexts are the whole
    recurrent states after the last sentence.
    """

    inputs = ("words", "topics", "thought")
    targets = ("topic", "joint")
    carried: ClassVar[bool]

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__(config)
        thought = ThoughtVector(config.hidden, config.thought) if config.reads("thought") else None
        self.thought = thought
        tables = config.reads("words") + config.reads("topics")
        columns = tables * config.embed + (0 if thought is None else thought.width)
        cell = load(RECURRENCES[config.recurrence or "peephole"])
        self.recurrence: Recurrence = cell(columns, config.hidden, config.layers)
        joint = config.target == "joint"
        self.words = nn.Linear(config.hidden, config.words) if joint else None

    def start(self, batch: int) -> Rows:
        """The state of zeros."""
        return Rows(self.recurrence.start(batch))

    def read(
        self,
        text: LabelledText,
        segment: Segment,
        contexts: Rows,
        noise: Noise | None = None,
        *,
        words: bool = True,
    ) -> Predictions:
        """Predictions after the sentences of a segment.

        All sentences are one batch where none depends on the one before; else those of one row.
        """
        begins = torch.from_numpy(segment.begins).to(contexts.device)
        contexts = contexts.put(begins, self.start(len(contexts)).take(begins))
        if not self.carried and self.thought is None:
            chosen = segment.sentences[segment.sentences >= 0]
            own, own_targets, nll, _ = self._read(
                text, chosen, self.start(len(chosen)), noise, words
            )
            return Predictions(own, own_targets, nll, contexts)
        logits, targets, nlls = [], [], []
        for row in segment.sentences:
            index = np.flatnonzero(row >= 0)
            if not len(index):
                break
            alive = torch.from_numpy(index).to(contexts.device)
            before = contexts.take(alive)
            own, own_targets, nll, after = self._read(text, row[index], before, noise, words)
            logits.append(own)
            targets.append(own_targets)
            nlls.append(nll)
            contexts = contexts.put(alive, after)
        nll = torch.stack(nlls).sum()
        return Predictions(torch.cat(logits), torch.cat(targets), nll, contexts)

    def _read(
        self,
        text: LabelledText,
        chosen: NDArray[np.int64],
        before: Rows,
        noise: Noise | None,
        words: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Rows]:
        """Logits, targets, the words' −log p, and the states after B sentences side by side."""
        drop = noise.drop if noise else _unchanged
        batch = PackedBatch.of(text.corpus, chosen, before.device)
        inputs = drop(self._inputs(text, chosen, batch, before))
        initial = before.tensors if self.carried else self.recurrence.start(len(chosen))
        initial = tuple(tensor[batch.order] for tensor in initial)
        states = self.recurrence.unroll(self.recurrence.project(inputs), initial, batch.sizes)
        last = batch.positions.last
        after = Rows(tuple(tensor[last] for tensor in states))
        features = drop(self.recurrence.output(after.tensors))
        nll = features.new_zeros(())
        if words and self.words is not None:
            hidden = drop(self.recurrence.output(states))
            nll = F.cross_entropy(self.words(hidden), batch.targets, reduction="sum")
        return *self.predicted(text, chosen, features), nll, after

    def _inputs(
        self, text: LabelledText, chosen: NDArray[np.int64], batch: PackedBatch, before: Rows
    ) -> Tensor:
        """Inputs (N, …) of the positions of packed sentences."""
        parts, sentence = [], batch.order[batch.rows]
        if self.embedding is not None:
            parts.append(self.embedding(batch.inputs))
        if self.topics is not None:
            parts.append(topic_vectors(self.topics, text.known[chosen])[sentence])
        if self.thought is not None:
            parts.append(self.thought(self.recurrence.output(before.tensors))[sentence])
        return torch.cat(parts, dim=1)


class UnrolledLSTM(LSTMPredictor):
    """The unrolled architecture, the better one in the paper: a separate LSTM for each sentence.

    Every sentence begins in the state of zeros, so that nothing but the thought vector, if it is an
    input, comes from earlier sentences. The LSTMs of all sentences have the same parameters: a
    paragraph may have any number of sentences.
    """

    carried = False


class RolledUpLSTM(LSTMPredictor):
    """The rolled-up architecture, that of word prediction: one LSTM for all sentences.

    The state is not reset between the sentences of a document. With a thought vector it is the
    model of fig. 8 and Table 5, whose LSTMs are "one long chain".
    """

    carried = True


def _unchanged(x: Tensor) -> Tensor:
    return x
