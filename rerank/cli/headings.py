"""A command with many options, whose help has them under headings."""

from __future__ import annotations

from typing import ClassVar

import click


class Headed(click.Command):
    """A command whose subclasses say which heading begins with which option.

    headings: by the name of a parameter, what it and those after it, up to the next one that is
    named, are about; those before the first are under `Options`.
    """

    headings: ClassVar[dict[str, str]] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each part of the options, in their order."""
        parts: list[tuple[str, list[tuple[str, str]]]] = [("Options", [])]
        for parameter in self.get_params(ctx):
            if parameter.name in self.headings:
                parts.append((self.headings[parameter.name], []))
            record = parameter.get_help_record(ctx)
            if record is not None:
                parts[-1][1].append(record)
        for heading, records in parts:
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
