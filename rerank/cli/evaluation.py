"""`rerank evaluate`."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import normalize_option, reading_options
from rerank.cli.measures import measure_options
from rerank.cli.options import (
    REFERENCE_HELP,
    Messages,
    by_name,
    count_option,
    drop_unreferenced_option,
    interleaved_docs_option,
    message_options,
    no_docs_option,
    paper_format_option,
    print_result,
)
from rerank.errors import UsageError
from rerank.files.terminal import show
from rerank.values import FILE, SEED, TEXT


@click.command(
    cls=CommandWithHeadings,
    headings={
        "docs": "Translations and documents",
        "kbest": "Oracle",
        "tokenize": "Scoring and output",
        "strict": "Messages",
    },
)
@click.argument("systems", nargs=-1, required=True, type=FILE, metavar="HYP...")
@interleaved_docs_option
@no_docs_option
@click.option("--ref", "references", multiple=True, type=FILE, help=REFERENCE_HELP)
@click.option(
    "-t",
    "--test-set",
    type=TEXT,
    help="Test set of sacrebleu in place of --ref and --docs, as wmt23, from the cache of "
    "sacrebleu; nothing is downloaded.",
)
@click.option("-l", "--language-pair", type=TEXT, help="Language pair of --test-set, as ru-en.")
@drop_unreferenced_option
@click.option(
    "--baseline",
    required=True,
    type=FILE,
    help="Translations that the others are compared with; FILE#NAME in WMT XML.",
)
@click.option("--kbest", type=FILE, help="K-best list whose oracle and anti-oracle BLEU is shown.")
@reading_options
@measure_options
@normalize_option
@click.option(
    "--detokenize",
    type=TEXT,
    metavar="LANGUAGE",
    help="Score the texts detokenised, too, by the rules of the Moses detokenizer for a language, "
    "such as en; BLEU with the tokenizer 13a.",
)
@click.option(
    "--detruecase",
    is_flag=True,
    help="With --detokenize: begin sentences of the detokenised texts with capitals.",
)
@click.option(
    "--truecase",
    type=FILE,
    help="Truecase references and translations before they are scored, by a model of "
    "`sacremoses train-truecase` or of Moses.",
)
@click.option(
    "--weights",
    type=FILE,
    help="Weights file of a tuning command (.json): its objective says which metrics are marked "
    "as optimised, and which as held out.",
)
@click.option(
    "--per-document", is_flag=True, help="Print a table of the documents, too; JSON has it always."
)
@click.option(
    "--tests",
    is_flag=True,
    help="Print a table of the p-values of all tests, too: sign-flip (approximate randomisation), "
    "paired bootstrap and sign test, over documents; JSON and TSV have them always.",
)
@click.option(
    "--score-only",
    "-b",
    is_flag=True,
    help="Print only the scores of each HYP, a line each, its metrics parted by TABs.",
)
@count_option(
    "--width",
    "-w",
    "digits",
    least=0,
    most=16,
    default=2,
    help="Number of digits after the point of --score-only.",
)
@click.option("--seed", default=1, type=SEED, help="Random seed of intervals and tests.")
@paper_format_option
@message_options
def evaluate(
    systems: tuple[str, ...],
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    baseline: str,
    kbest: str | None,
    metrics: tuple[str, ...],
    tokenize: str,
    detokenize: str | None,
    detruecase: bool,
    truecase: str | None,
    normalize: str,
    scores: tuple[tuple[str, str], ...],
    word_classes: bool,
    word_lists: tuple[tuple[str, str], ...],
    word_frequencies: str | None,
    weights: str | None,
    test_set: str | None,
    language_pair: str | None,
    drop_unreferenced: bool,
    per_document: bool,
    tests: bool,
    score_only: bool,
    digits: int,
    seed: int,
    form: str,
    messages: Messages,
    **reading: Any,
) -> None:
    """Compare translations with a baseline: BLEU, chrF, TER, and documents better or worse.

    \b
    Example:
      rerank evaluate --docs test.docids --ref test.en --baseline test.1best test.out

    
    Systems and references inside WMT XML are named as FILE#NAME:
      wmt23.xml#GPT4-5shot
    """
    from rerank import pipeline
    from rerank.report.evaluation_tables import documents_table, score_lines

    lists = by_name("--word-list", word_lists)
    if (test_set is None) != (language_pair is None):
        raise UsageError("--test-set and --language-pair: expected both or none; give both")
    cached = None
    if test_set is not None and language_pair is not None:
        cached = pipeline.CachedSet(test_set, language_pair)
    more = pipeline.Additions(
        detokenize,
        scores,
        word_classes,
        lists,
        word_frequencies,
        weights,
        drop_unreferenced,
        cached,
        detruecase,
        truecase,
        normalize,
    )
    with messages.warnings() as notices:
        result = pipeline.evaluate(
            docs,
            references,
            [baseline, *systems],
            no_docs=no_docs,
            kbest=None if kbest is None else pipeline.Lists(kbest, normalize=normalize, **reading),
            metrics=metrics or pipeline.DEFAULT_METRICS,
            tokenize=tokenize,
            seed=seed,
            more=more,
            notices=notices,
        )
    if score_only:
        show(score_lines(result, digits).removesuffix("\n"))
        return
    if form != "text":
        print_result(result, form)
        return
    if per_document:
        show(documents_table(result))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    show(result.to_text(width, tests=tests).removesuffix("\n"))
