"""Options of commands, each declared once: a field of a frozen record.

From a command's record come the shell's options, the keywords of Python, the keys of a TOML file
(`--config FILE`) and the page of the reference. Options that commands share are records in the
record:

>>> @record
... class Drawing:
...     seed: int = option("Random seed.", type=SEED, default=1)
>>> @record
... class SampleOptions:
...     model: str = option("Folder of the model.", "--lm", type=FILE)
...     start: str | None = optional_file("Text that is continued.")
...     drawing: Drawing = part(Drawing, "Drawing")

`settings_of(SampleOptions, lm="m", seed=7)` makes the record in Python, by keywords that are the
shell's names with `_` for `-`; `Command` makes it from a command line. Rules that are about several
options are a method `check` of their record, which raises UsageError. Messages name options as the
shell does; errors that leave through Python's functions name keywords (`KeywordErrors`).
`of_dataclass` makes options of the fields of a plain dataclass, which `lm` has.
"""

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, dataclass_transform

import click

from rerank.errors import ArgumentError, RerankError, UsageError, printable
from rerank.files.encoding import NUMBER
from rerank.files.run_files import (
    PROGRAM_NAMED,
    DetailedOption,
    ShellOption,
    configure,
    flag_of,
    no_option,
    one_or_all,
    only_one,
    refuse_unknown,
    run_file,
)
from rerank.files.terminal import show as show_text
from rerank.notices import Notice, Notices, RerankWarning
from rerank.registry import SCORE_FILES, SIDE_INFORMATION, attribute
from rerank.values import FILE, NameList, Real, Whole, WordOr, check_value, type_of

Record = TypeVar("Record")
Returned = TypeVar("Returned")
P = ParamSpec("P")
_OPTION, _PART = "rerank.option", "rerank.part"  # keys of a field's metadata
_HELP_ALL = "rerank.help_all"  # keys of click's context
_TRUSTED, _DUMP = "rerank.trusted", "rerank.dump"
_CONFIG_HELP = (
    "TOML file of options, as seed = 7; the command line and the environment have precedence.\n\n"
    "Keys are the names of options without dashes in front. In the environment the option --seed "
    "of `rerank decode` is RERANK_DECODE_SEED."
)
_DUMP_HELP = "Print the options that are given as a file for --config, and exit."
_TRUST_HELP = (
    "Run the programs that the file of --config or the environment names, as command:PROGRAM, and "
    "ask their servers, as openai:URL."
)
_RUN_PROGRAMS = frozenset({"scorer", "metrics"})  # fields of the commands that do
_LAST_HEADINGS = ("Search", "Machine", "Messages", "General")  # of the help, where there are any


@dataclass(frozen=True, slots=True)
class _Option:
    """What the shell needs to know of a field beside its name.

    help: empty for an argument; `--help` shows its first paragraph, `rerank help` all. many:
    repeatable; once: refused where it is given twice, of which the shell otherwise takes the last;
    several: likewise a tuple, but the value itself where it is given once; rare: shown by
    `--help-all` alone; needs: fields without which the option is refused, each with the reason;
    heading: in the help, that of its part.
    """

    help: str
    flags: tuple[str, ...]
    type: Any
    default: Any
    metavar: str | None
    many: bool
    once: bool = False
    several: bool = False
    rare: bool = False
    needs: Mapping[str, str] = field(default_factory=dict)
    required: bool = False
    heading: str | None = None

    def long_flag(self, name: str) -> str:
        """The long flag of a field of this name."""
        long = (flag for flag in self.flags if flag.startswith("--"))
        return next(long, "--" + name.replace("_", "-"))

    def keyword(self, name: str) -> str:
        """The keyword of Python: the long flag, with `_` for `-`."""
        flag, _, _ = self.long_flag(name).partition("/")
        return flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True, slots=True)
class _Part:
    """A record in a record; as of `part`."""

    record: type
    heading: str | None
    without: frozenset[str]
    required: frozenset[str]
    rare: frozenset[str]


