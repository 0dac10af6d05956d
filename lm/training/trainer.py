"""Training on segments of many documents side by side, stage by stage, with a validated best.

The loss, −log p or that of NCE, is summed over a segment of L sentences, mean over the segments of
an update; of bags of words the mean over a sentence's words is summed. Most models are trained in a
single stage. A hierarchical model has a sentence level with a second loss
(`Context.auxiliary_nll`): the word level is trained with it, beside it, or after it.

Everything random is a function of the seed and the update's number, so that a resumed run
makes the same updates as without the interruption, unless it has a time limit, which the learning
rate follows too. Several processes (`lm.training.processes`) share the streams of an update.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lm.backend import cuda_products
from lm.corpus import SEGMENTS, Corpus, Segment
from lm.evaluation import LogNormalisers, perplexity, sentence_level_nats
from lm.heads import Head
from lm.model import DocumentLM
from lm.objective import NoiseDistribution
from lm.reading import Corruption, Noise, Reading, generator_of, read
from lm.sentences import Rows
from lm.training.optimisers import OPTIMISERS, SCHEDULES, Position, WeightAverage, sparse_parameters
from lm.training.processes import ALONE, Processes
from lm.training.settings import Settings
from lm.vocabulary import END

Parameters = tuple[nn.Parameter, ...]
Loss: TypeAlias = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Loss (N,) in nats from features (N, R), targets (N,) and the generator of an update."""


@dataclass(frozen=True, slots=True)
class TrainingObjective:
    """Makes a loss of a head, word counts (V,) and the number of words sampled in an update.

    samples: default of this number, if the loss needs sampled words and a head that can do with
    them; else 0, and a recipe says how many.
    """

    create: Callable[[Head, Tensor, int], Loss]
    samples: int = 0


def likelihood(head: Head, counts: Tensor, number: int) -> Loss:
    """The head's own loss: −log p, exact or by sampled softmax (`lm.objective`)."""
    sampler = head.sampler(counts, number)
    return lambda features, targets, generator: head.loss(features, targets, sampler, generator)


def nce(head: Head, counts: Tensor, number: int) -> Loss:
    """Noise-contrastive estimation; ValueError for a head whose training needs all words."""
    if not head.sampled:
        raise ValueError("NCE: expected a head that can be trained on a sample of the words")
    noise = NoiseDistribution.from_counts(counts, number)
    return lambda features, targets, generator: head.nce_loss(features, targets, noise, generator)


# NCE: 4,096 noise words of 10,000 are 1,040 distinct words, as many as the sampled softmax has in
# the recipe `strong`. An epoch of it on 150,000 lines of subtitles, perplexity normalised exactly
# and seconds of a CPU: rnnlm 53.5 (238 s) by the exact softmax, 52.6 (74 s) by the sampled softmax,
# 52.7 (81 s) by NCE, 59.8 (77 s) with 1,024 noise words; codclm 52.0 (242 s), 51.2 (87 s) and 51.2
# (97 s). Log Z is then −0.02 ± 0.15 (rnnlm) and −0.03 ± 0.17 (codclm); by the penalty of the head
# `self-normalised` it is 0.02 ± 0.26, and perplexity 52.4 (rnnlm).
OBJECTIVES: Mapping[str, TrainingObjective] = {
    "likelihood": TrainingObjective(likelihood),
    "nce": TrainingObjective(nce, samples=4096),
}


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A part of a run; it is validated by the loss of words, if that counts, else of sentences.

    words, sentences: whether the head's loss and the context's auxiliary loss count. groups:
    parameters that are trained; the gradient of each group is clipped alone.
    """

    name: str
    words: bool
    sentences: bool
    groups: tuple[Parameters, ...]

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All parameters that are trained, in the order of the groups."""
        return [parameter for group in self.groups for parameter in group]


def levels(model: DocumentLM) -> tuple[Parameters, Parameters]:
    """Parameters of the word level, and those of the sentence level: of the auxiliary loss."""
    sentence = {id(parameter) for parameter in model.context.auxiliary_parameters()}
    parameters = tuple(model.parameters())
    return (
        tuple(p for p in parameters if id(p) not in sentence),
        tuple(p for p in parameters if id(p) in sentence),
    )


def two_step(model: DocumentLM) -> list[Stage]:
    """The sentence level to its end, then the word level on top of it, frozen (Lin et al., §5.2).

    A level without parameters has no stage.
    """
    words, sentences = levels(model)
    stages = [Stage("sentences", False, True, (sentences,)), Stage("words", True, False, (words,))]
    return [stage for stage in stages if stage.parameters]


