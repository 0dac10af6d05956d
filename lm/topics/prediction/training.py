"""Training of topic predictors: updates over segments of documents, and a validated best.

The loss is the mean −log p of the topics of an update, and with a joint target the sum of −log p
of the words beside it. `lm.training.trainer` trains language models, whose loss is that of a head
over words; segments, optimisers and schedules are the same here. All randomness is a function of
the seed and the update's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lm.batches import carried_segments
from lm.noise import Noise
from lm.topics.prediction import LabelledText, TopicPredictor
from lm.topics.prediction.evaluation import TopicFigures, measure
from lm.training.optimisers import OPTIMISERS, clip
from lm.training.schedules import MOST_HALVINGS, SCHEDULES, Position, fell


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


def train(
    model: TopicPredictor, text: LabelledText, valid: LabelledText, settings: PredictorSettings
) -> Iterator[EpochReport]:
    """Train a predictor, an item after each epoch; in the end it has its best weights.

    The best ones have the lowest perplexity of the validation text's topics. ScoreError if
    training diverges.
    """
    streams = max(1, min(settings.streams, text.corpus.n_documents // 4))
    kept: dict[str, Tensor] = {}
    best = before = None
    failures = halvings = made = 0
    optimiser = OPTIMISERS[settings.optimiser].create(
        list(model.parameters()), settings.learning_rate, settings.weight_decay
    )
    schedule = SCHEDULES[settings.schedule]
    for epoch in range(settings.epochs):
        order = {"streams": streams, "length": settings.segment, "seed": settings.seed}
        found = list(carried_segments(text.corpus, epoch=epoch, **order))
        total = settings.epochs * len(found)
        contexts, nats, predictions = model.start(streams), 0.0, 0
        model.train()
        for segment in found:
            place = Position(made, total, made / total, halvings)
            for group in optimiser.param_groups:
                group["lr"] = schedule.rate(settings.learning_rate, place)
            generator = torch.Generator(model.output.weight.device)
            generator.manual_seed((settings.seed << 32) + made)
            noise = Noise(settings.dropout, 0.0, generator)
            read = model.read(text, segment, contexts, noise)
            contexts = read.contexts.detach()
            loss = read.nll().sum() + read.word_nll
            made += 1
            if not loss.requires_grad or not len(read.targets):
                continue
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss / len(read.targets))
            clip(model.parameters(), settings.clip)
            optimiser.step()
            nats += float(loss.detach())
            predictions += len(read.targets)
        figures = measure(model, valid)
        now = float(np.log(figures.perplexity or np.inf))
        improved = best is None or now < best
        failures = 0 if improved else failures + 1
        if improved:
            best = now
            kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        yield EpochReport(epoch + 1, nats / max(1, predictions), figures, improved)
        halvings, before = halvings + (not fell(before, now)), now
        if failures >= settings.patience > 0 or (
            schedule.halves and halvings >= MOST_HALVINGS
        ):
            break
    model.load_state_dict(kept)
