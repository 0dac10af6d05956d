"""Settings of a training, and their values by recipe: the options of `train-lm`, and defaults.

`strong` is for use. `paper` is the training that the paper of a model prints, as far as it does,
and `code` that of its authors' program: a composition names its family of papers
(`lm.composition.Composition.recipe`). What a paper leaves open is our choice and says so here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

from lm.composition import Config, check_values, setting

_MOST = 1_000_000


def _number(default: int, help: str, **more: Any) -> Any:
    """A setting that is a number of something."""
    return setting(default, help, **{"range": (1, _MOST), **more})


def _rate(default: float, help: str, most: float = 0.95, **more: Any) -> Any:
    """A setting that is a share; 0 means without."""
    return setting(default, help, range=(0, most), **more)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run.

    Defaults are those of runs from before a setting existed; the recipes have those of `train-lm`.
    negatives: for the likelihood 0, or more than a quarter of V, means the exact softmax; for NCE
    they are the k noise words of a target, at least 1. context_noise: see `lm.reading.Corruption`.
    """

    epochs: int = _number(5, "Number of passes over the training text, at most, in each stage")
    minutes: float | None = setting(
        None,
        "Time limit of the run, towards which an annealed learning rate falls.\n\n"
        "Validations included; results then depend on the speed of the machine. Stages have "
        "equal parts of it. --resume may change it.",
        range=(0, _MOST),
        above=True,
    )
    words: int | None = setting(
        None,
        "Number of words of the training text that each stage reads, in place of --epochs.\n\n"
        "</s> among them; an annealed learning rate falls towards it. --resume may change "
        "it.",
        range=(1, 10**12),
    )
    seed: int = setting(1, "Random seed", range=(0, 2**31 - 1))
    streams: int = _number(
        64, "Batch size: documents, or independent segments, read in parallel", strong=32
    )
    segment: int = _number(5, "Sentences of a document through which gradients go")
    learning_rate: float = setting(
        3e-3, "Peak learning rate", strong=1e-2, range=(0, 10), above=True
    )
    weight_decay: float = setting(
        1e-2, "Share by which an update shrinks weights, times the learning rate", range=(0, 10)
    )
    clip: float = setting(
        5.0, "Largest norm of an update's gradient; 0 does not clip", range=(0, _MOST)
    )
    dropout: float = _rate(
        0.1, "Dropout rate of single numbers, of the inputs and before the output layer"
    )
    context_dropout: float = _rate(
        0.1,
        "Share of sentences that are trained without context\n\n"
        "If sentences begin in the state of the sentence before, it loses all history, and "
        "the default is 0.",
        most=1,
    )
    negatives: int = _number(
        1024,
        "Words sampled per update; 0 trains the full softmax\n\n"
        "For the sampled softmax, or noise words of --objective nce, which has 4096 by "
        "default. Not with --head classes or hashed.",
        range=(0, _MOST),
    )
    validations: int = _number(4, "Number of validations in an epoch")
    precision: str = setting(
        "float32",
        "Precision of training; auto is bfloat16 where the hardware is faster with it",
        strong="auto",
        choices=("auto", "float32", "bfloat16"),
    )
    optimiser: str = setting(
        "adamw",
        "How gradients become updates; muon is Muon for matrices between hidden units and AdamW "
        "for the rest",
        strong="muon",
        choices=("adamw", "muon", "sgd", "adagrad", "adadelta"),
    )
    schedule: str = setting(
        "annealed",
        "Learning rate over time\n\n"
        "annealed to zero, constant, or halved after each epoch whose training loss is above "
        "that of the epoch before.",
        choices=("annealed", "constant", "halving"),
    )
    segments: str = setting(
        "carried",
        "Context of a segment's first sentence\n\n"
        "carried over from the segment before, or none, as if a document began; independent "
        "segments are shuffled.",
        choices=("carried", "independent"),
    )
    levels: str = setting(
        "together",
        "How a model's sentence level is trained beside its word level\n\n"
        "together with its word level, by gradients that are clipped apart, or before it and "
        "then frozen. Only for models that have one. context trains what attention-gated "
        "adds to the model of --from, whose weights stay.",
        choices=("together", "separate", "two-step", "context"),
    )
    patience: int = _number(
        0, "Validations without a new best after which training ends; 0 goes on", range=(0, _MOST)
    )
    initialisation: str = setting(
        "own",
        "Initial weights: each part's own, or Glorot-uniform for every matrix and vector",
        choices=("own", "glorot"),
        flag="--init",
    )
    context_noise: float = _rate(
        0.0,
        "Share of sentences that enter contexts corrupted, as machine translations are "
        "[default: 0.2].\n\n"
        "Of their words 10 % are dropped, 10 % replaced and 10 % swapped with the next one. "
        "Not with models without context.",
        most=1,
        strong=0.2,
    )
    averaging: float = _rate(
        0.0,
        "Share of the updates so far over which weights are averaged; the average is validated and "
        "saved. 0 does not average",
        most=1,
    )
    objective: str = setting(
        "likelihood",
        "What training maximises: the likelihood, or noise-contrastive estimation\n\n"
        "nce is the likelihood of telling words of the text from noise words, without a "
        "normaliser (Mnih & Teh 2012). Scores are normalised exactly all the same; with "
        "--head self-normalised they need not be. nce is not for --head classes or hashed.",
        choices=("likelihood", "nce"),
    )

    def __post_init__(self) -> None:
        check_values(self)


