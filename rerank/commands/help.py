"""`rerank help`: details of an option, its keys, and the help of a command."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Iterator, Mapping

import click

from rerank.commands.list_parts import OPTIONS
from rerank.errors import UsageError
from rerank.files.run_files import DetailedOption, flag_of
from rerank.files.terminal import show
from rerank.options import Command, argument, record
from rerank.values import TEXT, Key


@record
class HelpOptions:
    """Options of `rerank help`."""

    topic: str = argument("[TOPIC]", type=TEXT, default="")


def show_help(options: HelpOptions) -> None:
    """Say more of an option and its keys, or show the help of a command.

    TOPIC is the name of an option, or of a command. Without it, the options are listed of which
    there is more to say than their lines in `--help`.

    Example:
      rerank help lm
      rerank help search
    """
    topic = options.topic.lstrip("-")
    program = click.get_current_context().find_root()
    if isinstance(program.command, click.Group):
        command = program.command.get_command(program, topic)
        if command is not None:
            show(command.get_help(click.Context(command, program, info_name=topic)))
            return
    # options by name, each with the commands that have it
    pages: dict[str, dict[DetailedOption, list[str]]] = {}
    for path, option in _options(program):
        page = pages.setdefault(flag_of(option), {})
        text = option.help, option.details
        same = (known for known in page if (known.help, known.details) == text)
        page.setdefault(next(same, option), []).append(path)
    if not topic:
        detailed = [name for name, page in pages.items() if any(map(_has_details, page))]
        show(f"options with a page:\n{_filled(', '.join(sorted(detailed)), '  ')}")
        return
    if topic not in pages:
        near = difflib.get_close_matches(topic, pages, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`rerank help` lists the options"
        raise UsageError(f"no page of help about {topic!r}; {hint}")
    page = pages[topic]
    parts = [_page(option, page[option]) for option in [*filter(_has_details, page)] or page]
    if topic in OPTIONS.values():
        kinds = [kind for kind, option in OPTIONS.items() if option == topic]
        parts.append(f"See also: rerank list {', '.join(kinds)}")
    show("\n\n".join(parts))


def _options(
    ctx: click.Context, command: click.Command | None = None
) -> Iterator[tuple[str, DetailedOption]]:
    """The options of all commands, with the words of each command."""
    command = command or ctx.command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None:
                for path, option in _options(ctx, inner):
                    yield f"{name} {path}".rstrip(), option
    else:
        options = (option for option in command.params if isinstance(option, DetailedOption))
        yield from (("", option) for option in options)


def _has_details(option: DetailedOption) -> bool:
    """Whether there is more to say of an option than its lines in `--help`."""
    return bool(option.details or _sections(option))


def _sections(option: click.Option) -> Mapping[str, Mapping[str, Key]]:
    """The keys of an option's value, by what they stand behind."""
    keys = getattr(option.type, "keys", None)
    sections: Mapping[str, Mapping[str, Key]] = getattr(option.type, "sections", {"": keys})
    return {behind: keys for behind, keys in sections.items() if keys}


def _page(option: DetailedOption, paths: list[str]) -> str:
    """What there is to say of an option of some commands."""
    usage = f"--{flag_of(option)} {option.metavar or ''}".rstrip()
    text = (option.help or "").removesuffix(" …")
    parts = [f"{usage}  ({', '.join(paths)})", *map(_filled, [text, *option.details.split("\n\n")])]
    for behind, keys in _sections(option).items():
        lines = [f"Keys of {behind}:" if behind else "Keys:"]
        margin = " " * (max(map(len, keys)) + 4)
        for name, key in keys.items():
            lines.append(f"  {name:<{len(margin) - 2}}{_filled(key.text, margin).lstrip()}")
        parts.append("\n".join(lines))
    return "\n\n".join(filter(None, parts))


def _filled(text: str, margin: str = "") -> str:
    """A text in lines that fit."""
    width = min(100, shutil.get_terminal_size().columns)
    return click.wrap_text(text, width, initial_indent=margin, subsequent_indent=margin)


COMMAND = Command("help", HelpOptions, show_help)
COMMAND.ignore_unknown_options = True  # `rerank help --table`
