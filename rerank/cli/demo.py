"""`rerank demo`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.cli.options import Messages, count_option, format_option, print_result, quiet_option
from rerank.values import FOLDER


@click.command()
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="New folder for data, models, weights and translations [default: a temporary one, "
    "removed at the end].",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed.")
@format_option
@quiet_option
def demo(out: Path | None, seed: int, form: str, quiet: bool) -> None:
    """Train, tune, decode and evaluate on an embedded example.

    \b
    Example:
      rerank demo --out demo
    """
    from rerank.commands import execute
    from rerank.pipeline.demo import demo as demo_of

    result = demo_of(out, execute, seed=seed, announce=Messages(quiet=quiet).announce)
    print_result(result, form)
