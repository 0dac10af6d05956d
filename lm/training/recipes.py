"""Recipes of training: the values of `train-lm`'s options by the name of a recipe.

`strong` is for use. `paper` is the training that a model's own paper prints, as far as it does,
and `code` that of its authors' program: a composition names its family of papers
(`lm.composition.Composition.recipe`). What a paper leaves open is our choice and says so here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Values: TypeAlias = Mapping[str, bool | int | float | str]

# Chosen on 1.8 M words of subtitles: one epoch of rnnlm without dropout has perplexity 38.0 in 71 s
# of a CPU, where AdamW at 0.003 with 64 streams and dropout had 65.7 in 97 s. On 16 M words twenty
# minutes of one core give 36.6 (rnnlm) and 34.8 (codclm), where an epoch of AdamW in half an hour
# gave 39.6 and 35.8. Averages of the weights gain nothing where the rate falls to zero. Corrupted
# contexts cost codclm nothing in clean ones (48.0 and 48.1), and bring 0.9 % in corrupted ones
# (49.2 and 48.8).
STRONG: Values = {
    "embed": 128,
    "hidden": 256,
    "layers": 1,
    "recurrence": "lstm",
    "tied": True,
    "initialisation": "own",
    "vocabulary": 10_000,
    "min_count": 1,
    "epochs": 5,
    "optimiser": "muon",
    "learning_rate": 1e-2,
    "weight_decay": 1e-2,
    "clip": 5.0,
    "schedule": "annealed",
    "validations": 4,
    "patience": 0,
    "streams": 32,
    "segment": 5,
    "segments": "carried",
    "accumulate": 1,
    "levels": "together",
    "dropout": 0.1,
    "locked_dropout": 0.0,
    "word_dropout": 0.0,
    "weight_dropout": 0.0,
    "context_dropout": 0.1,
    "context_noise": 0.2,
    "averaging": 0.0,
    "objective": "likelihood",
    "negatives": 1024,
    "precision": "auto",
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

# Ji et al. 2016, §3.1: AdaGrad 0.1, clip 5, Glorot, L = 5. K and H are from their grid of
# 32 … 256; H = 48 is the default of their program, which validates every 1,000 segments (an eighth
# of an epoch of their text) and is stopped by hand: patience is ours. Their loss is a sum over a
# segment's tokens, which is ours with one stream.
_JI: Values = {
    **_PAPERS,
    "embed": 48,
    "hidden": 48,
    "layers": 2,
    "recurrence": "cifg",
    "initialisation": "glorot",
    "epochs": 100,
    "optimiser": "adagrad",
    "learning_rate": 0.1,
    "validations": 8,
    "patience": 16,
    "segments": "independent",
    "levels": "separate",
}

# Their program: SGD 0.1, weights shrunk by 1e-6 = 0.1 · 1e-5 an update, segments of 6 sentences.
_JI_CODE: Values = {**_JI, "optimiser": "sgd", "weight_decay": 1e-5, "segment": 6}

# Wang & Cho 2016, §5.1: 1,000 LSTM units, Adadelta, stopping by the validation text, sentences of
# up to 50 words; the loss is the mean over sentences: segments of one sentence. Ours: sizes of
# embeddings and batches, no clipping, patience.
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

# Lin et al. 2015, §§4–5: 30 hidden units, SGD 0.1, halved when an epoch gains little, about 30
# epochs, the sentence level first. Ours: clipping, and gradients over segments of 5 sentences,
# whose contexts are carried on. Recurrences and initial weights are the models' own.
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

# The other training of §5.2: both levels at once, by both losses.
_LIN_DUAL: Values = {**_LIN, "levels": "together"}

# Ghosh et al. 2016, §§3–4: 256 to 1,024 hidden units, words of 200 or more, training until it
# converges. Ours: embeddings as large, one layer, Adagrad, and all else.
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

FAMILIES: Mapping[str, Mapping[str, Values]] = {
    "ji": {"paper": _JI, "code": _JI_CODE},
    "wang-cho": {"paper": _WANG_CHO},
    "lin": {"paper": _LIN},
    "lin-dual": {"paper": _LIN_DUAL},
    "ghosh": {"paper": _GHOSH},
}
NAMES = ("strong", "paper", "code")


def recipe(name: str, family: str | None) -> Values:
    """The values of a recipe for models of a family.

    ValueError if there is no such recipe for them.
    """
    known = {"strong": STRONG, **FAMILIES.get(family or "", {})}
    if name not in known:
        raise ValueError(f"this model has no recipe {name!r}, but {', '.join(known)}")
    return known[name]
