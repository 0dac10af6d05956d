"""Options that several commands share, and what a command says to its user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from rerank.commands.run import (
    KBEST_HELP,
    REFERENCE_HELP,
    ListFiles,
    Machine,
)
from rerank.commands.run import Messages as Messages
from rerank.commands.run import print_result as print_result
from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.options import decorators_of, only_one, settings_of
from rerank.values import FILE, MOST, Whole

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


def count_option(
    *names: str, help: str, least: int = 1, most: int = MOST, default: int | None = None
) -> Decorator:
    """An option for a number of something."""
    return click.option(*names, type=Whole(least, most), default=default, help=help)


_KBEST: dict[str, Any] = {"type": FILE, "multiple": True, "callback": only_one}
kbest_option = click.option("--kbest", required=True, help=KBEST_HELP, **_KBEST)
kbest_or_systems_option = decorators_of(ListFiles)[0]
reference_option = click.option(
    "--ref",
    "references",
    required=True,
    multiple=True,
    type=FILE,
    help=REFERENCE_HELP,
)
drop_unreferenced_option = click.option(
    "--drop-unreferenced",
    is_flag=True,
    help="Leave out sentences that a reference in WMT XML, NIST SGML or JSON lines does not have.",
)
documents_option = click.option(
    "--documents",
    type=click.Choice(["blank", "equals", "paragraphs"]),
    default="blank",
    help="What parts documents: blank lines; or lines whose first character is =, which close "
    "one, as in the data files of Ji et al. 2016 (a blank line is an empty sentence there); or "
    "both blank lines and lines that are <p>, so that every paragraph is a document, as for the "
    "contextual LSTMs (clstm-paraseg and others).",
)

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output as text or as JSON.",
)
table_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "tsv"]),
    default="text",
    help="Output as text, as JSON, or as TSV; the latter two with all digits.",
)

paper_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "tsv", "latex", "markdown"]),
    default="text",
    help="Output as text; as JSON or TSV, with all digits; or as a table for LaTeX (booktabs) or "
    "Markdown.",
)


def by_name(option: str, pairs: Sequence[tuple[str, T]]) -> dict[str, T]:
    """Values by name; UsageError for a repeated name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{option} {twice}=…: two of one name; give one")
    return found


def all_of(options: Sequence[Decorator]) -> Decorator:
    """Several options as one decorator, shown in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _packed(*flags: Decorator) -> Decorator:
    """Options of messages as one decorator; the command receives them as `messages`."""

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_messages(*, strict: bool, quiet: bool, verbose: bool = False, **given: Any) -> Any:
            messages = Messages(strict=strict, quiet=quiet, verbose=verbose)
            return command(messages=messages, **given)

        return all_of(flags)(with_messages)

    return decorate


def _documents_options(*without: str) -> Decorator:
    """Options of `DocumentOptions`; the command receives the file that they name as `docs`."""
    flags = decorators_of(DocumentOptions, without=("no_docs", *without))

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_documents(**given: Any) -> Any:
            names = given.keys() & {"docs", "docs_field", "docs_format", "allow_interleaved"}
            documents = settings_of(DocumentOptions, **{name: given.pop(name) for name in names})
            return command(docs=documents.file, **given)

        return all_of(flags)(with_documents)

    return decorate


docs_option = _documents_options("allow_interleaved")
interleaved_docs_option = _documents_options()
(no_docs_option,) = decorators_of(
    DocumentOptions, without=("docs", "docs_field", "docs_format", "allow_interleaved")
)
message_options = _packed(*decorators_of(Messages, without={"verbose"}))
engine_message_options = _packed(*decorators_of(Messages))
(quiet_option,) = decorators_of(Messages, without={"strict", "verbose"})
device_option, threads_option = decorators_of(Machine)
