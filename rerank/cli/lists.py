"""Options that say which lists, documents and models a command works on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rerank.cli.options import cache_option, device_option
from rerank.cli.searching import taken
from rerank.registry import OUTSIDE

if TYPE_CHECKING:
    from rerank.pipeline import Lists, Search

Command = TypeVar("Command", bound=Callable[..., Any])


def _named_folders(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Path], ...]:
    """(name, folder) of each NAME=DIR."""
    found = []
    for value in values:
        name, mark, folder = value.partition("=")
        if not (mark and name and folder):
            raise click.BadParameter(
                f"expected NAME=DIR, for example codclm=models/codclm; found {value!r}"
            )
        found.append((name, Path(folder)))
    return tuple(found)


def _named_files(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, Path], ...]:
    """(name, file) of each [NAME=]FILE; a FILE that has a `=` may be written ./FILE."""
    label = OUTSIDE[parameter.opts[-1].removeprefix("--")].label
    found = []
    for value in values:
        name, mark, file = value.partition("=")
        if not mark or "/" in name:
            name, file = label, value
        if not file:
            raise click.BadParameter(
                f"expected [NAME=]FILE, for example {label}=FILE; found {value!r}"
            )
        found.append((name, Path(file)))
    return tuple(found)


def _finite(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """The value, which is a number of finite size."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"expected a finite number, found {value}")
    return value


def _with_top(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """The flag, which needs `--top`."""
    if value and context.params.get("top") is None:
        raise click.BadParameter("it says which candidates --top keeps; give --top K, too")
    return value


_READING_OPTIONS = [
    click.option(
        "--top",
        type=click.IntRange(1),
        is_eager=True,  # known before the callback of --diverse asks for it
        help="Keep the first K candidates of each list.",
    ),
    click.option(
        "--diverse",
        is_flag=True,
        callback=_with_top,
        help="With --top, keep the first candidate and those farthest from the ones kept.",
    ),
    click.option(
        "--first-id",
        default=0,
        show_default=True,
        type=click.IntRange(0),
        help="Id of the first source line.",
    ),
    click.option(
        "--clip-inf",
        type=float,
        callback=_finite,
        help="Size that stands for that of an infinite feature.",
    ),
]
_OPTIONS = [
    click.option(
        "--kbest", required=True, help="Moses n-best list; - is stdin; gz and xz are seen."
    ),
    click.option("--docs", help="Document id of each source line."),
    click.option(
        "--no-docs",
        type=click.Choice(["each", "one"]),
        help="Without --docs: each line is a document, or all lines are one.",
    ),
    click.option(
        "--lm",
        "lms",
        multiple=True,
        metavar="NAME=DIR",
        callback=_named_folders,
        help="Language model as features NAME and NAMEoov; repeatable.",
    ),
    *(
        click.option(
            f"--{option}",
            multiple=True,
            metavar="[NAME=]FILE",
            callback=_named_files,
            help=kind.help,
        )
        for option, kind in OUTSIDE.items()
    ),
    *_READING_OPTIONS,
    click.option(
        "--max-k",
        default=1_000_000,
        show_default=True,
        type=click.IntRange(1),
        help="Refuse longer lists.",
    ),
    device_option,
    click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16"]),
        default="float32",
        show_default=True,
        help="Precision of large products; bfloat16 is faster, and off by 0.01 nats or so.",
    ),
    click.option(
        "--deterministic",
        is_flag=True,
        help="The same bits for any batch and number of threads; slower for beams.",
    ),
    cache_option,
    click.option("--no-cache", is_flag=True, help="Neither look up nor keep scores."),
]


def list_options(command: Command) -> Command:
    """The options of `rerank.pipeline.Lists`."""
    return _with(_OPTIONS, command)


def reading_options(command: Command) -> Command:
    """`--top`, `--diverse`, `--first-id` and `--clip-inf`: how a list is read."""
    return _with(_READING_OPTIONS, command)


def _with(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def split(options: dict[str, Any]) -> tuple[Lists, Search | None]:
    """`Lists` and, where the command has one, `Search` from a command's options."""
    from rerank.pipeline import Lists, Scoring

    search = taken(options) if "method" in options else None
    named = ("device", "dtype", "deterministic", "cache", "no_cache")
    scoring = Scoring(**{name: options.pop(name) for name in named})
    files = {option: options.pop(option.replace("-", "_")) for option in OUTSIDE}
    outside = {option: named for option, named in files.items() if named}
    return Lists(**options, outside=outside, scoring=scoring), search
