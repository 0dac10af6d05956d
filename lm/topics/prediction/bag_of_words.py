"""The baseline of Ghosh et al. 2016, §5.3: a feed-forward network over a bag of words."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.batches import Segment
from lm.noise import Noise
from lm.sentences import Rows
from lm.side_information import SideText
from lm.topics.prediction import (
    LabelledText,
    Predictions,
    PredictorConfig,
    TopicPredictor,
    topic_vectors,
)


class BagOfWords(TopicPredictor):
    """BOW-DNN: h = tanh(W x + b), layer on layer, of x, the mean of a sentence's embeddings.

    With topics as inputs x is [mean T]. The paper gives neither the weights of the words nor the
    layers. Parameters beside those of `TopicPredictor`: H(d + 1) for d columns of x, and H(H + 1)
    a further layer. Sentences are independent of each other; contexts are empty.
    """

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__(config)
        if config.recurrence is not None:
            raise ValueError(f"bow-dnn has no recurrence, found {config.recurrence!r}")
        columns = (config.reads("words") + config.reads("topics")) * config.embed
        widths = [columns] + [config.hidden] * (config.layers - 1)
        self.layers = nn.ModuleList(nn.Linear(width, config.hidden) for width in widths)

    def start(self, batch: int) -> Rows:
        """Nothing."""
        return Rows.of(self.output.bias.new_zeros(batch, 0))

    def read(
        self,
        text: LabelledText,
        segment: Segment,
        contexts: Rows,
        noise: Noise | None = None,
        *,
        words: bool = True,
    ) -> Predictions:
        """Predictions after the sentences of a segment, which are one batch."""
        chosen = segment.sentences[segment.sentences >= 0]
        features = self._inputs(text, chosen)
        if noise:
            features = noise.drop(features)
        for layer in self.layers:
            features = torch.tanh(layer(features))
        if noise:
            features = noise.drop(features)
        logits, targets = self.predicted(text, chosen, features)
        return Predictions(logits, targets, logits.new_zeros(()), contexts)

    def _inputs(self, text: LabelledText, chosen: NDArray[np.int64]) -> Tensor:
        """Inputs (M, d) of M sentences; the mean of no words is 0."""
        parts = []
        if self.embedding is not None:
            own = SideText(text.corpus.tokens, text.corpus.sentences).take(chosen)
            weight = self.embedding.weight
            words, offsets = (
                torch.from_numpy(column.astype(np.int64)).to(weight.device)
                for column in (own.tokens, own.sentences[:-1])
            )
            parts.append(F.embedding_bag(words, weight, offsets, mode="mean"))
        if self.topics is not None:
            parts.append(topic_vectors(self.topics, text.known[chosen]))
        return torch.cat(parts, dim=1)
