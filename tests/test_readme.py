"""README and recipes say what is true: their code runs, their options and links exist."""

import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.world import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "recipes").rglob("*.md")])
HELP = ROOT / "tests" / "golden" / "help"
every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)


def blocks(text: str, language: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(page: Path) -> list[str]:
    """Calls of `rerank` in shell blocks, without comments, a line each."""
    joined = "\n".join(blocks(page.read_text(encoding="utf-8"), "sh")).replace("\\\n", " ")
    lines = [line.partition("  # ")[0] for line in joined.splitlines()]
    return [found for line in lines for found in re.findall(r"rerank [a-z][^|>]*", line)]


def test_python_of_the_readme_gives_the_results_in_its_comments() -> None:
    (code,) = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["result"]
    assert (result.choices, result.texts) == ((0, 1), ("the cat", "he sleeps"))
    assert result.exact


@every_page
def test_every_option_in_a_shell_block_exists(page: Path) -> None:
    for line in commands(page):
        one, two = [*line.split()[1:], ""][:2]
        path = HELP / (f"{one}-{two}" if (HELP / f"{one}-{two}").exists() else one)
        options = {*re.findall(r"(?<![\w-])-?-[a-z]+(?:-[a-z]+)*", path.read_text())}
        used = {word.partition("=")[0] for word in line.split() if re.match("--[a-z]", word)}
        assert used <= options, line
    assert page.name != "README.md" or page.parent != ROOT or len(commands(page)) >= 7


def test_tables_of_the_readme_are_what_the_recipes_printed() -> None:
    """`make tables` keeps that, and writes the tables: recipes/studies/tables.py."""
    tables = runpy.run_path(str(ROOT / "recipes" / "studies" / "tables.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables["replaced"](readme, tables["RESULTS"]) == readme
    assert re.findall(r"<!-- (\w+) -->\n\| commit \w{8} ", readme)


@pytest.mark.skipif(find_spec("myst_parser") is None, reason="needs the extra docs")
def test_the_documentation_is_built_without_warnings(tmp_path: Path) -> None:
    sphinx = f"-m sphinx -W --keep-going -q -c recipes/docs -d {tmp_path}/trees . {tmp_path}/site"
    command = [sys.executable, *sphinx.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "site" / "index.html").exists()
    assert "rerank decode" in (tmp_path / "site/recipes/docs/reference.html").read_text("utf-8")


@every_page
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
