"""`rerank evaluate`."""

from __future__ import annotations

import json
from typing import Any

import click

from rerank.cli.lists import reading_options
from rerank.cli.options import format_option, quiet_option, strict_option, told


@click.command()
@click.argument("systems", nargs=-1, required=True, metavar="HYP...")
@click.option("--docs", help="Document id of each source line.")
@click.option("--no-docs", type=click.Choice(["each", "one"]), help="Without --docs.")
@click.option("--ref", "references", required=True, multiple=True, help="Reference; repeatable.")
@click.option("--baseline", required=True, help="Translations that the others are compared with.")
@click.option("--kbest", help="The list, for its oracle and anti-oracle.")
@reading_options
@click.option("--tokenize", default="none", show_default=True, help="A tokenizer of sacrebleu.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**63 - 1))
@format_option
@strict_option
@quiet_option
def evaluate(
    systems: tuple[str, ...],
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    baseline: str,
    kbest: str | None,
    tokenize: str,
    seed: int,
    form: str,
    strict: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """BLEU, and the documents that got better.

    \b
    Example:
      rerank evaluate --docs test.docids --ref test.en --baseline test.1best test.out
    """
    from rerank import pipeline

    with told(strict, quiet) as notices:
        result = pipeline.evaluate(
            docs,
            references,
            [baseline, *systems],
            no_docs=no_docs,
            kbest=None if kbest is None else pipeline.OracleList(kbest, **reading),
            tokenize=tokenize,
            seed=seed,
            notices=notices,
        )
    if form == "json":
        click.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        click.echo(result.to_text(), nl=False)
