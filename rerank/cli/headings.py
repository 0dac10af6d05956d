"""Help of a command with many options, grouped under headings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


class CommandWithHeadings(click.Command):
    """A command whose help groups its options under headings.

    headings: by name of a parameter, the heading that begins with it and lasts until the next
    parameter with a heading; options before the first one are under `Options`.
    """

    def __init__(self, *arguments: Any, headings: Mapping[str, str], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.headings = headings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options in their order."""
        groups: list[tuple[str, list[tuple[str, str]]]] = [("Options", [])]
        for parameter in self.get_params(ctx):
            if parameter.name in self.headings:
                groups.append((self.headings[parameter.name], []))
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                usage = record[0].replace("INTEGER RANGE", "N").replace("FLOAT RANGE", "NUMBER")
                groups[-1][1].append((usage, record[1].replace("].  [", "; ")))
        for heading, records in groups:
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=26)
