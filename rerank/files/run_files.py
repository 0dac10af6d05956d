"""Options as they are given: by the command line, by the environment, or by a file.

The environment gives the option `--seed` of `rerank decode` as `RERANK_DECODE_SEED`; a file of
TOML, a run file, as `seed = 7`. What stands on the command line has precedence, then the
environment. Environment and file may be anybody's: a value that runs a program or asks a server is
noted (`PROGRAM_NAMED`), so that the command can refuse it. `run_file` writes such a file,
`command_line` the words of a shell.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click

from rerank.errors import InputError, UsageError, printable
from rerank.files.paths import CONFIGURATION
from rerank.notices import Notices
from rerank.registry import PROGRAM

PROGRAM_NAMED, _TEXTS = "rerank.program", "rerank.texts"  # keys of click's context
_RUNS = re.compile(rf"(?:^|[=:,])({PROGRAM}|openai):")  # in a value: programs, and servers
_RAY = re.compile(r"(?i)\bray$|_ray$")  # the option of a cluster, or its variable
_URL = re.compile(r"(?<=openai:)[^,]+")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")  # a text that is the same as a number of TOML
_MAX_BYTES = 1 << 20  # of a file of options
_LARGE = "a number of thousands of digits, or as many tables in each other; take it out"


def no_option(name: str, known: Collection[str]) -> str:
    """What is wrong with the name of an option that is not among the known ones."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"no option {name!r}; {hint}"


