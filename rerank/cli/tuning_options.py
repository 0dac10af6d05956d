"""Options of the tuning commands: objective, start weights, tuner, replicates and hold-out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from rerank.cli.options import all_of, by_name, count_option
from rerank.commands.run import MOST_THREADS
from rerank.registry import METRICS
from rerank.tuning.plan import CV, SELECTIONS, MertSettings, ObjectiveOptions
from rerank.tuning.tuners import ALGORITHMS, MERT
from rerank.values import (
    FILE,
    LENGTH_RATIO,
    METRIC_WEIGHT,
    PRICE,
    SEED,
    TEXT,
    Interval,
    Pair,
    Real,
    WordOr,
)

objective_options = all_of(
    [
        click.option(
            "--objective",
            "objectives",
            multiple=True,
            type=Pair("NAME or NAME=WEIGHT", METRIC_WEIGHT, default=1.0),
            metavar="NAME[=WEIGHT]",
            help=f"Metric to maximise: {', '.join(METRICS)} (error rates are negated), or a "
            "--metric; two are added, with weights of 1 unless given [default: bleu].",
        ),
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            type=Pair("NAME=FILE", FILE),
            metavar="NAME=FILE",
            help="Scores of hypotheses by another tool, larger is better: a number for each line "
            "of --kbest; repeatable.",
        ),
        click.option(
            "--tokenize",
            default="none",
            type=TEXT,
            show_default=True,
            help="Tokenizer for BLEU, of sacrebleu or moses-en.",
        ),
        click.option(
            "--per-document",
            "documents",
            is_flag=True,
            help="Maximise the mean over documents, not the corpus.",
        ),
        click.option(
            "--worst",
            type=Real(0, 100, above=True),
            metavar="PERCENT",
            help="Maximise the mean over this share of the documents, those with the worst scores.",
        ),
    ]
)

price_options = all_of(
    [
        click.option(
            "--length-ratio",
            default="free",
            type=WordOr(("keep", "free"), LENGTH_RATIO),
            show_default=True,
            metavar="keep|free|RATIO",
            help="Length of the output ÷ length of the references to stay near: keep is that of "
            "the first candidates; free sets no price on length.",
        ),
        click.option(
            "--length-price",
            type=PRICE,
            metavar="POINTS",
            help="Price of a length ratio off by 1, in points of the objective [default: 5].",
        ),
        click.option(
            "--shrink",
            type=PRICE,
            metavar="POINTS",
            help="Price of leaving the direction of the start weights, in points of the "
            "objective: POINTS · (1 − cosine); features that start at 0 are free. 0 maximises the "
            "metric alone [default: 0; with --select none 1, but 0 with a --metric].",
        ),
    ]
)

algorithm_option = all_of(
    [
        click.option(
            "--algorithm",
            type=click.Choice([MERT, *ALGORITHMS]),
            default=MERT,
            show_default=True,
            help="The tuner; all but mert maximise corpus BLEU and nothing else.",
        ),
        click.option(
            "--select",
            type=click.Choice(SELECTIONS),
            default=CV,
            show_default=True,
            help="cv: tune on four fifths of the documents at a time, and go as far from the start "
            "weights towards the tuned ones as is better on the documents left out, if at all "
            "(blocks of lines where there are under four documents). none: take the tuned weights.",
        ),
    ]
)

out_options = all_of(
    [
        click.option(
            "--out",
            required=True,
            type=FILE,
            help="Weights file to write: .json (or -) or .ini (with --base, moses.ini).",
        ),
        click.option(
            "--base",
            type=FILE,
            help="moses.ini that --out is to be, with the new weights in it.",
        ),
    ]
)

plot_option = click.option(
    "--plot",
    type=FILE,
    metavar="FILE",
    help="Draw the objective along each feature around the tuned weights: .svg, .png or .pdf "
    "(needs matplotlib).",
)

range_option = click.option(
    "--range",
    "ranges",
    multiple=True,
    type=Pair("NAME=LOW:HIGH, as LM0=0: or TM0=-1:1", Interval(), last=True),
    metavar="NAME=LOW:HIGH",
    help="Least and greatest weight of a feature, as LM0=0: or TM0_1=-1:1; repeatable.",
)

start_options = all_of(
    [
        count_option(
            "--starts",
            least=0,
            default=0,
            help="Random starts of a search on all documents, beside the given weights, "
            "zeros and the maximum of expected BLEU; cross-validation takes none.",
        ),
        click.option(
            "--seed",
            default=1,
            show_default=True,
            type=SEED,
            help="Seed of all random numbers.",
        ),
        count_option(
            "--threads",
            most=MOST_THREADS,
            default=1,
            help="Starts or folds in parallel, and CPU threads for language models [default for "
            "these: one; more for large models]; other tuners than mert use one thread for a "
            "search.",
        ),
    ]
)

replicate_options = all_of(
    [
        count_option(
            "--replicates",
            default=1,
            help="Number of tunings on resampled documents, whose weights are averaged.",
        ),
        click.option(
            "--hold-out",
            default=0.0,
            show_default=True,
            type=Real(0, 1, below=True),
            metavar="SHARE",
            help="Hold out this share of the documents from tuning, and report BLEU there.",
        ),
    ]
)


def objective_of(options: dict[str, Any]) -> ObjectiveOptions:
    """The objective, from options taken out of `options`."""
    worst = options.pop("worst")
    return replace(
        bleu_objective_of(options),
        metrics=options.pop("objectives"),
        files=options.pop("metrics"),
        tokenize=options.pop("tokenize"),
        documents=options.pop("documents"),
        worst=None if worst is None else worst / 100,
    )


def bleu_objective_of(options: dict[str, Any]) -> ObjectiveOptions:
    """Corpus BLEU with its prices, from `price_options` taken out of `options`."""
    return ObjectiveOptions(
        length=options.pop("length_ratio"),
        price=options.pop("length_price"),
        shrinkage=options.pop("shrink"),
    )


def ranges_of(options: dict[str, Any]) -> Mapping[str, tuple[float, float]]:
    """Least and greatest weights by name."""
    return by_name("--range", options.pop("ranges"))


def settings_of(options: dict[str, Any]) -> MertSettings:
    """Effort of the search, from options taken out of `options`."""
    return MertSettings(
        random_starts=options.pop("starts"),
        seed=options.pop("seed"),
        threads=options.pop("threads"),
    )
