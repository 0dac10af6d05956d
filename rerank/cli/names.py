"""A name of a registry as the value of an option."""

from __future__ import annotations

from typing import Any

import click

from rerank.errors import UsageError
from rerank.registry import Registry


class MemberName(click.Choice[str]):
    """A built-in name of a registry, one of `others`, or a name that an installed package adds."""

    def __init__(self, registry: Registry[Any], *others: str) -> None:
        super().__init__([*others, *registry.builtin])
        self.registry = registry

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, whose package is loaded if it is not built in."""
        if value not in self.choices:
            try:
                self.registry.named(value)
            except UsageError as fault:
                self.fail(str(fault), param, ctx)
        return value
