"""The documentation: README, recipes, reference and Python interface as one site.

`make docs` builds it, from the top of the repository, where pages and their links stand.
"""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

project, author, copyright = "rerank", "rerank contributors", "rerank contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
include_patterns = ["*.md", "recipes/**.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = True
smartquotes = False  # options have two dashes
default_role = "code"  # docstrings have `names` as Markdown has
autodoc_typehints = "none"  # the types stand in docstrings where they matter
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "rerank"
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False}

CHAPTERS = {  # pages of the sidebar
    "Tutorials": (
        "recipes/docs/TEN-MINUTES",
        "recipes/docs/moses-lists",
        "recipes/docs/plug-in",
    ),
    "Guides": (
        *(f"recipes/docs/{name}" for name in ("formats", "scorers", "judges", "tuning", "search")),
        *(f"recipes/studies/{name}/README" for name in ("systems", "mbr")),
        "recipes/adapters/README",
        *(f"recipes/adapters/{name}/README" for name in ("moses", "llm", "hf")),
        *(f"recipes/adapters/{name}/README" for name in ("estimators", "plugin", "cluster")),
    ),
    "Models and results": ("recipes/README",),  # and all other pages
    "Reference": ("recipes/docs/reference", "recipes/docs/api", "recipes/docs/python"),
    "The project": ("CONTRIBUTING", "SECURITY", "CHANGELOG"),
}


def with_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """The first page gets the sidebar's contents, which are not for readers of the file."""
    if docname == root_doc:
        listed = {root_doc, *(page for pages in CHAPTERS.values() for page in pages)}
        for chapter, pages in CHAPTERS.items():
            others = sorted(app.env.found_docs - listed) if "recipes/README" in pages else ()
            names = "\n".join([*pages, *others])
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {chapter}\n{names}\n```\n"


def with_index(app: Sphinx, error: Exception | None) -> None:
    """The first page is also `index.html`."""
    if error is None and app.builder.format == "html":
        shutil.copy(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def with_reference(app: Sphinx) -> None:
    """The page of all commands and options, written where it differs from the one that is there."""
    here = Path(__file__).parent
    page = runpy.run_path(str(here / "reference.py"))["page"]() + "\n"
    if not (path := here / "reference.md").exists() or path.read_text("utf-8") != page:
        path.write_text(page, "utf-8")


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", with_reference)
    app.connect("source-read", with_contents)
    app.connect("build-finished", with_index)