def option(
    help: str,
    *flags: str,
    type: Any = None,
    default: Any = MISSING,
    metavar: str | None = None,
    many: bool = False,
    once: bool = False,
    several: bool = False,
    rare: bool = False,
    needs: Mapping[str, str] | None = None,
) -> Any:
    """A field that is an option; without a default it is required.

    help: a paragraph of three lines at most, and others that `rerank help` shows. flags: that of
    the field's name, if none is given. type: of `rerank.values` or click; none for a `flag`, whose
    default is None where a record without the option is to be told from one that has it;
    click.BOOL for a flag that is None where it is not given. many: repeatable, with a tuple as
    value, as with a tuple as default. once, several, rare, needs: as of `_Option`.
    """
    many = many or isinstance(default, tuple)
    required = default is MISSING
    more = _Option(
        help, flags, type, default, metavar, many, once, several, rare, needs or {}, required
    )
    return field(default=default, metadata={_OPTION: more})


def optional(help: str, *flags: str, type: Any, **more: Any) -> Any:
    """An `option` that is None where it is not given."""
    return option(help, *flags, type=type, default=None, **more)


def optional_file(help: str, *flags: str, **more: Any) -> Any:
    """An `optional` file."""
    return optional(help, *flags, type=FILE, **more)


def flag(help: str, *flags: str, **more: Any) -> Any:
    """An `option` without a value, True where it is given."""
    return option(help, *flags, default=False, **more)


def argument(metavar: str, *, type: Any, default: Any = MISSING) -> Any:
    """A field that is a positional argument; one whose metavar ends in `...` takes all values."""
    many, required = metavar.endswith("..."), default is MISSING
    more = _Option("", (), type, default, metavar, many, required=required)
    return field(default=default, metadata={_OPTION: more})


def part(
    record: type,
    heading: str | None = None,
    *,
    without: Collection[str] = (),
    required: Collection[str] = (),
    rare: Collection[str] = (),
    default_factory: Any = MISSING,
) -> Any:
    """A field that is a record of further options, under a heading of their own in the help.

    without: fields that keep their defaults, and are no options here; required: fields whose
    defaults do not count here; rare: fields that are left to `--help-all` here; default_factory:
    makes the record where Python gives none.
    """
    more = _Part(record, heading, frozenset(without), frozenset(required), frozenset(rare))
    return field(default_factory=default_factory, metadata={_PART: more})


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(option, argument, part)
)
def record(cls: type[Record]) -> type[Record]:
    """The class as a frozen dataclass whose fields are `option`, `argument` and `part`."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


class Given:
    """Base of records whose options have no defaults: those that are not given are None."""

    def values(self) -> dict[str, Any]:
        """The values that are given, by name."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if value is not None}


def given(name: str, options: Mapping[str, Any]) -> type[Given]:
    """A record of this name of some fields by name: each an `option` whose default is None."""
    columns = [(field_name, Any, declared) for field_name, declared in options.items()]
    return make_dataclass(name, columns, bases=(Given,), frozen=True, slots=True, kw_only=True)


def of_dataclass(kind: type, *, common: Collection[str] = ()) -> type[Given]:
    """A record of those fields of a plain dataclass whose metadata have a `help`.

    Their other metadata: `choices`, names; or `range`, the least and the greatest number, and
    `above`, whether the least one itself is not possible; neither for a flag; `flag` if it is not
    that of the field's name. common: names of the options that `--help` shows.
    """
    options = {
        entry.name: optional(
            entry.metadata["help"],
            *([entry.metadata["flag"]] if "flag" in entry.metadata else []),
            type=type_of(entry),
            rare=entry.name not in common,
        )
        for entry in fields(kind)
        if "help" in entry.metadata
    }
    return given(kind.__name__, options)


def keywords(kind: type) -> list[str]:
    """The keywords of Python for the options of a record and of its parts, in order."""
    return [declaration.keyword(name) for name, declaration in _declared(kind)]


