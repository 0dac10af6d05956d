"""Records of options: what Python's keywords and the shell make of one declaration."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

import rerank
from rerank.options import Command, argument, option, part, record, settings_of


@record
class Inner:
    beam: int = option("Beam width.", type=click.IntRange(1, 100), default=8)
    gap: bool = option("Report the gap.", default=False, needs={"names": "it is of names"})
    hidden: int = option("Not an option here.", type=int, default=3)


@record
class Options:
    """Options of a command."""

    paths: tuple[str, ...] = argument("PATH...", type=str)
    names: tuple[str, ...] = option("Names.", "--name", type=str, default=())
    search: Inner = part(Inner, "Search", without={"hidden"})

    def check(self) -> None:
        if self.paths == ("bad",):
            raise rerank.RerankError("bad: not a path")


def shown(words: list[str]) -> str:
    def work(options: Options) -> None:
        """Show the record."""
        click.echo(repr(options))

    found = CliRunner().invoke(Command("show", Options, work), words, standalone_mode=False)
    if found.exception is not None:
        raise found.exception
    return found.output.strip()


def test_the_shell_and_python_fill_the_same_record() -> None:
    words = ["a", "b", "--name", "n", "--beam", "2", "--gap"]
    same = settings_of(Options, paths=("a", "b"), name=("n",), beam=2, gap=True)
    assert shown(words) == repr(same)
    assert same.search == Inner(beam=2, gap=True)
    assert shown(["a"]) == repr(settings_of(Options, paths=("a",)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"paths": ("bad",)}, "bad: not a path"),
        ({"paths": ("a",), "gap": True}, "--gap: it is of names"),
    ],
)
def test_rules_about_several_options_hold_in_python_and_in_the_shell(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(rerank.RerankError) as fault:
        settings_of(Options, **values)
    assert str(fault.value) == message
    words = [*values["paths"], *(["--gap"] if "gap" in values else [])]  # type: ignore[misc]
    with pytest.raises(rerank.RerankError) as fault:
        shown(words)
    assert str(fault.value) == message


@pytest.mark.parametrize("name", ["hidden", "baem", "search"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"no option '{name}'"):
        settings_of(Options, paths=("a",), **{name: 1})
    with pytest.raises(click.NoSuchOption):
        shown(["a", f"--{name}", "1"])
