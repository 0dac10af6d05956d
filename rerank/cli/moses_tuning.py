"""`rerank tune-moses`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.options import Messages, message_options
from rerank.cli.tuning_options import (
    algorithm_option,
    bleu_objective_of,
    out_options,
    plot_option,
    price_options,
    range_option,
    ranges_of,
    settings_of,
    start_options,
)
from rerank.values import FILE, NameList


@click.command(
    "tune-moses",
    cls=CommandWithHeadings,
    headings={
        "features": "Files of the extractor",
        "out": "Weights",
        "length_ratio": "What is maximised",
        "algorithm": "How weights are found",
        "plot": "How steady they are",
        "strict": "Messages",
    },
)
@click.option(
    "--features",
    required=True,
    multiple=True,
    type=FILE,
    help="features.dat of Moses' extractor; repeatable, one for each --scores.",
)
@click.option(
    "--scores",
    required=True,
    multiple=True,
    type=FILE,
    help="scores.dat of the same run of extractor, with BLEU; repeatable.",
)
@out_options
@click.option(
    "--init",
    type=FILE,
    help="init.opt to start from: three lines, start, least, largest values.",
)
@click.option(
    "--start",
    type=FILE,
    help="Weights to start from, sparse ones too: moses.ini, run*.dense, weights.txt, JSON; "
    "features it lacks begin at 0.",
)
@click.option(
    "--tune",
    type=NameList(),
    metavar="NAMES",
    help="Comma-separated features to tune; the others keep their start weight [default: all].",
)
@range_option
@price_options
@algorithm_option
@start_options
@plot_option
@message_options
def tune_moses(
    features: tuple[str, ...],
    scores: tuple[str, ...],
    out: str,
    init: str | None,
    start: str | None,
    base: str | None,
    tune: tuple[str, ...] | None,
    algorithm: str,
    select: str,
    plot: str | None,
    messages: Messages,
    **options: Any,
) -> None:
    """Tune the feature weights on the files of Moses' extractor, in place of Moses' mert.

    \b
    Example:
      rerank tune-moses --features run1.features.dat --scores run1.scores.dat \\
        --init run1.init.opt --base moses.ini --out tuned.ini
    """
    from rerank.pipeline.moses_tuning import tune_moses as tune_moses_of
    from rerank.pipeline.tuning import TunedWeights
    from rerank.tuning.plan import Plan

    with messages.warnings() as notices:
        objective, settings = bleu_objective_of(options), settings_of(options)
        result = tune_moses_of(
            features,
            scores,
            TunedWeights(out, tune or (), start, ranges_of(options), base=base, plot=plot),
            init=init,
            plan=Plan(algorithm=algorithm, objective=objective, settings=settings, select=select),
            notices=notices,
            announce=messages.announce,
        )
    messages.announce(result.to_text())
