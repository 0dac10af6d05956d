"""Options of what is measured of translations, of the commands that compare them."""

from __future__ import annotations

import click

from rerank.cli.options import all_of
from rerank.registry import METRICS
from rerank.values import FILE, TEXT, MemberName, Pair

_OPTIONS = [
    click.option(
        "--metric",
        "-m",
        "metrics",
        multiple=True,
        type=MemberName(METRICS),
        help="Metric beside BLEU; repeatable [default: bleu, chrf and ter].",
    ),
    click.option(
        "--tokenize",
        default="none",
        type=TEXT,
        help="Tokenizer of sacrebleu for BLEU, such as 13a; or moses-en, the Moses tokenizer for a "
        "language, of texts that are not tokenised.",
    ),
    click.option(
        "--scores",
        multiple=True,
        type=Pair("NAME=HYP:FILE, for example comet=test.out:test.out.comet", TEXT),
        metavar="NAME=HYP:FILE",
        help="Values of metric NAME by another tool, such as COMET, for the lines of HYP: a number "
        "a line; give one for each HYP and for --baseline (`report`: for decoded and for "
        "baseline). The mean of all lines is reported.",
    ),
    click.option(
        "--word-classes",
        is_flag=True,
        help="Report F1 of classes of English words against the references, too: pronouns, "
        "auxiliaries, other function words, names (capitals inside sentences) and content words.",
    ),
    click.option(
        "--word-list",
        "word_lists",
        multiple=True,
        type=Pair("NAME=FILE", FILE),
        metavar="NAME=FILE",
        help="A class of words, one a line, of which F1 is reported; pronouns, auxiliaries and "
        "function take the place of the English lists; repeatable.",
    ),
    click.option(
        "--word-frequencies",
        type=FILE,
        help="Lines of a word and its count, for example in the training text, by which "
        "--word-classes divides content words.",
    ),
]
measure_options = all_of(_OPTIONS)
