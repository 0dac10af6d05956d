"""`rerank tune-mert`."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import HEADINGS, distribution_options, list_options, split
from rerank.cli.options import (
    Messages,
    drop_unreferenced_option,
    engine_message_options,
    reference_option,
)
from rerank.cli.searching import tuning_search_options
from rerank.cli.tuning_options import (
    algorithm_option,
    objective_of,
    objective_options,
    out_options,
    plot_option,
    price_options,
    range_option,
    ranges_of,
    replicate_options,
    settings_of,
    start_options,
)
from rerank.values import FILE, NameList


@click.command(
    "tune-mert",
    cls=CommandWithHeadings,
    headings={
        **HEADINGS,
        "references": "Weights",
        "objectives": "What is maximised",
        "algorithm": "How weights are found",
        "replicates": "How steady they are",
    },
)
@list_options
@distribution_options
@reference_option
@drop_unreferenced_option
@out_options
@click.option("--start", type=FILE, help="Weights to start from; features it lacks begin at 0.")
@click.option(
    "--features",
    type=NameList(),
    metavar="NAMES",
    help="Comma-separated features to tune [default: all dense ones].",
)
@range_option
@objective_options
@price_options
@algorithm_option
@click.option(
    "--pools",
    type=click.Choice(["auto", "sentences", "conditional", "exact"]),
    default="auto",
    show_default=True,
    help="What weights are tuned on: k-best lists in the context of the first candidates "
    "(sentences) or of the path decoded last (conditional), or all paths (exact, up to order 1). "
    "auto is conditional.",
)
@start_options
@replicate_options
@plot_option
@tuning_search_options
@engine_message_options
def tune_mert(
    references: tuple[str, ...],
    out: str,
    base: str | None,
    start: str | None,
    features: tuple[str, ...] | None,
    algorithm: str,
    select: str,
    pools: str,
    replicates: int,
    hold_out: float,
    plot: str | None,
    messages: Messages,
    **options: Any,
) -> None:
    """Tune the feature weights by minimum error rate training, on whole documents.

    \b
    Example:
      rerank tune-mert --kbest dev.nbest.gz --docs dev.docids --ref dev.en \\
        --lm codclm=models/codclm --start moses.ini --out weights.json
    """
    from rerank.pipeline.tuning import TunedWeights
    from rerank.pipeline.tuning import tune_mert as tune_mert_of
    from rerank.tuning.plan import Plan

    source = click.get_current_context().get_parameter_source("threads")
    machine = {} if source is ParameterSource.DEFAULT else {"threads": options["threads"]}
    with messages.warnings() as notices:
        objective, settings = objective_of(options), settings_of(options)
        ranges = ranges_of(options)
        lists, search = split(options | machine)
        result = tune_mert_of(
            lists,
            references,
            TunedWeights(out, features or (), start, ranges, base, plot),
            search=search,
            plan=Plan(
                pools,
                algorithm=algorithm,
                objective=objective,
                settings=settings,
                replicates=replicates,
                held_out=hold_out,
                select=select,
            ),
            notices=notices,
            announce=messages.announce,
            details=messages.detail,
        )
    if result is not None:
        messages.announce(result.to_text())
