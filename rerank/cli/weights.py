"""`rerank weights`."""

from __future__ import annotations

import click

from rerank.cli.options import Messages, message_options
from rerank.registry import MOSES_INI, WEIGHT_FORMATS
from rerank.values import FILE, MemberName


@click.command()
@click.argument("source", type=FILE, metavar="IN")
@click.option(
    "--to",
    required=True,
    type=MemberName(WEIGHT_FORMATS, MOSES_INI),
    help="Format to write: json (ours), ini (rescore.ini, and a [weight] section to paste), dense "
    "(run*.dense), kbmira (F0, F1, …), cdec, travatar, or moses-ini with --base.",
)
@click.option("--out", default="-", type=FILE, help="File to write; - is standard output.")
@click.option("--base", type=FILE, help="With --to moses-ini, the moses.ini to write them into.")
@click.option(
    "--kbest",
    type=FILE,
    help="K-best list whose features, in their order, have the weights F0, F1, … of IN, or "
    "those with names of another tool; with --to cdec or travatar, the list whose names are "
    "written (not needed for JSON that tune-mert made of this list).",
)
@message_options
def weights(
    source: str, to: str, out: str, base: str | None, kbest: str | None, messages: Messages
) -> None:
    """Convert a weights file for another tool.

    \b
    IN is recognised by its content: moses.ini, also with the sections of old versions, such as
    [weight-l], and with a [weight-file]; run*.dense; rescore.ini; kbmira and PRO; cdec and Joshua;
    travatar; numbers alone; JSON of rerank, or an object of names and numbers.

    \b
    Example:
      rerank weights run7.dense --to json --out weights.json
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        pipeline.weights(source, to, out, base=base, kbest=kbest, notices=notices)
