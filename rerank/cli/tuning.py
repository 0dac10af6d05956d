"""`rerank tune-mert`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.lists import list_options, split
from rerank.cli.options import announcer, quiet_option, strict_option, told
from rerank.cli.searching import tuning_search_options


@click.command("tune-mert")
@list_options
@tuning_search_options
@click.option("--ref", "references", required=True, multiple=True, help="Reference; repeatable.")
@click.option("--out", required=True, help="Weights file to write: .json or .ini.")
@click.option("--start", help="Weights to start from; features it lacks begin at 0.")
@click.option("--features", help="Comma-separated features to tune [default: all dense ones].")
@click.option("--tokenize", default="none", show_default=True, help="A tokenizer of sacrebleu.")
@click.option(
    "--pools",
    type=click.Choice(["auto", "conditional", "documents"]),
    default="auto",
    show_default=True,
    help="What weights are tuned on: lists of candidates, each in the context decoded last, or "
    "lists of paths through whole documents. auto is conditional.",
)
@click.option(
    "--n-best",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Paths of every document that a decoding adds to pools of documents.",
)
@click.option(
    "--starts", default=20, show_default=True, type=click.IntRange(0), help="Random starts."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option(
    "--threads", default=1, show_default=True, type=click.IntRange(1), help="Starts side by side."
)
@strict_option
@quiet_option
def tune_mert(
    references: tuple[str, ...],
    out: str,
    start: str | None,
    features: str | None,
    tokenize: str,
    pools: str,
    n_best: int,
    starts: int,
    seed: int,
    threads: int,
    strict: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Tune the feature weights by minimum error rate training, on whole documents.

    \b
    Example:
      rerank tune-mert --kbest dev.nbest.gz --docs dev.docids --ref dev.en \\
        --lm codclm=models/codclm --start moses.ini --out weights.json
    """
    from rerank import pipeline

    say = announcer(quiet)
    with told(strict, quiet) as notices:
        lists, search = split(options)
        result = pipeline.tune_mert(
            lists,
            references,
            out,
            features=[name for name in (features or "").split(",") if name],
            start=start,
            search=search or pipeline.Search(),
            tokenize=tokenize,
            plan=pipeline.Plan(
                pools,
                n_best,
                pipeline.MertSettings(random_starts=starts, seed=seed, threads=threads),
            ),
            notices=notices,
            announce=say,
        )
    say(result.to_text())
