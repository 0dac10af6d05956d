"""Options for the k-best lists, documents and scores that a command works on."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.options import (
    all_of,
    cache_option,
    device_option,
    interleaved_docs_option,
    kbest_or_systems_option,
    memory_option,
    no_docs_option,
)
from rerank.cli.searching import search_of
from rerank.cli.side_information import side_of, side_options
from rerank.corpus.reading import ReadingOptions
from rerank.options import decorators_of
from rerank.registry import ALL_SYSTEMS, SCORE_FILES
from rerank.values import (
    FILE,
    FOLDER,
    MOST_LINES,
    PART,
    TEXT,
    Pair,
    ShardName,
    Whole,
)

if TYPE_CHECKING:
    from rerank.pipeline import Lists, Search

DOCUMENT_CACHE = 0.1  # the best share on subtitles, with 6 % less perplexity


def _with_top(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """The flag; BadParameter without `--top`."""
    if value and context.params.get("top") is None:
        raise click.BadParameter("it needs --top K, the number of candidates to keep")
    return value


_NAMES = {field.name for field in fields(ReadingOptions)}
_TOP, _DIVERSE = (
    click.option(
        "--top",
        type=Whole(most=MOST_LINES),
        metavar="K",
        is_eager=True,  # the callback of --diverse asks for it
        help="Keep only the first K candidates of each sentence.",
    ),
    click.option(
        "--diverse",
        is_flag=True,
        callback=_with_top,
        help="With --top, keep the first candidate and then those farthest, by edit distance, "
        "from the ones kept.",
    ),
)
_OTHERS = decorators_of(ReadingOptions, without={"top", "diverse", "missing", "normalize"})
_READING_OPTIONS = [*_OTHERS[:4], _TOP, _DIVERSE, *_OTHERS[4:]]
reading_options = all_of(_READING_OPTIONS)
(missing_option,) = decorators_of(ReadingOptions, without=_NAMES - {"missing"})
(normalize_option,) = decorators_of(ReadingOptions, without=_NAMES - {"normalize"})
_SCORER_OPTIONS = [
    click.option(
        "--lm",
        "lms",
        multiple=True,
        type=Pair("NAME=DIR, for example codclm=models/codclm", FOLDER),
        metavar="NAME=DIR",
        help="Language model made by train-lm, as features NAME and NAMEoov; or hf:DIR, a causal "
        "language model of Hugging Face in safetensors (extra hf), as feature NAME, given the "
        "document so far: hf:DIR,sentences=2 or hf:DIR,tokens=512 (whole sentences) give it less, "
        "join=space joins sentences by spaces in place of newlines, detokenize=en undoes the "
        "tokenisation of the lists; repeatable.",
    ),
    click.option(
        "--pmi",
        multiple=True,
        type=TEXT,
        metavar="NAME",
        help="Split feature NAME of an --lm into a sum: NAMEnull, the log-probability without "
        "context, and NAMEpmi, what the context adds to it (0 for first sentences), so that "
        "fluency and context have weights of their own; repeatable. Example: --lm codclm=DIR "
        "--pmi codclm.",
    ),
    click.option(
        "--document-cache",
        "document_caches",
        multiple=True,
        type=Pair("NAME or NAME=SHARE, for example codclm=0.1", PART, default=DOCUMENT_CACHE),
        metavar="NAME[=SHARE]",
        help="Interpolate the model NAME of an --lm with a document cache, the unigram of the "
        "document so far, of weight SHARE; its order is then unbounded; repeatable "
        f"[default SHARE: {DOCUMENT_CACHE}].",
    ),
    *(
        click.option(
            f"--{option}",
            multiple=True,
            type=Pair(f"[NAME=]FILE, for example {kind.label}=FILE", FILE, label=kind.label),
            metavar="[NAME=]FILE",
            help=kind.help,
        )
        for option, kind in SCORE_FILES.items()
    ),
    click.option(
        "--scorer",
        "scorers",
        multiple=True,
        type=Pair("NAME=ENTRY or NAME=ENTRY:ARGUMENT", TEXT),
        metavar="NAME=ENTRY[:ARGUMENT]",
        help="Scorer `document-cache`, `consistency` (source words with several translations in a "
        "document; needs --source, and alignments in the list), or one of an installed package, as "
        "feature NAME; repeatable. `rerank list scorers` shows the entries; the ARGUMENT goes to "
        "the scorer.",
    ),
    *side_options(also={"source": ", and for --missing source"}),
    device_option,
    click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16"]),
        default="float32",
        help="Precision of large matrix products; bfloat16 is faster, with errors of about "
        "0.01 nats.",
    ),
    click.option(
        "--deterministic",
        is_flag=True,
        help="Compute bit-identical scores for any batch size and number of threads; slower "
        "with beam search.",
    ),
    cache_option,
    click.option("--no-cache", is_flag=True, help="Neither read nor write the score cache."),
]
systems_option = click.option(
    "--systems",
    multiple=True,
    type=Pair("[NAME=]FILE, for example A=a.txt or wmt23.xml", FILE, label=ALL_SYSTEMS),
    metavar="[NAME=]FILE",
    help="In place of --kbest, whose lists are then made of the outputs of several systems: a line "
    "per source sentence, or FILE.xml#SYSTEM; FILE of WMT XML without NAME gives all its systems; "
    "repeatable. Features: sysNAME of each system, votes, consensusbleu, consensuschrf, "
    "consensusdocbleu.",
)
list_options = all_of(
    [
        kbest_or_systems_option,
        systems_option,
        interleaved_docs_option,
        no_docs_option,
        *_READING_OPTIONS,
        missing_option,
        normalize_option,
        *_SCORER_OPTIONS,
    ]
)
distribution_options = all_of(
    [
        click.option(
            "--shard",
            type=ShardName(),
            metavar="I/N",
            help="Only score the documents of shard I of N, dealt by their size, and put the "
            "scores into the cache; nothing is written. Once all shards are done, on machines that "
            "share the cache, the same command without --shard finishes. torchrun needs no option: "
            "its processes share the documents by themselves.",
        ),
        click.option(
            "--ray",
            type=TEXT,
            metavar="ADDRESS",
            help="Have the workers of a Ray cluster score the documents (extra ray): auto for the "
            "one that this machine belongs to, HOST:PORT, or local for one on this machine alone.",
        ),
        memory_option,
    ]
)
HEADINGS = {
    "kbest": "Lists and documents",
    "lms": "Features to add",
    "method": "Search",
    "strict": "Messages",
}


def split(options: dict[str, Any]) -> tuple[Lists, Search]:
    """`Lists` and `Search` from a command's options."""
    from rerank.pipeline import Lists, ModelOptions, Scoring, Shard

    search = search_of(options)
    named = ("device", "dtype", "deterministic", "cache", "no_cache", "threads", "ray", "memory")
    machine = {name: options.pop(name) for name in named if name in options}
    shard = options.pop("shard", None)
    scoring = Scoring(**machine, shard=None if shard is None else Shard(*shard))
    files = {option: options.pop(option.replace("-", "_")) for option in SCORE_FILES}
    score_files = {
        option: tuple((name, Path(file)) for name, file in named)
        for option, named in files.items()
        if named
    }
    of_models = ModelOptions(options.pop("pmi"), options.pop("document_caches"))
    side = side_of(options)
    systems = tuple((name, Path(file)) for name, file in options.pop("systems"))
    lists = Lists(
        options.pop("kbest") or "",
        systems=systems,
        **options,
        score_files=score_files,
        scoring=scoring,
        model_options=of_models,
        side=side,
    )
    return lists, search
