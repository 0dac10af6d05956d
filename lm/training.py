"""Training on segments of many documents side by side, with an annealed learning rate.

The loss is Ji et al.'s: −log p summed over segments of L = 5 sentences, mean over the
segments of an update, gradient clipped to norm 5. The recipe is stronger than the paper's
SGD: AdamW, dropout, contexts carried (without gradient) between the segments of a document,
and some contexts replaced by the null context, so that the model also scores without context.
Sparse parameters have an optimiser of their own (`lm.sparse_updates`) and are not clipped.

Everything random is a function of the seed and the update's number, so that a resumed run
makes the updates of an uninterrupted one, unless it has a time limit, which the learning
rate follows too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from lm.batches import Segment, epoch_order, segments
from lm.corpus import Corpus
from lm.evaluation import LogNormalisers, perplexity
from lm.model import DocumentLM, sparse_parameters
from lm.reading import Noise, read
from lm.sparse_updates import RATE, sparse_optimiser
from lm.vocabulary import END


@dataclass(frozen=True, slots=True)
class Settings:
    """The recipe. `negatives` 0, or more than a quarter of V, means the exact softmax."""

    epochs: int = 5
    minutes: float | None = None
    seed: int = 1
    streams: int = 64
    segment: int = 5
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    clip: float = 5.0
    dropout: float = 0.1
    context_dropout: float = 0.1
    negatives: int = 1024
    validations: int = 4
    precision: str = "float32"


@dataclass(frozen=True, slots=True)
class Report:
    """State of a run after a validation; nats are per token, `</s>` included.

    training_nats: of the head's loss. log_z: on the validation text, if the head is not normalised.
    predicts_end: whether `</s>` is one of the tokens.
    """

    update: int
    epoch: float
    seconds: float
    words_per_second: float
    training_nats: float
    valid_perplexity: float
    best: bool
    log_z: LogNormalisers | None = None
    predicts_end: bool = True


@dataclass(slots=True)
class Progress:
    """Position of a run: what a resumed run needs besides the tensors."""

    update: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    best: float | None = None
    finished: bool = False
    nats: float = 0.0  # since the last report; so are the next two
    predictions: int = 0
    reported: float = 0.0


class Trainer:
    """One training run over a corpus; `run` makes its updates."""

    def __init__(
        self, model: DocumentLM, train: Corpus, valid: Corpus, *, settings: Settings
    ) -> None:
        if not train.n_sentences or not valid.n_sentences:
            raise ValueError("training and validation need at least one sentence each")
        self.model, self.train, self.valid, self.settings = model, train, valid, settings
        self.streams = max(1, min(settings.streams, train.n_documents // 4))
        self.progress = Progress()
        self.device = model.embedding.weight.device
        self.contexts = model.context.start(self.streams).detach().clone()
        sparse = sparse_parameters(model)
        apart = {id(parameter) for parameter in sparse}
        self.dense = [p for p in model.parameters() if id(p) not in apart]
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.dense if p.ndim > 1]},
            {"params": [p for p in self.dense if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW(
            groups,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=(0.9, 0.99),
            fused=True,
        )
        self.sparse_optimiser = sparse_optimiser(sparse, streams=self.streams)
        counts = np.bincount(train.tokens, minlength=model.config.vocabulary)
        counts[END] = train.n_sentences
        on_device = torch.from_numpy(counts).to(self.device)
        self.sampler = model.head.sampler(on_device, settings.negatives)
        self.updates_per_epoch = sum(1 for _ in self._segments(0))

    def _segments(self, epoch: int) -> Iterator[Segment]:
        order = epoch_order(self.train.n_documents, self.settings.seed, epoch)
        return segments(self.train, order, streams=self.streams, length=self.settings.segment)

    def run(self) -> Iterator[Report | None]:
        """Train to the end of the budget: an item after every update, a report if it validated.

        Between two items the run may be saved or abandoned.
        """
        every = max(1, self.updates_per_epoch // self.settings.validations)
        progress = self.progress
        while not progress.finished:
            for segment in islice(self._segments(progress.epoch), progress.position, None):
                started = time.perf_counter()
                self._update(segment)
                progress.seconds += time.perf_counter() - started
                progress.finished = self.share_done() >= 1.0
                validates = progress.finished or progress.update % every == 0
                yield self._validate() if validates else None
                if progress.finished:
                    return
            progress.epoch += 1
            progress.position = 0

    def share_done(self) -> float:
        """Share of the budget that is spent, by updates or by the clock."""
        share = self.progress.update / (self.settings.epochs * self.updates_per_epoch)
        if self.settings.minutes is not None:
            share = max(share, self.progress.seconds / (60 * self.settings.minutes))
        return min(share, 1.0)

    def _rate(self) -> float:
        """Learning rate: rises over the first 2 % of the budget (or 200 updates), falls to zero."""
        budget = self.settings.epochs * self.updates_per_epoch
        warm = min(1.0, (self.progress.update + 1) / min(200.0, 0.02 * budget + 1))
        return self.settings.learning_rate * warm * max(1.0 - self.share_done(), 1e-3)

    def _update(self, segment: Segment) -> None:
        """One update of the weights; contexts and progress move on."""
        settings, model = self.settings, self.model
        generator = torch.Generator(self.device)
        generator.manual_seed((settings.seed << 32) + self.progress.update)
        noise = Noise(settings.dropout, settings.context_dropout, generator)
        half = settings.precision == "bfloat16"
        model.train()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            reading = read(model, self.train, segment, self.contexts, noise)
            nll = model.head.loss(reading.features, reading.targets, self.sampler, generator)
        nats = nll.detach().sum()
        loss = (nll / reading.lengths.clamp(min=1) if model.head.averaged else nll).sum()
        active = int((segment.sentences[0] >= 0).sum())
        model.zero_grad(set_to_none=True)
        torch.autograd.backward((loss + reading.auxiliary_loss) / active)
        nn.utils.clip_grad_norm_(self.dense, settings.clip)
        self._step()
        self.contexts = reading.contexts.detach()
        self.progress.update += 1
        self.progress.position += 1
        self.progress.nats += float(nats)
        ends = 0 if model.head.predicts_end else int((reading.targets == END).sum())
        self.progress.predictions += len(reading.targets) - ends

    def _step(self) -> None:
        """One step of the optimisers along the gradients."""
        rate = self._rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        if self.sparse_optimiser is not None:
            for group in self.sparse_optimiser.param_groups:
                group["lr"] = RATE * rate
            self.sparse_optimiser.step()

    def _validate(self) -> Report:
        progress, result = self.progress, perplexity(self.model, self.valid)
        best = progress.best is None or result.nats_per_token < progress.best
        if best:
            progress.best = result.nats_per_token
        report = Report(
            update=progress.update,
            epoch=progress.update / self.updates_per_epoch,
            seconds=progress.seconds,
            words_per_second=progress.predictions / (progress.seconds - progress.reported),
            training_nats=progress.nats / progress.predictions,
            valid_perplexity=result.perplexity,
            best=best,
            log_z=result.log_z,
            predicts_end=result.predicts_end,
        )
        progress.nats, progress.predictions, progress.reported = 0.0, 0, progress.seconds
        return report
