"""The page of the reference: every command and every option, as the program knows them.

`make docs` writes it; `python recipes/docs/reference.py` prints it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from textwrap import dedent, fill

import click

from decoders.table import Decoder
from rerank.commands import cli
from rerank.diagnostics import diagnostics
from rerank.registry import DECODERS
from rerank.runs.search import SEARCH
from rerank.scorers.model_options import KEYS

NEWLINE, WIDTH = "\n", 130
SHARED = 3  # commands that have the same option, from which on it is described once for all
HEAD = """\
A command's `--help` shows the options that most people need, `--help-all` all of them. In a TOML
file of options (`--config FILE`) keys are the long names without the dashes in front, as
`seed = 7`; what has options of its own is a table, as
`search = {kind = "smc", particles = 256}`. What the command line gives has precedence over the
file."""

WARNINGS = """\
Each ends in its code and its name, of which `--strict --allow` and `--deny` take either, and
`rerank check --explain CODE` prints what stands here. Runs print the cure of a warning; of a note,
whose input is read as most people expect, `rerank check` alone does."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """The name and the command of all that the program has, those of groups one by one."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        result = cli.get_command(context, name)
        if isinstance(result, click.Group):
            yield from ((f"{name} {inner}", command) for inner, command in result.commands.items())
        elif result is not None:
            yield name, result


def options_of(command: click.Command) -> dict[str, str]:
    """The options of a command by the way they are given, with their texts, as in its help."""
    context = click.Context(command, show_default=True)
    result = dict[str, str]()
    for param in command.params:
        if (shown := param.get_help_record(context)) is not None:
            usage = shown[0].replace("INTEGER RANGE", "N").replace("FLOAT RANGE", "NUMBER")
            text = shown[1].replace(" …", "").replace("].  [", "; ")
            result[usage] = " ".join([*text.split(), *getattr(param, "details", "").split()])
    return result


def paragraph(text: str, *, indent: str = "") -> str:
    """A paragraph in lines of a readable length."""
    return fill(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def described(options: Mapping[str, str]) -> str:
    """A list of options."""
    return "\n".join(paragraph(f"- `{one}`: {text}", indent="  ") for one, text in options.items())


def section(name: str, command: click.Command, shared: Mapping[str, str]) -> Iterator[str]:
    """What a command does, how it is called, and its options."""
    yield f"## rerank {name}"
    for text in dedent(command.help or "").replace("\b\n", "").split("\n\n"):
        if text.startswith("Example"):
            yield f"```sh\n{dedent(text.partition(NEWLINE)[2])}\n```"
        else:
            yield paragraph(" ".join(text.split()))
    options = options_of(command)
    yield described({one: text for one, text in options.items() if shared.get(one) != text})
    also = [one for one, text in options.items() if shared.get(one) == text]
    if also:
        names = [max(one.split(), key=lambda word: word.startswith("--")) for one in also]
        yield paragraph(f"And: {', '.join(f'`{one}`' for one in names)}.")


def page() -> str:
    """The whole page."""
    known = dict(commands())
    users = Counter(row for command in known.values() for row in options_of(command).items())
    shared = dict(row for row, n in users.items() if n >= SHARED)
    parts = ["# Reference", paragraph(" ".join(HEAD.split()))]
    for name, command in known.items():
        parts += section(name, command, shared)
    parts += [f"## Options of {SHARED} commands and more", described(shared), "## Searches"]
    parts.append(described({row.name: keys_of(row) for row in DECODERS.builtin.values()}))
    parts.append(described({key: one.text for key, one in SEARCH.keys.items()}))
    parts += ["## Language models", described({key: one.text for key, one in KEYS.items()})]
    parts += ["## Warnings", paragraph(" ".join(WARNINGS.split()))]
    rows = [one.explained().strip() for one in diagnostics().values()]
    parts.append("\n".join(["```text", "\n\n".join(rows), "```"]))
    return "\n\n".join(filter(None, parts))


def keys_of(decoder: Decoder) -> str:
    """The names of a decoder's own options."""
    names = [f"`{key}`" for key, one in SEARCH.keys.items() if decoder.takes(one.field)]
    return ", ".join(names) or "none"


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