class Size(NamedTuple):
    """What `train-lm --size` stands for: columns of the embeddings, hidden units, layers."""

    embed: int
    hidden: int
    layers: int


# small: for a CPU; medium: for hours of a CPU; large: for a GPU, near the 650 units and two
# layers of the "medium" LSTM of Zaremba et al. 2014, with tied embeddings
SIZES: Mapping[str, Size] = {
    "small": Size(128, 256, 1),
    "medium": Size(256, 512, 1),
    "large": Size(512, 1024, 2),
}

Values: TypeAlias = Mapping[str, bool | int | float | str]

# Chosen on 1.8 M words of subtitles: an epoch of rnnlm without dropout has perplexity 38.0 in 71 s
# of a CPU, where AdamW at 0.003 with 64 streams and dropout had 65.7 in 97 s. On 16 M words twenty
# minutes of a core give 36.6 (rnnlm) and 34.8 (codclm), where an epoch of AdamW in half an hour
# gave 39.6 and 35.8. Averages of the weights gain nothing where the rate falls to zero. Corrupted
# contexts cost codclm nothing in clean text and bring 0.9 % in corrupted text (49.2 and 48.8).
STRONG: Values = {
    "vocabulary": 10_000,
    "min_count": 1,
    **{
        field.name: field.metadata["strong"]
        for record in (Config, Settings)
        for field in fields(record)
        if "strong" in field.metadata
    },
}

_PAPERS: Values = {
    **STRONG,
    "tied": False,
    "weight_decay": 0.0,
    "schedule": "constant",
    "streams": 1,
    "dropout": 0.0,
    "context_dropout": 0.0,
    "context_noise": 0.0,
    "averaging": 0.0,
    "negatives": 0,
    "precision": "float32",
}

_JI: Values = {
    **_PAPERS,
    "embed": 48,
    "hidden": 48,
    "layers": 2,
    "recurrence": "cifg-2015",
    "initialisation": "glorot",
    "epochs": 100,
    "optimiser": "adagrad",
    "learning_rate": 0.1,
    "validations": 8,
    "patience": 16,
    "segments": "independent",
    "levels": "together",
}
_JI_CODE: Values = {
    **_JI,
    "embed": 16,
    "optimiser": "sgd",
    "weight_decay": 1e-5,  # 0.1 · 1e-5 an update
    "segment": 6,
    "levels": "separate",
}
_WANG_CHO: Values = {
    **_PAPERS,
    "embed": 1000,
    "hidden": 1000,
    "epochs": 100,
    "optimiser": "adadelta",
    "learning_rate": 1.0,
    "clip": 0.0,
    "patience": 8,
    "longest": 50,
    "streams": 32,
    "segment": 1,
}
_LIN: Values = {
    **_PAPERS,
    "embed": 30,
    "hidden": 30,
    "epochs": 30,
    "optimiser": "sgd",
    "learning_rate": 0.1,
    "schedule": "halving",
    "validations": 1,
    "levels": "two-step",
}
_GHOSH: Values = {
    **_PAPERS,
    "embed": 256,
    "hidden": 256,
    "recurrence": "peephole",
    "vocabulary": 200_000,
    "min_count": 200,
    "epochs": 100,
    "optimiser": "adagrad",
    "learning_rate": 0.1,
    "patience": 8,
    "streams": 32,
}

