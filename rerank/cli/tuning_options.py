"""Options of the tuning commands: objective, start weights, tuner, replicates and hold-out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from rerank.cli.options import SEED, all_of
from rerank.errors import UsageError
from rerank.registry import METRICS
from rerank.tuning.selection import CV, SELECTIONS
from rerank.tuning.tuners.table import ALGORITHMS, AUTO, MERT

if TYPE_CHECKING:
    from rerank.pipeline import MertSettings, ObjectiveOptions

objective_options = all_of(
    [
        click.option(
            "--objective",
            "objectives",
            multiple=True,
            metavar="NAME[=WEIGHT]",
            help=f"Metric to maximise: {', '.join(METRICS)} (error rates are negated), or a "
            "--metric; two are added, with weights of 1 unless given [default: bleu].",
        ),
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME=FILE",
            help="Scores of hypotheses by another tool, larger is better: a number for each line "
            "of --kbest; repeatable.",
        ),
        click.option(
            "--tokenize",
            default="none",
            show_default=True,
            help="A tokenizer of sacrebleu, for BLEU.",
        ),
        click.option(
            "--per-document",
            "documents",
            is_flag=True,
            help="Maximise the mean over documents, not the corpus.",
        ),
        click.option(
            "--worst",
            type=click.FloatRange(0, 100, min_open=True),
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
            show_default=True,
            metavar="keep|free|RATIO",
            help="Length of the output ÷ length of the references to stay near: keep is that of "
            "the first candidates; free sets no price on length.",
        ),
        click.option(
            "--length-price",
            type=click.FloatRange(0),
            metavar="POINTS",
            help="Price of a length ratio off by 1, in points of the objective [default: 5].",
        ),
        click.option(
            "--shrink",
            type=click.FloatRange(0),
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
            type=click.Choice([AUTO, MERT, *ALGORITHMS]),
            default=AUTO,
            show_default=True,
            help="The tuner; all but mert maximise corpus BLEU and nothing else. auto is mert or, "
            "with --select cv and corpus BLEU, mert or pro.",
        ),
        click.option(
            "--select",
            type=click.Choice(SELECTIONS),
            default=CV,
            show_default=True,
            help="cv: choose weights between the start weights and the tuned ones by five-fold "
            "cross-validation over documents (blocks of lines, under four documents); keep the "
            "start weights unless others are better on held-out text. none: take the tuned ones.",
        ),
    ]
)

out_options = all_of(
    [
        click.option(
            "--out",
            required=True,
            help="Weights file to write: .json (or -) or .ini (with --base, moses.ini).",
        ),
        click.option("--base", help="moses.ini that --out is to be, with the new weights in it."),
    ]
)

plot_option = click.option(
    "--plot",
    metavar="FILE",
    help="Draw the objective along each feature around the tuned weights: .svg, .png or .pdf "
    "(needs matplotlib).",
)

range_option = click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    help="Least and greatest weight of a feature, as LM0=0: or TM0_1=-1:1; repeatable.",
)

start_options = all_of(
    [
        click.option(
            "--starts", default=10, show_default=True, type=click.IntRange(0), help="Random starts."
        ),
        click.option(
            "--seed",
            default=1,
            show_default=True,
            type=SEED,
            help="Seed of all random numbers.",
        ),
        click.option(
            "--threads",
            default=1,
            show_default=True,
            type=click.IntRange(1),
            help="Starts searched in parallel; other tuners than mert use one thread.",
        ),
    ]
)

replicate_options = all_of(
    [
        click.option(
            "--replicates",
            default=1,
            show_default=True,
            type=click.IntRange(1),
            help="Number of tunings on resampled documents, whose weights are averaged.",
        ),
        click.option(
            "--hold-out",
            default=0.0,
            show_default=True,
            type=click.FloatRange(0, 1, max_open=True),
            metavar="SHARE",
            help="Hold out this share of the documents from tuning, and report BLEU there.",
        ),
    ]
)


def objective_of(options: dict[str, Any]) -> ObjectiveOptions:
    """The objective, from options taken out of `options`; UsageError for contradictions."""
    metrics = tuple(map(_weighted, options.pop("objectives"))) or (("bleu", 1.0),)
    files = dict[str, str]()
    for one in options.pop("metrics"):
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--metric {one}: expected NAME=FILE")
        if name in files:
            raise UsageError(
                f"--metric {one}: {name} already names {files[name]}; take another name"
            )
        files[name] = path
    worst = options.pop("worst")
    return replace(
        bleu_objective_of(options),
        metrics=metrics,
        files=files,
        documents=options.pop("documents"),
        worst=None if worst is None else worst / 100,
    )


def bleu_objective_of(options: dict[str, Any]) -> ObjectiveOptions:
    """Corpus BLEU with its prices, from `price_options` taken out of `options`."""
    from rerank.pipeline import ObjectiveOptions

    length, price = _length(options.pop("length_ratio")), options.pop("length_price")
    if length == "free" and price is not None:
        raise UsageError("--length-price: --length-ratio free has no price; leave one of them out")
    return ObjectiveOptions(
        length=length,
        **({} if price is None else {"price": price}),
        shrinkage=options.pop("shrink"),
    )


def ranges_of(options: dict[str, Any]) -> Mapping[str, tuple[float, float]]:
    """Least and greatest weights from NAME=LOW:HIGH, either of which may be left out."""
    ranges = dict[str, tuple[float, float]]()
    for one in options.pop("ranges"):
        name, _, both = one.rpartition("=")
        if name in ranges:
            raise click.BadParameter(f"two of {name}; give both ends in one", param_hint="--range")
        low, colon, high = both.partition(":")
        try:
            ranges[name] = (float(low or -math.inf), float(high or math.inf))
        except ValueError:
            colon = ""
        if not name or not colon or any(map(math.isnan, ranges[name])):
            raise click.BadParameter(
                f"expected NAME=LOW:HIGH, as LM0=0: or TM0=-1:1, found {one!r}",
                param_hint="--range",
            )
    return ranges


def names_of(listed: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name for name in (listed or "").split(",") if name)


def settings_of(options: dict[str, Any]) -> MertSettings:
    """Effort of the search, from options taken out of `options`."""
    from rerank.pipeline import MertSettings

    return MertSettings(
        random_starts=options.pop("starts"),
        seed=options.pop("seed"),
        threads=options.pop("threads"),
    )


def _weighted(text: str) -> tuple[str, float]:
    """A metric and its weight from NAME or NAME=WEIGHT."""
    name, equals, weight = text.partition("=")
    try:
        return name, float(weight) if equals else 1.0
    except ValueError:
        raise UsageError(f"--objective {text}: expected NAME or NAME=WEIGHT") from None


def _length(text: str) -> Literal["keep", "free"] | float:
    """A value of --length-ratio: a word, or a length ratio above 0."""
    if text == "keep":
        return "keep"
    if text == "free":
        return "free"
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < math.inf:
        raise UsageError(f"--length-ratio {text}: expected keep, free, or a ratio such as 0.98")
    return ratio
