"""`rerank demo`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rerank.cli.options import announcer, format_option, quiet_option


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="New folder that keeps data, models, weights and translations [default: none is kept].",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**31 - 1))
@format_option
@quiet_option
def demo(out: Path | None, seed: int, form: str, quiet: bool) -> None:
    """The whole way on an embedded example: train, tune, decode, evaluate.

    \b
    Example:
      rerank demo --out demo
    """
    from rerank import pipeline

    result = pipeline.demo(out, seed=seed, announce=announcer(quiet))
    click.echo(json.dumps(result.to_dict()) if form == "json" else result.to_text())