LEVELS: Mapping[str, Callable[[DocumentLM], list[Stage]]] = {
    # the sum of both losses: the dual objective of Lin et al. 2015, §5.2
    "together": lambda model: [Stage("words", True, True, (tuple(model.parameters()),))],
    # every segment is an update of each level, as in Ji et al.'s program: both read the contexts of
    # before it, and their gradients are clipped apart
    "separate": lambda model: [Stage("words", True, True, tuple(filter(None, levels(model))))],
    "two-step": two_step,
    # what a document adds to a model of single sentences, whose weights are frozen
    "context": lambda model: [
        Stage("words", True, False, (tuple(model.context.added_parameters()),))
    ],
}


@dataclass(frozen=True, slots=True)
class Validation:
    """State of a run after a validation; nats are per token, `</s>` included.

    training_nats: of the objective, for NCE those of k + 1 decisions. log_z: on the validation
    text, if the head is not normalised. rate: learning rate of the last update. stage: its name;
    nats and perplexity of "sentences" are those of the sentence level's words. predicts_end:
    whether `</s>` is among the tokens. causal: whether the perplexity is no pseudo-perplexity
    (`lm.evaluation.Perplexity`). tokens_per_word: of the validation text, `</s>` included in both;
    None where tokens are words.
    """

    update: int
    epoch: float
    seconds: float
    words_per_second: float
    training_nats: float
    valid_perplexity: float
    best: bool
    log_z: LogNormalisers | None = None
    rate: float = 0.0
    stage: str = "words"
    predicts_end: bool = True
    causal: bool = True
    tokens_per_word: float | None = None


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
    stage: int = 0
    first_update: int = 0  # of the stage; so are all that follow
    first_seconds: float = 0.0
    failures: int = 0  # validations since the best
    halvings: int = 0
    epoch_nats: float = 0.0  # training loss of its epoch so far; so is the next one
    epoch_predictions: int = 0
    last_loss: float | None = None  # of its last epoch, in nats a prediction


