"""`rerank decode` and `rerank score`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.lists import list_options, split
from rerank.cli.options import announcer, quiet_option, strict_option, told
from rerank.cli.searching import path_options, search_options


@click.command()
@list_options
@search_options
@click.option("--weights", required=True, help="Weights file: JSON, rescore.ini or moses.ini.")
@click.option("--default-weight", type=float, help="Weight of features that the file lacks.")
@click.option(
    "--out", default="-", show_default=True, help="1-best text, one line per source line."
)
@click.option("--kbest-out", help="The list back, with new features and totals.")
@click.option("--summary", help="Choices and scores of every document, as JSON.")
@click.option(
    "--n-best",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Paths of every document that the summary tells.",
)
@click.option(
    "--trace", help="Features, margins and marginals of every sentence, a JSON line each."
)
@click.option("--dry-run", is_flag=True, help="Stop after the estimate of the work.")
@strict_option
@quiet_option
def decode(
    weights: str,
    default_weight: float | None,
    out: str,
    kbest_out: str | None,
    summary: str | None,
    n_best: int,
    trace: str | None,
    dry_run: bool,
    strict: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Choose the best candidates for whole documents.

    \b
    Example:
      rerank decode --kbest test.nbest.gz --docs test.docids --lm codclm=models/codclm \\
        --weights weights.json --out test.out
    """
    from rerank import pipeline

    say = announcer(quiet)
    with told(strict, quiet) as notices:
        lists, search = split(options)
        result = pipeline.decode(
            lists,
            weights,
            out,
            search=(search or pipeline.Search()).listing(n_best),
            default_weight=default_weight,
            reports=pipeline.Reports(kbest_out, summary, trace),
            dry_run=dry_run,
            notices=notices,
            announce=say,
        )
    if result is not None:
        say(result.to_text())


@click.command()
@list_options
@path_options
@click.option("--weights", help="Score after the path decoded with these weights.")
@click.option("--out", default="-", show_default=True, help="The list with the features appended.")
@strict_option
@quiet_option
def score(weights: str | None, out: str, strict: bool, quiet: bool, **options: Any) -> None:
    """Append language-model features to an n-best list, for other tuners.

    \b
    Example:
      rerank score --kbest dev.nbest --docs dev.docids --lm codclm=models/codclm --out dev.scored
    """
    from rerank import pipeline

    with told(strict, quiet) as notices:
        lists, search = split(options)
        pipeline.score(
            lists,
            out,
            weights=weights,
            search=search or pipeline.Search(),
            notices=notices,
            announce=announcer(quiet),
        )