def settings_of(kind: type[Record], /, **values: Any) -> Record:
    """The record with these values of the options of its fields and parts, by their keywords.

    None stands for a default. TypeError for an unknown keyword, a value that is lacking, or one of
    another type; UsageError for a value that the option refuses, and as `check` of the records.
    """
    declared = {
        declaration.keyword(name): (name, declaration) for name, declaration in _declared(kind)
    }
    named: dict[str, Any] = {}
    for keyword, value in values.items():
        if keyword not in declared:
            raise ArgumentError(no_option(keyword, declared))
        name, declaration = declared[keyword]
        named[name] = value
        if value is not None and not (isinstance(value, str) and value == declaration.default):
            repeated = (declaration.many or declaration.several) and isinstance(value, list | tuple)
            for item in value if repeated else [value]:
                check_value(keyword, declaration.type, item)
    for keyword, (_, declaration) in declared.items():
        if declaration.required and keyword not in values:
            raise ArgumentError(f"expected a value of {keyword!r}, found none")
    return filled(kind, named)


_FLAG = re.compile(  # a command of the shell, which stays; or a flag, and the word behind it
    r"\brerank [a-z-]+ -[^;`]*|"
    r"(?<![\w-])--([a-z][a-z-]*[a-z])(?: ((?!--)[^\s;)]*[^\s;,):.]))?(?=(.?))"
)
_METAVAR = re.compile(r"[A-Z][A-Z_]*|…")  # stands for a value
_RENAMED = {  # what Python has in place of options, by flag
    "ref": "references",
    **dict.fromkeys(["scorer", *SCORE_FILES], "scorers=…"),
    **{kind: f'side={{"{kind}": …}}' for kind in SIDE_INFORMATION},
}


def with_keywords(message: str, command: str, **renamed: str) -> str:
    """A message with Python's keywords in place of the flags of a command.

    `length_ratio="keep"` of `--length-ratio keep`; flags that the command does not have stay.
    renamed: what stands for a flag, where its name is another in Python; for its value, too, where
    it ends in `…` or a bracket.
    """
    options: type = attribute(f"rerank.commands.{command.replace('-', '_')}:COMMAND").options
    declared = {
        declaration.long_flag(name).removeprefix("--"): (declaration, declaration.keyword(name))
        for name, declaration in _declared(options)
    }

    def keyword(match: re.Match[str]) -> str:
        flag, word, next_character = match.groups()
        if flag not in declared:
            return match[0]
        declaration, name = declared[flag]
        name = {**_RENAMED, **renamed}.get(flag, name)
        behind = f" {word}" if word else ""
        if word and _is_value(word, declaration.type, next_character):
            return name if name[-1] in "…}" else f"{name}={_literal(word, declaration)}"
        if name[-1] in "…}" or (next_character == ":" and not word):
            return name + behind
        return f"{name}={'True' * (declaration.type in (None, click.BOOL))}{behind}"

    return _FLAG.sub(keyword, message)


def _is_value(word: str, kind: Any, next_character: str) -> bool:
    """Whether a word behind the flag of an option is its value, not the next word of a message."""
    if kind is None or kind is click.BOOL:
        return False
    if next_character == ":" or _METAVAR.match(word):
        return True
    if not isinstance(kind, click.Choice | Whole | Real | WordOr):  # any word may be a text
        return next_character in ";,)" or bool({*word} & {*"=/…"})
    try:
        kind.convert(word, None, None)
    except (click.BadParameter, UsageError):
        return False
    return True


def _literal(word: str, declaration: _Option) -> str:
    """A value of the shell as Python has it: a number, a text, a list, or a value by name."""

    def literal(text: str) -> str:
        as_it_is = NUMBER.fullmatch(text.encode()) or _METAVAR.fullmatch(text)
        return text if as_it_is else f'"{text}"'

    if isinstance(declaration.type, NameList):
        return f"[{', '.join(map(literal, word.split(',')))}]"
    name, mark, value = word.partition("=")
    return f"{{{literal(name)}: {literal(value)}}}" if declaration.many and mark else literal(word)


