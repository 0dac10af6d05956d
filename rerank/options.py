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
...     drawing: Drawing = part(Drawing, "Drawing")

`settings_of(SampleOptions, model="m", seed=7)` makes the record in Python; `Command` makes it from
a command line. Rules that are about several options are a method `check` of their record, which
raises UsageError. `of_dataclass` makes options of the fields of a plain dataclass, which `lm` has.
"""

from __future__ import annotations

import difflib
import inspect
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass, replace
from typing import Any, TypeVar, dataclass_transform

import click

from rerank.errors import ArgumentError, InputError, UsageError
from rerank.files.paths import CONFIGURATION
from rerank.files.terminal import show as show_text
from rerank.notices import Notices
from rerank.registry import PROGRAM
from rerank.values import FILE, check_value, type_of

Record = TypeVar("Record")
_OPTION, _PART = "rerank.option", "rerank.part"  # keys of a field's metadata
_HELP_ALL = "rerank.help_all"  # keys of click's context
_PROGRAM, _TRUSTED = "rerank.program", "rerank.trusted"
_RUNS_PROGRAMS = "scorer"  # a field of the commands that do
_RUNS = re.compile(rf"(?:^|[=:,])({PROGRAM}|openai):")  # in a value: programs, and servers
_LAST_HEADINGS = ("Search", "Machine", "Messages", "General")  # of the help, where there are any
_MAX_BYTES = 1 << 20  # of a file of options


@dataclass(frozen=True, slots=True)
class _Option:
    """What the shell needs to know of a field beside its name.

    help: empty for an argument; many: whether it is repeatable; once: whether it is refused where
    it is given twice, of which the shell otherwise takes the last; several: whether its value is
    then a tuple, but the value itself where it is given once; rare: shown by `--help-all` alone;
    needs: fields without which the option is refused, each with the reason; heading: in the
    help, that of its part.
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
        """The long flag of the option of a field."""
        named = (flag for flag in self.flags if flag.startswith("--"))
        return next(named, "--" + name.replace("_", "-"))


@dataclass(frozen=True, slots=True)
class _Part:
    """A record in a record, and the heading under which the help shows its options.

    without: fields that keep their defaults, and are no options here; required: those whose
    defaults do not count here; rare: those that are left to `--help-all` here.
    """

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
    kw_only: bool = True,
) -> Any:
    """A field that is an option; without a default it is required.

    flags: that of the field's name, if none is given. type: of `rerank.values` or click; none for a
    flag, whose default is False, or None where a record without the option is to be told from one
    that has it; click.BOOL for a flag that is None where it is not given. many: the option is
    repeatable, and its value a tuple, as with a tuple as default.
    once, several, rare, needs: as in `_Option`. kw_only: False for a field that Python may have by
    position.
    """
    many = many or isinstance(default, tuple)
    required = default is MISSING
    more = _Option(
        help, flags, type, default, metavar, many, once, several, rare, needs or {}, required
    )
    return field(default=default, kw_only=kw_only, metadata={_OPTION: more})


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

    without: fields that keep their defaults, and are no options of the command; required: fields
    that must be given here, although they have defaults; rare: fields that are left to
    `--help-all` here; default_factory: makes the record where Python gives none.
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
        found = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in found.items() if value is not None}


def given(name: str, options: Mapping[str, Any]) -> type[Given]:
    """A record of this name of some fields by name: each an `option` whose default is None."""
    columns = [(name, Any, one) for name, one in options.items()]
    return make_dataclass(name, columns, bases=(Given,), frozen=True, slots=True, kw_only=True)


def of_dataclass(
    kind: type, *, common: Collection[str] = (), only: Collection[str] = ()
) -> type[Given]:
    """A record of those fields of a plain dataclass whose metadata have a `help`.

    Their other metadata: `choices`, names; or `range`, the least and the greatest number, and
    `above`, whether the least one itself is not possible; neither for a flag; `flag` if it is not
    that of the field's name. common: names of the options that `--help` shows; only: of the fields
    that are options, if not all are.
    """
    found = {
        one.name: option(
            one.metadata["help"],
            *([one.metadata["flag"]] if "flag" in one.metadata else []),
            type=type_of(one),
            default=None,
            rare=one.name not in common,
        )
        for one in fields(kind)
        if "help" in one.metadata and (not only or one.name in only)
    }
    return given(kind.__name__, found)