_LUONG: Values = {
    **STRONG,
    "vocabulary": 16_000,
    "embed": 256,
    "hidden": 256,
    "optimiser": "adamw",
    "learning_rate": 2e-3,
    "streams": 64,
    "dropout": 0.0,
}


class Family(NamedTuple):
    """Recipes of the models of a family of papers, and what in them is the papers' and ours."""

    papers: str
    note: str
    recipes: Mapping[str, Values]


_NOTE_OF_JI = (
    "paper (§3.1): AdaGrad 0.1, clip 5, Glorot, segments of 5 sentences, the sum of their loss, "
    "attention of 48, and the cell that their library had then; ours: embed and hidden 48, of a "
    "grid of 32 to 256, segments of 5 for rnnlm, too, validations and patience, for theirs was "
    "stopped by hand. code: SGD 0.1, segments of 6, embed 16, with attention embed and hidden 96"
)
_NOTE_OF_LIN = (
    "paper (§§4–5): 30 hidden units, SGD 0.1, halved after an epoch whose training loss (here in "
    "nats a word) has risen, 30 epochs; ours: clipping, gradients over segments of 5 sentences, "
    "contexts carried on"
)
_NOTE_OF_GHOSH = (
    "paper (§§3–5): 256 to 1,024 hidden units, words of 200 or more, to convergence, one LSTM over "
    "a paragraph (of models without carried in their name, fusion input-initial); ours: embeddings "
    "as large, one layer, AdaGrad 0.1 and all else, 100 topics where the paper has 1,600"
)
FAMILIES: Mapping[str, Family] = {
    "ji": Family("Ji et al.", _NOTE_OF_JI, {"paper": _JI, "code": _JI_CODE}),
    "ji-attention": Family(
        "Ji et al.",
        _NOTE_OF_JI,
        {
            "paper": {**_JI, "attention": 48},
            "code": {**_JI_CODE, "embed": 96, "hidden": 96, "attention": 48},
        },
    ),
    "wang-cho": Family(
        "Wang & Cho",
        "paper (§5.1): 1,000 units, Adadelta, sentences of up to 50 words, their mean loss, until "
        "the validation text; ours: size of embeddings, batches of 32, no clipping, patience",
        {"paper": _WANG_CHO},
    ),
    "lin": Family("Lin et al.", _NOTE_OF_LIN, {"paper": _LIN}),
    "lin-dual": Family("Lin et al.", _NOTE_OF_LIN, {"paper": {**_LIN, "levels": "together"}}),
    "ghosh": Family("Ghosh et al.", _NOTE_OF_GHOSH, {"paper": _GHOSH}),
    "ghosh-topics": Family(
        "Ghosh et al.", _NOTE_OF_GHOSH, {"paper": {**_GHOSH, "fusion": "input-initial"}}
    ),
    "luong": Family(
        "Luong et al.",
        "strong: embed and hidden 256, 16,000 words, AdamW 0.002 with 64 streams, no dropout: ours "
        "for a core of a CPU, which reads 5,800 words a second",
        {"strong": _LUONG},
    ),
}


def recipes_of(family: str | None) -> Mapping[str, Values]:
    """The recipes for models of a family; `strong` is there for all."""
    return {"strong": STRONG, **(FAMILIES[family].recipes if family else {})}


def recipe(name: str, family: str | None) -> Values:
    """The values of a recipe for models of a family; ValueError if they have none of this name."""
    known = recipes_of(family)
    if name not in known:
        raise ValueError(f"this model has no recipe {name!r}, but {', '.join(known)}")
    return known[name]
