"""A name of a registry as the value of an option."""

from __future__ import annotations

from typing import Any

import click

from rerank.errors import UsageError
from rerank.registry import Registry, attribute

MANY = 60  # characters of names, too many for one line of help


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
                self.fail(str(fault), param, ctx)
        return value


class TableName(click.Choice[str]):
    """A name of a table at an address `module:attribute`, loaded when a command is used or shown.

    The module must load nothing heavy: help shows the names.
    """

    def __init__(self, address: str) -> None:
        self.address, self.case_sensitive = address, True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names in the order of the table."""
        return tuple(attribute(self.address))
