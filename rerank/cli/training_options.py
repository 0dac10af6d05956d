"""Options of `train-lm` that say how a model is trained; --recipe has their defaults."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.options import all_of, count_option
from rerank.values import SHARE, Real

RATE = Real(0, 0.95)


def of_recipe(default: str, help: str) -> dict[str, Any]:
    """Arguments of an option whose value, if it is left out, is that of --recipe.

    default: the value of the recipe `strong`, for the help.
    """
    return {"default": None, "help": f"{help} [default: {default}]."}


_OPTIONS = (
    click.option(
        "--init",
        "initialisation",
        type=click.Choice(["own", "glorot"]),
        **of_recipe(
            "own",
            "Initial weights: each part's own, or Glorot-uniform for every matrix and vector",
        ),
    ),
    count_option(
        "--epochs",
        **of_recipe("5", "Number of passes over the training text, at most, in each stage"),
    ),
    click.option(
        "--minutes",
        type=Real(0, 1_000_000, above=True),
        help="Time limit, towards which an annealed learning rate falls; results then depend on "
        "the speed of the machine. Stages have equal parts of it.",
    ),
    count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed."),
    click.option(
        "--optimiser",
        type=click.Choice(["adamw", "muon", "sgd", "adagrad", "adadelta"]),
        **of_recipe(
            "muon",
            "How gradients become updates; muon is Muon for matrices between hidden units and "
            "AdamW for the rest",
        ),
    ),
    click.option(
        "--learning-rate",
        type=Real(0, 10, above=True),
        **of_recipe("0.01", "Peak learning rate"),
    ),
    click.option(
        "--weight-decay",
        type=Real(0, 10),
        **of_recipe("0.01", "Share by which an update shrinks weights, times the learning rate"),
    ),
    click.option(
        "--clip",
        type=Real(0, 1_000_000),
        **of_recipe("5", "Largest norm of an update's gradient; 0 does not clip"),
    ),
    click.option(
        "--schedule",
        type=click.Choice(["annealed", "constant", "halving"]),
        **of_recipe(
            "annealed",
            "Learning rate over time: annealed to zero, constant, or halved after each epoch that "
            "gains little on the validation text, until the second one",
        ),
    ),
    count_option("--validations", **of_recipe("4", "Number of validations in an epoch")),
    count_option(
        "--patience",
        least=0,
        **of_recipe("0", "Validations without a new best after which training ends; 0 goes on"),
    ),
    count_option(
        "--streams",
        **of_recipe("32", "Batch size: documents, or independent segments, read in parallel"),
    ),
    count_option(
        "--segment", **of_recipe("5", "Sentences of a document through which gradients go")
    ),
    click.option(
        "--segments",
        type=click.Choice(["carried", "independent"]),
        **of_recipe(
            "carried",
            "Context of a segment's first sentence: carried over from the segment before, or none, "
            "as if a document began; independent segments are shuffled",
        ),
    ),
    count_option(
        "--accumulate",
        **of_recipe("1", "Batches of segments whose gradients are added up to one update"),
    ),
    click.option(
        "--levels",
        type=click.Choice(["together", "separate", "two-step"]),
        **of_recipe(
            "together",
            "How a model's sentence level is trained: together with its word level, by gradients "
            "that are clipped apart, or before it and then frozen. Only for models that have one",
        ),
    ),
    click.option(
        "--auxiliary-weight",
        type=Real(0, 1000, above=True),
        help="Factor of a model's own second loss, that of a sentence level (hrnnlm) or of "
        "relations (dclm-auxiliary), where it is added to that of the words [default: 1].",
    ),
    click.option(
        "--dropout",
        type=RATE,
        **of_recipe(
            "0.1", "Dropout rate of single numbers, of the inputs and before the output layer"
        ),
    ),
    click.option(
        "--locked-dropout",
        type=RATE,
        **of_recipe(
            "0", "Dropout rate there with one mask for all words of a sentence (variational)"
        ),
    ),
    click.option(
        "--word-dropout",
        type=RATE,
        **of_recipe("0", "Share of the words whose embedding an update leaves out"),
    ),
    click.option(
        "--weight-dropout",
        type=RATE,
        **of_recipe("0", "Dropout rate of the weights from hidden state to hidden state"),
    ),
    click.option(
        "--context-dropout",
        type=SHARE,
        **of_recipe(
            "0.1",
            "Share of sentences that are trained without context. If sentences begin in the state "
            "of the sentence before, it loses all history, and the default is 0",
        ),
    ),
    click.option(
        "--context-noise",
        type=SHARE,
        **of_recipe(
            "0.2",
            "Share of sentences that enter contexts corrupted, as machine translations are: of "
            "their words 10 % are dropped, 10 % replaced and 10 % swapped with the next one. Not "
            "with models without context",
        ),
    ),
    click.option(
        "--averaging",
        type=SHARE,
        **of_recipe(
            "0",
            "Share of the updates so far over which weights are averaged; the average is "
            "validated and saved. 0 does not average",
        ),
    ),
    click.option(
        "--objective",
        type=click.Choice(["likelihood", "nce"]),
        **of_recipe(
            "likelihood",
            "What training maximises: the likelihood, or that of telling words of the text from "
            "noise words, without a normaliser (noise-contrastive estimation, Mnih & Teh 2012). "
            "Scores are normalised exactly all the same; with --head self-normalised they need "
            "not be. nce is not for --head classes or hashed",
        ),
    ),
    count_option(
        "--negatives",
        least=0,
        **of_recipe(
            "1024",
            "Words sampled per update: for the sampled softmax, where 0 trains the full softmax, "
            "or noise words of --objective nce, which has 4096 by default. Not with --head "
            "classes or hashed",
        ),
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "float32", "bfloat16"]),
        **of_recipe(
            "auto",
            "Precision of training; auto is bfloat16 where the hardware is faster with it",
        ),
    ),
)
training_options = all_of(_OPTIONS)
