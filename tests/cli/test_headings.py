"""Help under headings: every option once, in order, below the heading that it belongs to."""

from __future__ import annotations

import click
from click.testing import CliRunner

from rerank.cli.headings import CommandWithHeadings

HEADINGS = {"b": "Second things", "unknown": "Nothing"}


@click.command("two", cls=CommandWithHeadings, headings=HEADINGS)
@click.option("--a", help="First.")
@click.option("--bee", "b", help="Second.")
@click.option("--c", help="Third.", hidden=True)
@click.option("--d", help="Fourth.")
def two(a: str, b: str, c: str, d: str) -> None:
    """Nothing."""


def test_a_heading_begins_with_the_option_that_is_named() -> None:
    lines = CliRunner().invoke(two, ["--help"]).output.split("\n\n")
    assert [part.split()[0] for part in lines[2:]] == ["Options:", "Second"]
    assert lines[2].split("\n") == ["Options:", "  --a TEXT  First."]
    rows = [line.split()[0] for line in lines[3].splitlines()[1:]]
    assert rows == ["--bee", "--d", "--help"]


def test_without_headings_all_are_options() -> None:
    plain = click.Command("two", params=two.params, help="Nothing.")
    headed = CommandWithHeadings("two", params=two.params, help="Nothing.", headings={})
    outputs = [CliRunner().invoke(command, ["--help"]).output for command in (plain, headed)]
    assert outputs[0] == outputs[1]