class Trainer:
    """One training run over a corpus; `run` makes its updates.

    kept: parameters of the best validation so far, by name, of a stage before another.
    contexts: of this process's share of the streams.
    """

    def __init__(
        self,
        model: DocumentLM,
        train: Corpus,
        valid: Corpus,
        *,
        settings: Settings,
        processes: Processes = ALONE,
    ) -> None:
        if not train.n_sentences or not valid.n_sentences:
            raise ValueError("training and validation need at least one sentence each")
        self.processes = processes
        self.model, self.train, self.valid, self.settings = model, train, valid, settings
        self.stages, self.schedule = LEVELS[settings.levels](model), SCHEDULES[settings.schedule]
        longest = int(np.diff(train.documents).max())
        self.length = min(settings.segment, longest)
        self.streams = max(1, min(settings.streams, train.n_documents // 4))
        if processes.number > self.streams:
            raise ValueError(f"{processes.number} processes cannot share {self.streams} streams")
        self.progress = Progress()
        self.device = model.embedding.weight.device
        self.sparse = {id(parameter) for parameter in sparse_parameters(model)}
        self.kept: dict[str, Tensor] = {}
        counts = np.bincount(train.tokens, minlength=model.config.vocabulary)
        counts[END] = train.n_sentences
        on_device = torch.from_numpy(counts).to(self.device)
        objective = OBJECTIVES[settings.objective]
        self.objective = objective.create(model.head, on_device, settings.negatives)
        self.updates_per_epoch = sum(1 for _ in self._segments(0))
        self._clock = 0.0
        self._validation_seconds: float | None = None  # of the last one
        self.enter(self.progress.stage)

    def enter(self, stage: int) -> None:
        """Begin a stage: its parameters are trained, by a new optimiser, from new contexts."""
        self.stage = self.stages[stage]
        trained = {id(parameter) for parameter in self.stage.parameters}
        for parameter in self.model.parameters():
            parameter.requires_grad_(id(parameter) in trained)
        self.optimisers = self.optimisers_of(stage)
        share = range(self.streams)[self.processes.share(self.streams)]
        start = self.model.context.start(len(share)).detach()
        self.contexts = Rows(tuple(tensor.clone() for tensor in start.tensors))
        self.kept = {}
        averaging = self.settings.averaging
        self.average = WeightAverage(self.model, averaging) if averaging else None

    @property
    def validated(self) -> DocumentLM:
        """The model that is validated, and that is to be kept: with averaged weights, if any."""
        return self.model if self.average is None else self.average.model

    def optimisers_of(self, stage: int) -> dict[str, Optimizer]:
        """New optimisers of a stage by their names in a saved state: sparse parameters apart."""
        settings, row = self.settings, OPTIMISERS[self.settings.optimiser]
        parameters = self.stages[stage].parameters
        dense = [p for p in parameters if id(p) not in self.sparse]
        sparse = [p for p in parameters if id(p) in self.sparse]
        rate, config = settings.learning_rate, self.model.config
        tables = {config.vocabulary, config.source_words}
        optimisers = {"optimiser": row.create(dense, rate, settings.weight_decay, tables)}
        if sparse:
            optimisers["sparse"] = row.sparse(sparse, row.sparse_rate * rate, self.streams)
        return optimisers

    def _segments(self, epoch: int) -> Iterator[Segment]:
        """The segments of an epoch, each of an update."""
        settings = self.settings
        return SEGMENTS[settings.segments](
            self.train, streams=self.streams, length=self.length, seed=settings.seed, epoch=epoch
        )

    def run(self, began: float | None = None) -> Iterator[Validation | None]:
        """Train to the end of the budget: an item after every update, a report if it validated.

        Between two items the run may be saved or abandoned. began: when its time began, as
        `time.perf_counter` has it [default: now]; validations and savings count, too.
        """
        progress = self.progress
        self._clock = time.perf_counter() if began is None else began
        progress.reported += self._tick()
        while not progress.finished:
            epoch = progress.epoch
            for segment in islice(self._segments(epoch), progress.position, None):
                self._update(segment)
                self._tick()
                yield self._after_update()
                if progress.finished:
                    return
                if progress.epoch != epoch:  # of a new stage
                    break
            else:
                progress.epoch += 1
                progress.position = 0

    def _tick(self) -> float:
        """Seconds since the last call, which are added to those of the run."""
        before, self._clock = self._clock, time.perf_counter()
        seconds = self.processes.first(self._clock - before)
        self.progress.seconds += seconds
        return seconds

    def share_done(self) -> float:
        """Share of the stage's budget that is spent: updates, or its part of the time limit."""
        progress, minutes = self.progress, self.settings.minutes
        share = (progress.update - progress.first_update) / self._stage_updates
        if minutes is not None:
            limit = 60 * minutes * (progress.stage + 1) / len(self.stages)
            time_left = limit - progress.first_seconds
            validation = self._validation_seconds
            if validation is None and progress.predictions:  # its words take as long as in training
                a_word = (progress.seconds - progress.reported) / progress.predictions
                validation = min(a_word * len(self.valid.tokens), time_left / 2)
            time_left -= validation or 0.0
            spent = progress.seconds - progress.first_seconds
            share = max(share, spent / time_left if time_left > 0 else 1.0)
        return min(share, 1.0)

    def seconds_left(self) -> float | None:
        """Seconds to the time limit, if there is one."""
        minutes = self.settings.minutes
        return None if minutes is None else max(0.0, 60 * minutes - self.progress.seconds)

    def reopen(self) -> None:
        """Go on with a finished run whose budget is larger now."""
        progress, patience = self.progress, self.settings.patience
        patient = not 0 < patience <= progress.failures
        progress.finished = progress.finished and not (patient and self.share_done() < 1.0)

    def updates_left(self) -> int:
        """Updates to the end of the run, if no stage ends early."""
        progress = self.progress
        stages = len(self.stages) - progress.stage
        return stages * self._stage_updates - (progress.update - progress.first_update)

    @property
    def _stage_updates(self) -> int:
        words, each = self.settings.words, self.updates_per_epoch
        if words is None:
            return self.settings.epochs * each
        return max(1, round(words * each / (len(self.train.tokens) + self.train.n_sentences)))

    def _update(self, segment: Segment) -> None:
        """One update of the weights; contexts and progress move on."""
        settings, progress = self.settings, self.progress
        processes = self.processes
        share = processes.share(self.streams)
        number = progress.update * processes.number + processes.rank
        generator = generator_of(settings.seed, number, device=self.device)
        noise = self._noise(generator, number)
        nats, predictions = 0.0, 0.0
        self.model.train()
        self.model.zero_grad(set_to_none=True)
        # what autocast leaves in float32 is rounded less by TF32 than the rest by bfloat16
        tf32 = settings.precision == "bfloat16"
        shared = Segment(segment.sentences[:, share], segment.begins[share])
        if shared.active:
            with cuda_products(self.device, tf32=tf32):
                reading, loss, segment_nats = self._loss(shared, noise)
                if loss.requires_grad:
                    torch.autograd.backward(loss / segment.active)
            self.contexts = reading.contexts.detach()
            nats, targets = float(segment_nats.detach()), reading.targets
            ends = self.stage.words and self.model.head.predicts_end
            predictions = len(targets) if ends else int((targets != END).sum())
        self._step()
        nats, predictions = processes.totals(nats, predictions)
        progress.nats += nats
        progress.predictions += int(predictions)
        progress.epoch_nats += nats
        progress.epoch_predictions += int(predictions)
        progress.update += 1
        if self.average is not None:
            self.average.add(self.model, progress.update - progress.first_update)
        progress.position += 1

    def _noise(self, generator: torch.Generator, number: int) -> Noise:
        """Noise of the next update; number: of the update and the process."""
        settings, corruption = self.settings, None
        if settings.context_noise:
            rng = np.random.default_rng((settings.seed, number, 1))  # 1: not that of an epoch
            corruption = Corruption(settings.context_noise, rng)
        return Noise(settings.dropout, settings.context_dropout, generator, corruption=corruption)

    def _loss(self, segment: Segment, noise: Noise) -> tuple[Reading, Tensor, Tensor]:
        """A segment's reading, the sum of the losses that count, and the reported loss."""
        model, stage = self.model, self.stage
        half = self.settings.precision == "bfloat16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            reading = read(model, self.train, segment, self.contexts, noise)
            if not stage.words:
                return reading, reading.auxiliary_loss, reading.auxiliary_nats
            reading = reading.of_predicted(self.train)
            each = self.objective(reading.features, reading.targets, noise.generator)
        loss = (each / reading.lengths.clamp(min=1) if model.head.averaged else each).sum()
        if stage.sentences:
            loss = loss + reading.auxiliary_loss
        return reading, loss, each.sum()

    def _step(self) -> None:
        """Clip the gradients of all processes and let the optimisers move the weights."""
        settings, progress = self.settings, self.progress
        self.processes.add_gradients(self.stage.parameters)
        for parameters in self.stage.groups if settings.clip else ():
            dense = [p for p in parameters if id(p) not in self.sparse]
            nn.utils.clip_grad_norm_(dense, settings.clip)
        made, share = progress.update - progress.first_update, self.share_done()
        place = Position(made, self._stage_updates, share, progress.halvings)
        for name, optimiser in self.optimisers.items():
            factor = OPTIMISERS[settings.optimiser].sparse_rate if name == "sparse" else 1.0
            for group in optimiser.param_groups:
                group["lr"] = self.schedule(factor * settings.learning_rate, place)
            optimiser.step()

    def _after_update(self) -> Validation | None:
        """Validate if it is time to, and end the stage if its budget or its patience is spent."""
        progress, settings, n = self.progress, self.settings, self.updates_per_epoch
        spent = self.share_done() >= 1.0
        if progress.position == n:  # compare the training loss with that of the epoch before
            loss = progress.epoch_nats / max(1, progress.epoch_predictions)
            progress.halvings += progress.last_loss is not None and loss > progress.last_loss
            progress.last_loss = loss
            progress.epoch_nats, progress.epoch_predictions = 0.0, 0
        every = max(1, n // settings.validations)
        if not (spent or progress.update % every == 0):
            return None
        report = self._validate()
        spent = spent or self.share_done() >= 1.0
        impatient = 0 < settings.patience <= progress.failures
        if spent or impatient:
            self._end_stage()
        return report

    def _validate(self) -> Validation:
        """What has been reached."""
        progress, log_z, ratio = self.progress, None, None
        speed = progress.predictions / (progress.seconds - progress.reported)
        if self.stage.words:
            result = perplexity(self.validated, self.valid)
            nats, log_z = result.nats_per_token, result.log_z
            ratio = None if result.words is None else result.tokens_per_word
        else:
            nats = sentence_level_nats(self.validated, self.valid)
        nats = self.processes.first(nats)
        self._validation_seconds = self._tick()
        best = progress.best is None or nats < progress.best
        progress.failures = 0 if best else progress.failures + 1
        if best:
            progress.best = nats
        if best and self.stage is not self.stages[-1]:
            trained = {n for n, p in self.model.named_parameters() if p.requires_grad}
            validated = self.validated.named_parameters()
            self.kept = {name: p.detach().clone() for name, p in validated if name in trained}
        report = Validation(
            update=progress.update,
            epoch=progress.update / self.updates_per_epoch,
            seconds=progress.seconds,
            words_per_second=speed,
            training_nats=progress.nats / max(1, progress.predictions),
            valid_perplexity=math.exp(nats),
            best=best,
            log_z=log_z,
            rate=self.optimisers["optimiser"].param_groups[0]["lr"],
            stage=self.stage.name,
            predicts_end=self.stage.words and self.model.head.predicts_end,
            causal=self.model.causal,
            tokens_per_word=ratio,
        )
        progress.nats, progress.predictions, progress.reported = 0.0, 0, progress.seconds
        return report

    @torch.no_grad()
    def _end_stage(self) -> None:
        """Begin the next stage from the best weights of this stage, or finish the run."""
        progress = self.progress
        if self.stage is self.stages[-1]:
            progress.finished = True
            return
        self.model.load_state_dict(self.kept, strict=False)
        progress.stage += 1
        progress.epoch += 1
        progress.position = 0
        progress.first_update, progress.first_seconds = progress.update, progress.seconds
        progress.best = progress.last_loss = None
        progress.epoch_nats, progress.epoch_predictions = 0.0, 0
        progress.failures = progress.halvings = 0
        self.enter(progress.stage)
