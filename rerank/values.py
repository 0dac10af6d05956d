r"""Types of the values of options and arguments: numbers, text, files, names, NAME=VALUE pairs.

Every number is finite and has a least and a greatest value, which the help shows. No text is empty:
an empty value is most often a variable of the shell that is not set. No path is longer than the
file system allows. Other values are usage errors (exit code 2) before any work.

What has options of its own is `[NAME=]VALUE[,KEY=VALUE…]`. VALUE is a kind, KIND:TARGET, or a path;
a kind without target takes its first key after the colon, as in `smc:particles=256,ess=0.5`. A
value is split from the right, only at keys that its kind knows, so that paths may hold commas,
colons and equals signs; `\,` is a comma that does not split. In a TOML file it is a table:
`search = {kind = "smc", particles = 256}`.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rerank.diagnostics import diagnostic
from rerank.errors import ArgumentError, UsageError, shown
from rerank.files.encoding import LARGEST, NUMBER, Encoding
from rerank.files.paths import refuse_long
from rerank.registry import ESTIMATORS, Registry

MOST = 1_000_000  # of things that are made: paths, particles, starts, passes
MOST_LINES = 2**31 - 1  # of things that files hold: candidates, sentences, words
MANY = 60  # characters of names, too many for one line of help
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([KMGTkmgt])")
_SHARD = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


def _shown(value: str) -> str:
    """A value in a message, quoted and not too long."""
    return shown(os.fsencode(value))


class Whole(click.IntRange):
    """A whole number between bounds, in ASCII digits."""

    def __init__(self, least: int = 1, most: int = MOST) -> None:
        super().__init__(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; `1_000` and `١`, which Python takes, are refused."""
        if isinstance(value, str) and not _WHOLE.fullmatch(value):
            self.fail(f"expected a whole number, found {_shown(value)}", param, ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        text = super()._describe_range()
        for bits in (31, 63):
            text = text.replace(f"<={2**bits - 1}", f"<2^{bits}")
        return text


class Real(click.FloatRange):
    """A finite number between bounds, in ASCII decimals; above, below: without the bound itself."""

    def __init__(
        self, least: float, most: float, *, above: bool = False, below: bool = False
    ) -> None:
        super().__init__(least, most, min_open=above, max_open=below)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; `nan`, `inf` and `1_0`, which Python takes, are refused."""
        if isinstance(value, str) and not NUMBER.fullmatch(os.fsencode(value)):
            self.fail(f"expected a finite decimal number, found {_shown(value)}", param, ctx)
        return super().convert(value, param, ctx)


SEED = Whole(0, 2**63 - 1)
SCALE = Real(0, LARGEST, above=True)
PRICE = Real(0, 1_000_000)
WEIGHT = Real(-(10**9), 10**9)  # larger ones leave no digits of the other features in a sum
METRIC_WEIGHT = Real(1e-6, 1_000_000)
LENGTH_RATIO = Real(0, 100, above=True)
PART = Real(0, 1, above=True, below=True)  # of a mixture of two


class ParsedType(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """A type whose `parsed` makes a value of a text, or says in a ValueError what is wrong."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; BadParameter for what is none."""
        try:
            return self.parsed(str(value))
        except click.BadParameter as fault:  # of a type within this one
            self.fail(fault.message, param, ctx)
        except (ValueError, UsageError) as fault:
            self.fail(str(fault), param, ctx)

    def parsed(self, value: str) -> Any:
        """The value of a text that is not empty."""
        if not value:
            raise ValueError(
                "expected a value, found an empty one; is a variable of the shell not set?"
            )
        return value


class Text(ParsedType):
    """Text that is not empty."""

    name = "text"


class FileName(ParsedType):
    """Name of a file or `-`, which the shell completes; whoever opens the file checks it."""

    name = "file"
    completed_as = "file"  # in the shell

    def parsed(self, value: str) -> Any:
        """The name as it is given."""
        refuse_long(super().parsed(value))
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The request that the shell complete a name."""
        return [CompletionItem(incomplete, type=self.completed_as)]


class FolderName(FileName):
    """Name of a folder, as a path; a file is refused."""

    name = "folder"
    completed_as = "dir"

    def parsed(self, value: str) -> Path:
        """The path."""
        super().parsed(value)
        if os.path.exists(value) and not os.path.isdir(value):
            raise ValueError(f"expected a folder, found the file {_shown(value)}; name another")
        super().parsed(os.path.join(value, "x" * 100, "x" * 100))  # room for files
        return Path(value)


TEXT, FILE, FOLDER = Text(), FileName(), FolderName()


class EncodingName(ParsedType):
    """Name of an encoding in which ASCII stays as it is."""

    name = "encoding"

    def parsed(self, value: str) -> str:
        """The name as it is given."""
        return Encoding(super().parsed(value)).name


class DiagnosticName(ParsedType):
    """Code or name of a kind of warning, as its name."""

    name = "kind"

    def parsed(self, value: str) -> str:
        """The name; UsageError for one that no warning has."""
        return diagnostic(super().parsed(value)).name


class NameList(ParsedType):
    """Names between commas, none of them empty, as a tuple."""

    name = "text"

    def parsed(self, value: str) -> tuple[str, ...]:
        """The names."""
        names = tuple(super().parsed(value).split(","))
        if not all(names):
            raise ValueError(f"expected names with commas between them, found {_shown(value)}")
        return names


class Pair(ParsedType):
    """NAME=VALUE as a tuple; a VALUE alone where there is a label, a NAME alone with a default.

    form: what is expected, for messages; last: whether a NAME may hold a `=`, and no VALUE does. A
    file with a `=` in its name is written ./FILE.
    """

    name = "pair"

    def __init__(
        self,
        form: str,
        value: click.ParamType[Any],
        *,
        label: str = "",
        default: Any = None,
        last: bool = False,
    ) -> None:
        self.form, self.value, self.label, self.default = form, value, label, default
        self.last = last

    def parsed(self, value: str) -> tuple[str, Any]:
        """The name and the value."""
        name, mark, text = value.rpartition("=") if self.last else value.partition("=")
        if self.label and (not mark or "/" in name):
            name, text = self.label, value
        elif name and not mark and self.default is not None:
            return name, self.default
        if not (name and text):
            raise ValueError(f"expected {self.form}; found {_shown(value)}")
        return name, self.value.convert(text, None, None)


class Interval(ParsedType):
    """LOW:HIGH as a tuple, infinite where one is left out."""

    name = "interval"

    def parsed(self, value: str) -> tuple[float, float]:
        """The least and the greatest number."""
        low, colon, high = value.partition(":")
        if not colon or not (low or high):
            raise ValueError(f"expected LOW:HIGH, as 0: or -1:1, found {_shown(value)}")
        least = WEIGHT.convert(low, None, None) if low else -math.inf
        greatest = WEIGHT.convert(high, None, None) if high else math.inf
        if least > greatest:
            raise ValueError(f"expected the least value first, found {_shown(value)}")
        return least, greatest


class MemorySize(ParsedType):
    """Bytes, written as a number with K, M, G or T: powers of 1,024, as of Slurm and sort."""

    name = "size"
    least = 256 << 20  # what the program takes without any candidates, rounded up

    def parsed(self, value: str) -> int:
        """The number of bytes, at least 256M."""
        parts = _SIZE.fullmatch(value)
        if not parts:
            raise ValueError(f"expected a size such as 3G or 500M, found {_shown(value)}")
        size = int(float(parts[1]) * 1024 ** " KMGT".index(parts[2].upper()))
        if size < self.least:
            raise ValueError(f"expected at least 256M, found {_shown(value)}")
        return size


class ShardName(ParsedType):
    """I/N as a tuple: one of N shards, I from 1 to N."""

    name = "shard"

    def parsed(self, value: str) -> tuple[int, int]:
        """The number of the shard and how many there are."""
        parts = _SHARD.fullmatch(value)
        number, total = map(int, parts.groups()) if parts else (0, 0)
        if not 1 <= number <= total <= MOST:
            raise ValueError(f"expected I/N with I from 1 to N, as 1/4, found {_shown(value)}")
        return number, total


class WordOr(ParsedType):
    """One of some words, or a number."""

    name = "word or number"

    def __init__(self, words: tuple[str, ...], number: Real) -> None:
        self.words, self.number = words, number

    def parsed(self, value: str) -> Any:
        """The word as it is, or the number."""
        if value in self.words:
            return value
        if not NUMBER.fullmatch(os.fsencode(value)):
            raise ValueError(f"expected {', '.join(self.words)} or a number, found {_shown(value)}")
        return self.number.convert(value, None, None)


class MemberName(click.Choice[str]):
    """A built-in name of a registry, one of `others`, or a name that an installed package adds.

    The table of names is loaded when a command is used or completed, not when it is defined.
    """

    def __init__(self, registry: Registry[Any], *others: str) -> None:
        self.registry, self.others, self.case_sensitive = registry, others, True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The other names, then the built-in ones."""
        return (*self.others, *self.registry.builtin)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The names, or where they are many the kind of name, such as DECODER."""
        names = super().get_metavar(param, ctx)
        return names if len(names or "") < MANY else self.registry.kind.upper()

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, whose package is loaded if it is not built in."""
        if value not in self.choices:
            try:
                self.registry.named(value)
            except UsageError as fault:
                others = self.others if "; there are " in str(fault) else ()
                self.fail(", ".join([str(fault), *others]), param, ctx)
        return value


def type_of(field: Field[Any]) -> click.ParamType[Any]:
    """The type of a plain dataclass's field, by its metadata (`rerank.options.of_dataclass`)."""
    if "choices" in field.metadata:
        return click.Choice(field.metadata["choices"])
    if "range" not in field.metadata:
        return click.BOOL
    if "int" in str(field.type):
        return Whole(*field.metadata["range"])
    return Real(*field.metadata["range"], above=field.metadata.get("above", False))


# What has options of its own


@dataclass(frozen=True, slots=True)
class Key:
    """A KEY of the grammar: the field that it fills, the type of its value, its text for people."""

    field: str
    type: click.ParamType[Any]
    help: str

    @property
    def text(self) -> str:
        """The help, behind the possible values where these are names."""
        names = " | ".join(self.type.choices) if isinstance(self.type, click.Choice) else ""
        return f"{names}: {self.help}" if names else self.help


def keys_of(options: type, **types: click.ParamType[Any]) -> dict[str, Key]:
    """The keys of a dataclass of `lm` or `decoders`: fields whose metadata have a `help`.

    Their other metadata: as of `type_of`; `key`: the name, if not that of the field. types: of
    fields whose metadata have none.
    """
    return {
        field.metadata.get("key", field.name): Key(
            field.name,
            types[field.name] if field.name in types else type_of(field),
            field.metadata["help"],
        )
        for field in fields(options)
        if "help" in field.metadata
    }


def key_field(type: click.ParamType[Any], help: str, default: Any = None) -> Any:
    """A field of a dataclass that a key sets: its name, with `-` for `_`."""
    return field(default=default, metadata={"type": type, "help": help})


def key_table(record: type, *names: str) -> dict[str, Key]:
    """The keys of a dataclass of such fields, or of those with these names, by name."""
    known = {option.name: option.metadata for option in fields(record) if option.metadata}
    return {name.replace("_", "-"): Key(name, **known[name]) for name in names or known}


def split(text: str, keys: Mapping[str, Key]) -> tuple[str, dict[str, str]]:
    """The VALUE, and the text behind each KEY: split from the right at the keys that are known."""
    texts: dict[str, str] = {}
    while True:
        comma = len(text)
        while (comma := text.rfind(",", 0, comma)) > 0 and text[comma - 1] == "\\":
            pass
        key, mark, value = text[comma + 1 :].partition("=")
        if comma < 0 or not mark or key not in keys:
            return text.replace("\\,", ","), dict(reversed(texts.items()))
        if key in texts:
            raise click.BadParameter(f"expected one {key}=, found two")
        texts[key], text = value.replace("\\,", ","), text[:comma]


def settings(
    texts: Mapping[str, str],
    keys: Mapping[str, Key],
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> dict[str, Any]:
    """The values of fields that texts behind keys give."""
    values = {}
    for key, text in texts.items():
        try:
            values[keys[key].field] = keys[key].type.convert(text, param, ctx)
        except click.BadParameter as fault:
            raise click.BadParameter(f"{key}: {fault.message}", ctx, param) from None
    return values


def text_of(table: Mapping[str, Any]) -> str:
    """A table of TOML in the grammar: its `name` if there is one, `kind` or `path`, then keys."""
    rest = dict(table)
    name, kind, path = (rest.pop(key, None) for key in ("name", "kind", "path"))
    if not isinstance(value := path or kind, str):
        raise click.BadParameter('expected a table with a kind, as {kind = "smc", particles = 9}')
    keys = []
    for key, item in rest.items():
        text = ("yes" if item else "no") if isinstance(item, bool) else str(item)
        keys.append(f"{key}={text.replace(',', chr(92) + ',')}")
    first = f"{name}={value}" if name else value
    return ("," if path else ":").join([first, ",".join(keys)]) if keys else first


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a registry by name, and values of its options by field."""

    kind: str
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return self.kind


class Kind(MemberName):
    """KIND or KIND:KEY=VALUE,…: a member of a registry with its options, as a `Member`.

    keys: of all members, of which whoever uses it knows those of each.
    """

    text_of = staticmethod(text_of)

    def __init__(self, registry: Registry[Any], *others: str, keys: Mapping[str, Key]) -> None:
        super().__init__(registry, *others)
        self.keys = keys

    def convert(  # type: ignore[override]
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Member:
        """The member, whose package is loaded if it is not built in, and its options."""
        if isinstance(value, Member):
            return value
        kind, colon, rest = value.partition(":")
        super().convert(kind, param, ctx)
        left, texts = split(f",{rest}" if colon else "", self.keys)
        program = re.search(rf",([a-z-]+)=((?:{'|'.join(ESTIMATORS)}).*)", left, re.DOTALL)
        if program and program[1] in self.keys:  # which has options of its own behind it
            left, before = split(left[: program.start()], self.keys)
            texts = {**before, program[1]: program[2].replace("\\,", ","), **texts}
        if left or (colon and not texts):
            key = left.lstrip(",").partition("=")[0]
            near = difflib.get_close_matches(key, self.keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.keys)}"
            self.fail(f"{kind}: expected KEY=VALUE, found {left.lstrip(',')!r}; {hint}", param, ctx)
        return Member(kind, settings(texts, self.keys, param, ctx))


# Values that Python gives

_OF_PYTHON: tuple[tuple[type, tuple[type, ...], str], ...] = (
    (Whole, (numbers.Integral,), "a whole number"),
    (Real, (numbers.Real,), "a number"),
    (Kind, (str, Member), "a name"),
    (click.Choice, (str,), "a name"),
    (FileName, (str, os.PathLike), "a path"),
    (Text, (str,), "a text"),
    (EncodingName, (str,), "a name"),
    (WordOr, (str, numbers.Real), "a word or a number"),
)


def check_value(name: str, kind: click.ParamType[Any] | None, value: object) -> None:
    """Check the value of an option that Python gives, as the shell checks its text.

    kind: None for a flag. ArgumentError for a value of another type, UsageError for one that the
    option refuses. Types whose values are no single text or number are not checked.
    """
    if kind is None or kind is click.BOOL:
        if not isinstance(value, bool):
            raise ArgumentError.of(name, "True or False", value)
        return
    rows = (row for row in _OF_PYTHON if isinstance(kind, row[0]))
    _, types, expected = next(rows, (object, (object,), ""))
    if not isinstance(value, types) or (expected and isinstance(value, bool)):
        raise ArgumentError.of(name, expected, value)
    if not expected or isinstance(value, Member):
        return
    try:
        os.fsencode(text := str(value))
        kind.convert(text, None, None)
    except UnicodeEncodeError:
        raise ArgumentError.of(name, f"{expected} in Unicode", value) from None
    except (click.BadParameter, OverflowError) as fault:
        raise UsageError(f"{name}: {getattr(fault, 'message', fault)}") from None


def named_values(argument: str, what: str, value: object) -> Mapping[str, Any]:
    """An argument that gives values by name; ArgumentError, a TypeError, for something else."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    raise ArgumentError.of(argument, f"{what}, as {{'NAME': …}}", value)


def interval_of(what: str, value: Any) -> tuple[float, float]:
    """The least and the greatest weight; ArgumentError for something else."""
    with suppress(TypeError, ValueError):
        low, high = value
        least = -math.inf if low is None else float(low)
        greatest = math.inf if high is None else float(high)
        if least <= greatest:
            return least, greatest
    expected = "the least weight and the greatest, None where there is no limit, as (0, None)"
    raise ArgumentError.of(what, expected, value)
