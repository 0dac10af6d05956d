"""A name of a registry as the value of an option."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from rerank.errors import UsageError
from rerank.registry import Registry


class MemberName(click.ParamType):  # type: ignore[type-arg]
    """A name in a registry, or one of `others`. Help shows built-in names, plug-ins are accepted.

    Names that are not built in are looked up, and their packages loaded, at once.
    """

    def __init__(self, registry: Registry[Any], *others: str) -> None:
        self.name, self.registry, self.others = registry.kind, registry, others

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """The built-in names, as those of a choice."""
        return f"[{'|'.join([*self.others, *self.registry.builtin])}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself."""
        if value not in self.others and value not in self.registry.builtin:
            try:
                self.registry.named(value)
            except UsageError as fault:
                self.fail(str(fault), param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin so, for the completion of the shell."""
        names = [*self.others, *self.registry]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
