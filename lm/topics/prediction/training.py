"""Training of topic predictors: updates over segments of documents, and a validated best.

The loss is the mean −log p of the topics of an update, and with a joint target the sum of −log p
of the words beside it. `lm.training.trainer` trains language models, whose loss is that of a head
over words; segments, optimisers and schedules are the same here. All randomness is a function of
the seed and the update's number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lm.batches import carried_segments
from lm.noise import Noise
from lm.topics.prediction import LabelledText, TopicPredictor
from lm.topics.prediction.evaluation import TopicFigures, measure
from lm.training.optimisers import MOST_HALVINGS, OPTIMISERS, SCHEDULES, Position, clip, fell


@dataclass(frozen=True, slots=True)
class PredictorSettings:
    """Settings of a run, which the paper does not give.

    epochs: at most; patience: validations without a new best after which it ends, 0 for none;
    there is one after every epoch. streams: documents side by side; segment: sentences through
    which gradients go. Other fields: as of `lm.training.settings.Settings`.
    """

    epochs: int = 10
    patience: int = 3
    seed: int = 1
    streams: int = 16
    segment: int = 8
    optimiser: str = "adamw"
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    clip: float = 5.0
    schedule: str = "annealed"
    dropout: float = 0.2


@dataclass(frozen=True, slots=True)
class EpochReport:
    """State of a run after an epoch; training_nats: of a topic, and of the words beside it."""

    epoch: int
    training_nats: float
    valid: TopicFigures
    best: bool


class _Run:
    """A predictor in training: its optimiser, and how many updates it has made of how many."""

    def __init__(
        self, model: TopicPredictor, text: LabelledText, settings: PredictorSettings
    ) -> None:
        self.model, self.text, self.settings = model, text, settings
        self.streams = max(1, min(settings.streams, text.corpus.n_documents // 4))
        self.schedule = SCHEDULES[settings.schedule]
        self.optimiser = OPTIMISERS[settings.optimiser].create(
            list(model.parameters()), settings.learning_rate, settings.weight_decay
        )
        self.updates = self.halvings = 0

    def epoch(self, number: int) -> float:
        """Make the updates of an epoch; the mean loss of a prediction."""
        settings, model = self.settings, self.model
        found = list(
            carried_segments(
                self.text.corpus,
                streams=self.streams,
                length=settings.segment,
                seed=settings.seed,
                epoch=number,
            )
        )
        contexts, nats, predictions = model.start(self.streams), 0.0, 0
        model.train()
        for segment in found:
            generator = torch.Generator(model.output.weight.device)
            generator.manual_seed((settings.seed << 32) + self.updates)
            noise = Noise(settings.dropout, 0.0, generator)
            read = model.read(self.text, segment, contexts, noise)
            contexts = read.contexts.detach()
            if n := len(read.targets):
                loss = read.nll().sum() + read.word_nll
                self._update(loss / n, settings.epochs * len(found))
                nats += float(loss.detach())
                predictions += n
            self.updates += 1
        return nats / max(1, predictions)

    def _update(self, loss: Tensor, total: int) -> None:
        """One update of the weights, of `total` at most."""
        settings = self.settings
        place = Position(self.updates, total, self.updates / total, self.halvings)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate(settings.learning_rate, place)
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        clip(self.model.parameters(), settings.clip)
        self.optimiser.step()


def train(
    model: TopicPredictor, text: LabelledText, valid: LabelledText, settings: PredictorSettings
) -> Iterator[EpochReport]:
    """Train a predictor, an item after each epoch; in the end it has its best weights.

    The best ones have the lowest perplexity of the validation text's topics. ScoreError if
    training diverges.
    """
    run = _Run(model, text, settings)
    kept: dict[str, Tensor] = {}
    best, before, failures = math.inf, None, 0
    for epoch in range(settings.epochs):
        training_nats = run.epoch(epoch)
        figures = measure(model, valid)
        now = figures.nats_per_topic
        failures = 0 if now < best else failures + 1
        if now < best:
            best = now
            kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        yield EpochReport(epoch + 1, training_nats, figures, failures == 0)
        run.halvings += not fell(before, now)
        before = now
        halved = run.schedule.halves and run.halvings >= MOST_HALVINGS
        if halved or failures >= settings.patience > 0:
            break
    model.load_state_dict(kept)
