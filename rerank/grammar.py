r"""The grammar of what has options of its own: `[NAME=]VALUE[,KEY=VALUE…]`.

VALUE is a kind, KIND:TARGET, or a path; a kind without target takes its first key after the colon,
as in `smc:particles=256,ess=0.5`. A value is split from the right, only at keys that its kind
knows, so that paths may hold commas, colons and equals signs; `\,` is a comma that does not split.
In a TOML file it is a table: `search = {kind = "smc", particles = 256}`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import click

from rerank.options import type_of
from rerank.registry import Registry
from rerank.values import MemberName


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


def keys_of(options: type, **choices: tuple[str, ...]) -> dict[str, Key]:
    """The keys of a dataclass of `lm` or `decoders`: fields whose metadata have a `help`.

    Their other metadata: as of `rerank.options.of_dataclass`; `key`: the name, if not that of the
    field. choices: values of texts, by field, where they are none of the metadata.
    """
    return {
        one.metadata.get("key", one.name): Key(
            one.name,
            click.Choice(choices[one.name]) if one.name in choices else type_of(one),
            one.metadata["help"],
        )
        for one in fields(options)
        if "help" in one.metadata
    }


def split(text: str, keys: Mapping[str, Key]) -> tuple[str, dict[str, str]]:
    """The VALUE, and the text behind each KEY: split from the right at the keys that are known."""
    given: dict[str, str] = {}
    while True:
        comma = len(text)
        while (comma := text.rfind(",", 0, comma)) > 0 and text[comma - 1] == "\\":
            pass
        key, mark, value = text[comma + 1 :].partition("=")
        if comma < 0 or not mark or key not in keys:
            return text.replace("\\,", ","), dict(reversed(given.items()))
        if key in given:
            raise click.BadParameter(f"expected one {key}=, found two")
        given[key], text = value.replace("\\,", ","), text[:comma]


def settings(
    given: Mapping[str, str],
    keys: Mapping[str, Key],
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> dict[str, Any]:
    """The values of fields that texts behind keys give."""
    found = {}
    for key, text in given.items():
        try:
            found[keys[key].field] = keys[key].type.convert(text, param, ctx)
        except click.BadParameter as fault:
            raise click.BadParameter(f"{key}: {fault.message}", ctx, param) from None
    return found


def text_of(table: Mapping[str, Any]) -> str:
    """A table of TOML in the grammar: its `name` if there is one, `kind` or `path`, then keys."""
    given = dict(table)
    name, kind, path = (given.pop(key, None) for key in ("name", "kind", "path"))
    if not isinstance(value := path or kind, str):
        raise click.BadParameter('expected a table with a kind, as {kind = "smc", particles = 9}')
    keys = []
    for key, one in given.items():
        text = ("yes" if one else "no") if isinstance(one, bool) else str(one)
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

    keys: those of all members; which a member has is known to whoever uses it. text_of: what a
    table of TOML is in the grammar (`rerank.options`).
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
        left, given = split(f",{rest}" if colon else "", self.keys)
        if left or (colon and not given):
            key = left.lstrip(",").partition("=")[0]
            near = difflib.get_close_matches(key, self.keys, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self.keys)}"
            self.fail(f"{kind}: expected KEY=VALUE, found {left.lstrip(',')!r}; {hint}", param, ctx)
        return Member(kind, settings(given, self.keys, param, ctx))