def settings_of(kind: type[Record], /, **values: Any) -> Record:
    """The record with these values of its fields and of those of its parts.

    None stands for the default of a field. TypeError for a name that no field has, a value that is
    lacking, or one of another type; UsageError for a value that the option refuses, and as `check`
    of the records.
    """
    declared = dict(_declared(kind))
    for name, value in values.items():
        if name not in declared:
            raise ArgumentError(no_option(name, declared))
        one = declared[name]
        if value is not None and not (isinstance(value, str) and value == one.default):
            repeated = (one.many or one.several) and isinstance(value, list | tuple)
            for item in value if repeated else [value]:
                check_value(name, one.type, item)
    for name, one in declared.items():
        if one.required and name not in values:
            raise ArgumentError(f"expected a value of {name!r}, found none")
    return _filled(kind, values)


def no_option(name: str, known: Collection[str]) -> str:
    """What is wrong with the name of an option that is not among the known ones."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"no option {name!r}; {hint}"


def _filled(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """The record and its parts, checked."""
    given: dict[str, Any] = {}
    declared: Any
    for one in fields(kind):  # type: ignore[arg-type]
        if _PART in one.metadata:
            inner: _Part = one.metadata[_PART]
            own = {name: value for name, value in values.items() if name not in inner.without}
            given[one.name] = _filled(inner.record, own)
        elif one.name in values and (values[one.name] is not None or one.default is MISSING):
            given[one.name] = values[one.name]  # None has its default, as if it were not given
    found = kind(**given)
    for one in fields(kind):  # type: ignore[arg-type]
        value, declared = getattr(found, one.name), one.metadata.get(_OPTION)
        for other, reason in () if declared is None else declared.needs.items():
            if value != one.default and not values.get(other):
                shown = value[0] if isinstance(value, tuple) else value
                text = "" if value is True else f" {shown}"
                raise UsageError(f"{declared.long_flag(one.name)}{text}: {reason}")
    if (check := getattr(found, "check", None)) is not None:
        check()
    return found


def _declared(kind: type, heading: str | None = None) -> Iterator[tuple[str, _Option]]:
    """The options of a record and of its parts by name, in order."""
    for one in fields(kind):
        if _PART in one.metadata:
            inner: _Part = one.metadata[_PART]
            for name, found in _declared(inner.record, inner.heading or heading):
                if name not in inner.without:
                    required = found.required or name in inner.required
                    rare = found.rare or name in inner.rare
                    yield name, replace(found, required=required, rare=rare)
        elif _OPTION in one.metadata:
            yield one.name, replace(one.metadata[_OPTION], heading=heading)


def _parameter(name: str, one: _Option) -> click.Parameter:
    """The parameter of the shell that an option is."""
    if not one.help:
        many = -1 if one.many else 1
        return click.Argument(
            [name], nargs=many, required=one.required, type=one.type, metavar=one.metavar
        )
    more: dict[str, Any] = {} if one.type is None else {"type": one.type}
    if one.type in (None, click.BOOL):
        more["is_flag"] = True
    if one.once or one.several:
        more["callback"] = only_one if one.once else one_or_all
    elif not one.required and not one.many:
        more["default"] = one.default if one.type else bool(one.default)
    return click.Option(
        [*dict.fromkeys((*one.flags, one.long_flag(name))), name],
        required=one.required,
        multiple=one.many or one.once or one.several,
        metavar=one.metavar,
        help=one.help,
        **more,
    )


def only_one(ctx: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that must not be given twice; None if it is not given."""
    if len(values) > 1:
        found = " and ".join(map(str, values))
        raise click.BadParameter(f"expected one, found {found}; give one of them")
    return values[0] if values else None