def only_one(ctx: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that must not be given twice; None if it is not given."""
    if len(values) > 1:
        several = " and ".join(map(str, values))
        raise click.BadParameter(f"expected one, found {several}; give one of them")
    return values[0] if values else None


def one_or_all(_ctx: click.Context, _parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that is given once, a tuple of several; None if it is not given."""
    return values if len(values) > 1 else values[0] if values else None


class DetailedOption(click.Option):
    """An option whose help has details, its paragraphs but the first, that `--help` leaves out."""

    def __init__(self, flags: Sequence[str], *, help: str, **more: Any) -> None:
        short, _, self.details = help.partition("\n\n")
        super().__init__(flags, help=f"{short} …" if self.details else short, **more)


class ShellOption(DetailedOption):
    """An option that the environment may give, too; its text is kept for --dump-config."""

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """The value of `RERANK_<COMMAND>_<OPTION>`, or its words; None if it is unset or empty."""
        name = _variable(ctx, flag_of(self))
        if not (text := os.environ.get(name)):
            return None
        if self.is_flag:
            return self.type.convert(text, self, ctx)
        try:
            words = shlex.split(text) if self.multiple and self.callback is not only_one else [text]
        except ValueError as fault:
            raise click.BadParameter(str(fault).lower(), ctx, self) from None
        _note_programs(ctx, name, words)
        return words if self.multiple else text

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """The value as it is given, and where."""
        value, source = super().consume_value(ctx, opts)
        if source.name in ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP"):
            ctx.meta.setdefault(_TEXTS, {})[self.name] = value
        return value, source

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option as messages name it, with the variable that gives its value, if one does."""
        hint = super().get_error_hint(ctx)
        if ctx is None or not os.environ.get(name := _variable(ctx, flag_of(self))):
            return hint
        source = ctx.get_parameter_source(self.name)  # None while the variable is read
        from_environment = source is None or source.name == "ENVIRONMENT"
        return f"{hint} ({name} in the environment)" if from_environment else hint


def flag_of(option: click.Option) -> str:
    """The long flag without its dashes, as in a file of options."""
    return next(flag for flag in option.opts if flag.startswith("--")).removeprefix("--")


def _variable(ctx: click.Context, flag: str = "") -> str:
    """The variable of the environment for an option; without one, the beginning of all."""
    return re.sub("[ -]", "_", f"{ctx.command_path}_{flag}").upper()


def refuse_unknown(ctx: click.Context, options: Collection[str]) -> None:
    """UsageError for a variable of the environment that would be an option that there is not."""
    begin = _variable(ctx)
    for name in sorted(name for name in os.environ if name.startswith(begin)):
        known = {_variable(ctx, flag).removeprefix(begin) for flag in options}
        if (end := name.removeprefix(begin)) not in known:
            near = difflib.get_close_matches(end, known, 1)
            hint = f"did you mean {begin}{near[0]}?" if near else f"see {ctx.command_path} --help"
            raise UsageError(f"{name} in the environment: no such option; {hint}")


def without_addresses(value: str) -> str:
    """The value of an option with URL for that of a server, for files that others read."""
    return _URL.sub("URL", value)


def command_line() -> str | None:
    """The running command with all its options, which gives the same run; None outside of one.

    Options of the environment and of a file stand in it, too. The address of a server is left out,
    `openai:URL`: files of a run may be passed on. Its key stands in no option.
    """
    ctx = click.get_current_context(silent=True)
    if ctx is None or _TEXTS not in ctx.meta:  # the context of another program that uses click
        return None
    words = ctx.command_path.split()
    for option in ctx.command.params:
        if not isinstance(option, ShellOption):
            continue
        flag, value = f"--{flag_of(option)}", ctx.meta[_TEXTS].get(option.name)
        for text in value if isinstance(value, list | tuple) else [value]:
            if text is not None and text is not False:
                words += [flag] if text is True else [flag, without_addresses(str(text))]
    return printable(shlex.join([*words, *_arguments(ctx)]))


def _arguments(ctx: click.Context) -> list[str]:
    """The words of a command line that belong to no option."""
    values = [ctx.params[str(x.name)] for x in ctx.command.params if isinstance(x, click.Argument)]
    words = [x for value in values for x in (value if isinstance(value, tuple) else [value])]
    return [str(word) for word in words if word is not None]


def run_file(ctx: click.Context, options: Mapping[str, click.Option]) -> str:
    """The options that are given as TOML; what is no option stands in the comment above.

    UsageError for a value that is not UTF-8, as TOML is.
    """
    words, trusted = printable(shlex.join(_arguments(ctx))), ""
    lines = list[str]()
    for flag, option in options.items():
        if (value := ctx.meta.get(_TEXTS, {}).get(option.name)) is not None:
            several = isinstance(value, list | tuple)
            if several and (option.callback is only_one or (option.callback and len(value) == 1)):
                value, several = value[0], False
            texts = value if several else [value]
            cluster = flag == "ray" and ":" in str(value)
            if cluster or any(_program_in(text) for text in texts):
                trusted = " --trust-config"
            items = ", ".join(_toml(text, flag) for text in texts)
            lines.append(f"{flag} = [{items}]" if several else f"{flag} = {items}")
    call = f"{ctx.command_path} {words}{' ' * bool(words)}"
    return "\n".join([f"# {call}--config THIS_FILE{trusted}", *lines])


def _toml(value: Any, flag: str) -> str:
    """A value of TOML that `_as_texts` reads as this one."""
    if isinstance(value, bool) or _NUMBER.fullmatch(str(value)):
        return str(value).lower()
    name = os.fsencode(str(value)).decode(errors="backslashreplace")
    if name != str(value):
        raise UsageError(
            f"--{flag}: expected UTF-8, as a file of options is, found {name}; rename the file"
        )
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _note_programs(ctx: click.Context, where: str, texts: Sequence[Any]) -> None:
    """Note a text that runs a program, asks a server or joins a cluster, and where it stands."""
    for text in texts:
        if _RAY.search(where) and ":" in str(text):
            ctx.meta[PROGRAM_NAMED] = f"{where} = {text} connects to a cluster"
        if runs := _program_in(text):
            does = "runs a program" if runs[1] == PROGRAM else "asks a server"
            ctx.meta[PROGRAM_NAMED] = f"{where} = {text[: runs.end()]}… {does}"


def _program_in(value: Any) -> re.Match[str] | None:
    """Where a value names a program or a server."""
    return _RUNS.search(value) if isinstance(value, str) else None


def configure(ctx: click.Context, path: str) -> None:
    """Make the options of a TOML file those that the command line does not give.

    InputError for a file that is no TOML, an unknown key, or a value that its option refuses.
    """
    from rerank.files.lines import read_lines

    lines = read_lines(path, Notices(), max_bytes=_MAX_BYTES)
    try:
        keys = tomllib.loads(b"\n".join(lines).decode())
    except tomllib.TOMLDecodeError as fault:
        raise InputError(f"expected a TOML file of options: {fault}", source=path) from None
    except (ValueError, RecursionError):
        raise InputError(f"expected a TOML file of options, found {_LARGE}", source=path) from None
    options = {
        flag.removeprefix("--"): option
        for option in ctx.command.params
        if isinstance(option, ShellOption)
        for flag in option.opts
        if flag.startswith("--")
    }
    values: dict[str, Any] = {}
    for key, value in keys.items():
        if key not in options:
            raise InputError(no_option(key, options), source=path)
        try:
            texts = values[str(options[key].name)] = _as_texts(options[key], value, ctx)
        except click.BadParameter as fault:
            raise InputError(f"{key}: {fault.message}", source=path) from None
        except (ValueError, RecursionError):
            raise InputError(f"{key}: expected a value, found {_LARGE}", source=path) from None
        _note_programs(ctx, f"{path}: {key}", texts if isinstance(texts, list) else [texts])
    ctx.default_map = {**(ctx.default_map or {}), **values}
    ctx.meta[CONFIGURATION] = path


def _as_texts(option: click.Option, value: Any, ctx: click.Context) -> Any:
    """A value of TOML as the text, or the texts, that the shell would give for it; checked.

    TOML has typed its values: click would make 2 of 2.7 and 1 of true where text is refused.
    """
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.BadParameter(f"expected true or false, found {value!r}")
        return value
    several = option.multiple and option.callback is not only_one
    if option.callback is one_or_all:
        several = isinstance(value, list)
    if several and not isinstance(value, list):
        raise click.BadParameter(f"expected a list, as [{value!r}], found {value!r}")
    texts = []
    for item in value if several else [value]:
        if isinstance(item, bool):
            text = "true" if item else "false"
        elif isinstance(item, str | int | float):
            text = str(item)
        elif isinstance(item, dict) and hasattr(option.type, "text_of"):  # `rerank.values.Kind`
            text = option.type.text_of(item)
        else:
            raise click.BadParameter(f"expected a text or a number, found {item!r}")
        option.type.convert(text, option, ctx)
        texts.append(text)
    return texts if option.multiple else texts[0]
