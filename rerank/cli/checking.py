"""`rerank check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.lists import missing_option, normalize_option, reading_options, systems_option
from rerank.cli.options import (
    Messages,
    drop_unreferenced_option,
    format_option,
    interleaved_docs_option,
    kbest_or_systems_option,
    message_options,
    no_docs_option,
    print_result,
)
from rerank.values import FILE, FOLDER, TEXT, Pair


@click.command()
@kbest_or_systems_option
@systems_option
@interleaved_docs_option
@no_docs_option
@reading_options
@missing_option
@normalize_option
@click.option(
    "--ref",
    "references",
    multiple=True,
    type=FILE,
    help="Reference translation, one line per source sentence; repeatable.",
)
@drop_unreferenced_option
@click.option("--source", type=FILE, help="Source text, one line per source sentence.")
@click.option("--weights", type=FILE, help="Weights file, whose names must be those of the list.")
@click.option(
    "--lm",
    "lms",
    multiple=True,
    type=Pair("NAME=DIR, for example codclm=models/codclm", FOLDER),
    metavar="NAME=DIR",
    help="Language model, whose unknown words are counted; repeatable.",
)
@click.option(
    "--tokenize",
    default="none",
    type=TEXT,
    help="Tokenizer of sacrebleu for BLEU, such as 13a; or moses-en, that of Moses for a language.",
)
@click.option(
    "--fix",
    type=FILE,
    metavar="OUT",
    help="Write a clean copy of the list to the file OUT, or of all text files into the folder "
    "OUT, if there is one. Only what needs no guess is repaired; the exit code is then 0 if the "
    "copies have no faults, and nothing is written otherwise.",
)
@format_option
@message_options
def check(
    kbest: str | None,
    systems: tuple[tuple[str, str], ...],
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    source: str | None,
    weights: str | None,
    lms: tuple[tuple[str, Path], ...],
    tokenize: str,
    fix: str | None,
    form: str,
    messages: Messages,
    **reading: Any,
) -> int:
    """Find faults in the files of a run, and summarise its lists.

    \b
    All faults and warnings are listed with file, line and cure, each kind once with its count. The
    exit code is 3 if decode or tune-mert would refuse the files; under --strict also for warnings.

    \b
    Example:
      rerank check --kbest dev.nbest.gz --docs dev.docids --ref dev.ref --weights w.json
    """
    from rerank import pipeline

    side: dict[str, str | Path] = {} if source is None else {"source": source}
    outputs = tuple((name, Path(file)) for name, file in systems)
    with messages.warnings() as notices:
        result = pipeline.check(
            pipeline.Lists(
                kbest or "", docs, no_docs, systems=outputs, lms=lms, side=side, **reading
            ),
            references,
            weights=weights,
            tokenize=tokenize,
            fix=fix,
            notices=notices,
        )
    print_result(result, form)
    return int(result.exit_code)