def one_or_all(_ctx: click.Context, _parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that is given once, a tuple of several; None if it is not given."""
    return values if len(values) > 1 else values[0] if values else None


class Command(click.Command):
    """A command of the shell whose options are the fields of a record.

    work: what is called with the record; its docstring is the help. ValueError for two fields of
    one name in the record and its parts.
    """

    def __init__(self, name: str, options: type, work: Callable[[Any], Any]) -> None:
        declared = list(_declared(options))
        names = [name for name, _ in declared]
        if twice := [one for one in names if names.count(one) > 1]:
            raise ValueError(f"{name}: two options are called {twice[0]!r}")
        parameters = [_parameter(*one) for one in declared]
        self.options, self.work = options, work
        self.headings = {name: one.heading for name, one in declared}
        self.rare = {name for name, one in declared if one.rare}
        parameters.append(
            _eager(
                "--config",
                _configure,
                type=FILE,
                help="TOML file of options, by their names without dashes in front, as seed = 7; "
                "options of the command line have precedence.",
            )
        )
        if _RUNS_PROGRAMS in names:
            help = (
                "Run the programs that the file of --config names, as command:PROGRAM, and ask its "
                "servers, as openai:URL."
            )
            parameters.append(_eager("--trust-config", _trust, is_flag=True, help=help))
            self.rare.add("trust_config")
        if self.rare:
            help = "Show all options and exit."
            parameters.append(_eager("--help-all", _show_all, is_flag=True, help=help))
        # paragraphs with indented lines, as examples, are not wrapped
        paragraphs = inspect.cleandoc(work.__doc__ or "").split("\n\n")
        text = "\n\n".join("\b\n" + one if "\n " in one else one for one in paragraphs)
        super().__init__(name, params=parameters, help=text)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the work with the record that the command line fills.

        UsageError for a program or a server that a file of options, which may be anybody's, names.
        """
        if (named := ctx.meta.get(_PROGRAM)) and not ctx.meta.get(_TRUSTED):
            raise UsageError(f"{named}; if it may, add --trust-config")
        return ctx.invoke(self.work, _filled(self.options, ctx.params))

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
        own = [heading for heading in groups if heading not in _LAST_HEADINGS]
        for heading in (*own, *(one for one in _LAST_HEADINGS if one in groups)):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=26)


def _eager(flag: str, act: Callable[[click.Context, Any], None], **more: Any) -> click.Option:
    """An option that acts as soon as it is read, before the others, and has no value for them."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            act(ctx, value)

    return click.Option([flag], is_eager=True, expose_value=False, callback=callback, **more)


def _show_all(ctx: click.Context, value: bool) -> None:
    """Show the help with all options."""
    ctx.meta[_HELP_ALL] = True
    show_text(ctx.get_help())
    ctx.exit()


def _trust(ctx: click.Context, value: bool) -> None:
    """Have the programs run that a TOML file names."""
    ctx.meta[_TRUSTED] = value


def _configure(ctx: click.Context, path: str) -> None:
    """Make the options of a TOML file those that the command line does not give.

    InputError for a file that is no TOML, an unknown key, or a value that its option refuses.
    """
    from rerank.files.lines import read_lines

    lines = read_lines(path, Notices(), max_bytes=_MAX_BYTES)
    try:
        keys = tomllib.loads(b"\n".join(lines).decode())
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise InputError(f"expected a TOML file of options: {fault}", source=path) from None
    options = {
        flag.removeprefix("--"): one
        for one in ctx.command.params
        if isinstance(one, click.Option) and one.expose_value
        for flag in one.opts
        if flag.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if key not in options:
            raise InputError(no_option(key, options), source=path)
        try:
            found[str(options[key].name)] = _as_texts(options[key], value, ctx)
        except click.BadParameter as fault:
            raise InputError(f"{key}: {fault.message}", source=path) from None
        texts = found[str(options[key].name)]
        for text in texts if isinstance(texts, list) else [texts]:
            runs = _RUNS.search(text) if isinstance(text, str) else None
            if runs and _RUNS_PROGRAMS in options:
                does = "runs a program" if runs[1] == PROGRAM else "asks a server"
                ctx.meta[_PROGRAM] = f"{path}: {key} = {text[: runs.end()]}… {does}"
    ctx.default_map = {**(ctx.default_map or {}), **found}
    ctx.meta[CONFIGURATION] = path


def _as_texts(one: click.Option, value: Any, ctx: click.Context) -> Any:
    """A value of TOML as the text, or the texts, that the shell would give for it; checked.

    TOML has typed its values: click would make 2 of 2.7 and 1 of true where text is refused.
    """
    if one.is_flag:
        if not isinstance(value, bool):
            raise click.BadParameter(f"expected true or false, found {value!r}")
        return value
    several = one.multiple and one.callback is not only_one
    if one.callback is one_or_all:
        several = isinstance(value, list)
    if several and not isinstance(value, list):
        raise click.BadParameter(f"expected a list, as [{value!r}], found {value!r}")
    texts = []
    for item in value if several else [value]:
        if isinstance(item, bool):
            text = "true" if item else "false"
        elif isinstance(item, str | int | float):
            text = str(item)
        elif isinstance(item, dict) and hasattr(one.type, "text_of"):  # of `rerank.values.Kind`
            text = one.type.text_of(item)
        else:
            raise click.BadParameter(f"expected a text or a number, found {item!r}")
        one.type.convert(text, one, ctx)
        texts.append(text)
    return texts if one.multiple else texts[0]
