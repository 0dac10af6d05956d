"""Records of a training run: its settings, its position, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lm.batches import SEGMENTS
from lm.evaluation import LogNormalisers
from lm.training.initialisation import INITIALISATIONS
from lm.training.objectives import OBJECTIVES
from lm.training.optimisers import OPTIMISERS
from lm.training.schedules import SCHEDULES
from lm.training.stages import LEVELS

_TABLES: Mapping[str, Mapping[str, object]] = {
    "optimiser": OPTIMISERS,
    "schedule": SCHEDULES,
    "segments": SEGMENTS,
    "levels": LEVELS,
    "initialisation": INITIALISATIONS,
    "objective": OBJECTIVES,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run.

    negatives: words sampled in an update. For the likelihood 0, or more than a quarter of V, means
    the exact softmax; for NCE they are the k noise words of a target, of which there is at least 1.
    epochs: at most, of each stage; patience: validations without a new best after which a stage
    ends, and clip: norm of a gradient, both 0 for none; accumulate: segments of each stream in
    an update; validations: of an epoch; initialisation: what gave the model its weights.
    Rates and shares of 0 mean without. context_noise: share of sentences that enter contexts as
    corrupted copies (`lm.noise`); averaging: share of a stage's updates so far over which
    weights are averaged (`lm.training.averaging`); auxiliary_weight: factor of a context's own loss
    where it is added to that of the words. Defaults are those of runs from before a setting
    existed; `lm.training.recipes` has those of `train-lm`.
    """

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
    optimiser: str = "adamw"
    schedule: str = "annealed"
    segments: str = "carried"
    levels: str = "together"
    patience: int = 0
    accumulate: int = 1
    initialisation: str = "own"
    locked_dropout: float = 0.0
    word_dropout: float = 0.0
    weight_dropout: float = 0.0
    context_noise: float = 0.0
    auxiliary_weight: float = 1.0
    averaging: float = 0.0
    objective: str = "likelihood"

    def __post_init__(self) -> None:
        for name, known in _TABLES.items():
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"no {name} {value!r} is known; there are {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Report:
    """State of a run after a validation; nats are per token, `</s>` included.

    training_nats: of the objective, for NCE those of k + 1 decisions. log_z: on the validation
    text, if the head is not normalised. rate: learning rate of the last update. stage: its name;
    nats and perplexity of "sentences" are those of the sentence level's words. predicts_end:
    whether `</s>` is one of the tokens; it is not of a sentence level, and of bags of words.
    causal: whether the perplexity is one, and no pseudo-perplexity (`lm.evaluation.Perplexity`).
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
    epoch_nats: float | None = None  # validation loss of its last epoch