class KeywordErrors:
    """A block, or a function, whose errors name Python's keywords where the shell has flags.

    command, renamed: as of `with_keywords`.
    """

    def __init__(self, command: str, **renamed: str) -> None:
        self._command, self._renamed = command, renamed

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, fault: BaseException | None, _traceback: object) -> None:
        if isinstance(fault, RerankError):
            fault.args = (with_keywords(str(fault), self._command, **self._renamed),)

    def __call__(self, function: Callable[P, Returned]) -> Callable[P, Returned]:
        """The function with such errors."""

        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> Returned:
            with self:
                return function(*arguments, **keywords)

        return call


class PythonWarnings(Notices):
    """Notices of functions called from Python: of each kind the first becomes a `RerankWarning`.

    It names keywords of Python where the shell has flags.
    """

    def take(self, notice: Notice) -> None:
        """Count a warning, and issue it if it is the first of its kind."""
        known = {counted.sentence for counted in self}
        super().take(notice)
        if notice.sentence not in known:
            text = f"{notice.first}: {notice.to_text()}" if notice.first else notice.to_text()
            text = with_keywords(printable(text), "tune-mert")
            stack = traceback.walk_stack(inspect.currentframe())
            names = [frame.f_globals.get("__name__", "") for frame, _ in stack]
            ours = max(n for n, name in enumerate(names) if name.partition(".")[0] == "rerank")
            # at the line at which a user called `rerank`
            warnings.warn(RerankWarning(text, notice.kind.name), stacklevel=ours + 2)


