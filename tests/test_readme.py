"""README and recipes say what is true: their code runs, their options and links exist."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from rerank.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "recipes").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(text: str, language: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(text: str) -> list[str]:
    """Calls of `rerank` in shell blocks, without comments, a line each."""
    joined = "\n".join(blocks(text, "sh")).replace("\\\n", " ")
    lines = [line.partition("  # ")[0] for line in joined.splitlines()]
    return [found for line in lines for found in re.findall(r"rerank [a-z][^|>]*", line)]


def options(command: click.Command) -> set[str]:
    """Spellings of a command's options."""
    return {name for parameter in command.params for name in parameter.opts}


def test_python_of_the_readme_gives_the_results_in_its_comments() -> None:
    first, second = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    names: dict[str, Any] = {}
    exec(first, names)
    result = names["result"]
    assert (result.choices, result.texts) == ((0, 1), ("the cat", "he sleeps"))
    assert result.exact
    exec(second, names)
    assert names["result"].texts == ("she sings", "she smiles")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_option_in_a_shell_block_exists(page: Path) -> None:
    for line in commands(page.read_text(encoding="utf-8")):
        name, *words = line.split()[1:]
        used = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
        assert used <= options(cli.commands[name]), line


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_has_commands_to_check() -> None:
    assert len(commands((ROOT / "README.md").read_text(encoding="utf-8"))) >= 7