def filled(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """The record and its parts, checked."""
    stated: dict[str, Any] = {}
    declared: Any
    for entry in fields(kind):  # type: ignore[arg-type]
        if _PART in entry.metadata:
            part: _Part = entry.metadata[_PART]
            others = {name: value for name, value in values.items() if name not in part.without}
            stated[entry.name] = filled(part.record, others)
        elif entry.name in values and (values[entry.name] is not None or entry.default is MISSING):
            stated[entry.name] = values[entry.name]  # None has its default, as if not stated
    result = kind(**stated)
    for entry in fields(kind):  # type: ignore[arg-type]
        value, declared = getattr(result, entry.name), entry.metadata.get(_OPTION)
        for other, reason in () if declared is None else declared.needs.items():
            if value != entry.default and not values.get(other):
                shown = value[0] if isinstance(value, tuple) else value
                text = "" if value is True else f" {shown}"
                raise UsageError(f"{declared.long_flag(entry.name)}{text}: {reason}")
    if (check := getattr(result, "check", None)) is not None:
        check()
    return result


def _declared(kind: type, heading: str | None = None) -> Iterator[tuple[str, _Option]]:
    """The options of a record and of its parts by name, in order."""
    for entry in fields(kind):
        if _PART in entry.metadata:
            part: _Part = entry.metadata[_PART]
            for name, declared in _declared(part.record, part.heading or heading):
                if name not in part.without:
                    required = declared.required or name in part.required
                    rare = declared.rare or name in part.rare
                    yield name, replace(declared, required=required, rare=rare)
        elif _OPTION in entry.metadata:
            yield entry.name, replace(entry.metadata[_OPTION], heading=heading)


def _parameter(name: str, declared: _Option) -> click.Parameter:
    """The parameter of the shell that an option is."""
    if not declared.help:
        many = -1 if declared.many else 1
        return click.Argument(
            [name],
            nargs=many,
            required=declared.required,
            type=declared.type,
            metavar=declared.metavar,
        )
    more: dict[str, Any] = {} if declared.type is None else {"type": declared.type}
    if declared.type in (None, click.BOOL):
        more["is_flag"] = True
    if declared.once or declared.several:
        more["callback"] = only_one if declared.once else one_or_all
    elif not declared.required and not declared.many:
        more["default"] = declared.default if declared.type else bool(declared.default)
    return ShellOption(
        [*dict.fromkeys((*declared.flags, declared.long_flag(name))), name],
        required=declared.required,
        multiple=declared.many or declared.once or declared.several,
        metavar=declared.metavar,
        help=declared.help,
        **more,
    )


class Command(click.Command):
    """A command of the shell whose options are the fields of a record.

    work: what is called with the record; its docstring is the help; more: further options, as of
    `eager`. ValueError for two fields of one name in the record and its parts.
    """

    def __init__(
        self, name: str, options: type, work: Callable[[Any], Any], *more: click.Option
    ) -> None:
        declared = list(_declared(options))
        names = [name for name, _ in declared]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{name}: two options are called {twice[0]!r}")
        parameters = [_parameter(*option) for option in declared]
        self.options, self.work = options, work
        self.headings = {name: option.heading for name, option in declared}
        self.rare = {name for name, option in declared if option.rare}
        parameters += more
        parameters.append(eager("--config", configure, type=FILE, help=_CONFIG_HELP))
        parameters.append(_stored("--dump-config", _DUMP, _DUMP_HELP))
        if _RUN_PROGRAMS & {*names}:
            parameters.append(_stored("--trust-config", _TRUSTED, _TRUST_HELP))
        self.rare |= {"dump_config", "trust_config"}
        help = "Show all options and exit."
        parameters.append(eager("--help-all", _show_all, is_flag=True, help=help))
        # paragraphs with indented lines, as examples, are not wrapped
        paragraphs = inspect.cleandoc(work.__doc__ or "").split("\n\n")
        text = "\n\n".join("\b\n" + text if "\n " in text else text for text in paragraphs)
        super().__init__(name, params=parameters, help=text)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option `--help`; it says where details are, which other texts end in … for."""
        shown = super().get_help_option(ctx)
        if shown is not None:
            shown.help = "Show this message and exit; `rerank help OPTION` says more, where … is."
        return shown

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line; those left over are often files of a wildcard."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as fault:
            if not fault.message.startswith("Got unexpected extra"):
                raise
            cure = "an option has one value: repeat it, as --ref A --ref B"
            raise click.UsageError(f"{fault.message}; {cure}", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Call the work with the record that the command line fills.

        UsageError for a program or a server that a file of options or the environment names, which
        may be anybody's, and for a variable of the environment that no option has.
        """
        shell = (option for option in self.params if isinstance(option, ShellOption))
        options = {flag_of(option): option for option in shell}
        refuse_unknown(ctx, options)
        named = ctx.meta.get(PROGRAM_NAMED)
        if named and not ctx.meta.get(_TRUSTED) and _RUN_PROGRAMS & {*ctx.params}:
            raise UsageError(f"{named}; if it may, add --trust-config")
        settings: Any = filled(self.options, ctx.params)
        if ctx.meta.get(_DUMP):
            return show_text(run_file(ctx, options))
        return ctx.invoke(self.work, settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings: those that most people need, or all."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            shown = parameter.get_help_record(ctx)
            if shown is None or isinstance(parameter, click.Argument):
                continue
            if parameter.name in self.rare and not ctx.meta.get(_HELP_ALL):
                continue
            heading = self.headings.get(parameter.name or "", "General") or "Options"
            usage = shown[0].replace("INTEGER RANGE", "N").replace("FLOAT RANGE", "NUMBER")
            groups.setdefault(heading, []).append((usage, shown[1].replace("].  [", "; ")))
        last = [heading for heading in _LAST_HEADINGS if heading in groups]
        for heading in (*(heading for heading in groups if heading not in last), *last):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=26)


def eager(flag: str, act: Callable[[click.Context, Any], None], **more: Any) -> click.Option:
    """An option that acts as soon as it is read, before the others, and has no value for them."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value not in (None, False) and not ctx.resilient_parsing:
            act(ctx, value)

    return DetailedOption([flag], is_eager=True, expose_value=False, callback=callback, **more)


def _stored(flag: str, key: str, help: str) -> click.Option:
    """An eager flag, which is noted under a key of click's context."""
    return eager(flag, lambda ctx, value: ctx.meta.update({key: value}), is_flag=True, help=help)


def _show_all(ctx: click.Context, value: bool) -> None:
    """Show the help with all options."""
    ctx.meta[_HELP_ALL] = True
    show_text(ctx.get_help())
    ctx.exit()
