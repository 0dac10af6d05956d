"""The documentation: README, recipes, reference and Python interface as one site.

`make docs` builds it, from the top of the repository, where pages and their links stand.
"""

from __future__ import annotations

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
        "recipes/systems/TEN-MINUTES",
        "recipes/site/moses-lists",
        "recipes/site/plug-in",
    ),
    "Guides": (
        *("recipes/formats", "recipes/scorers", "recipes/tuning", "recipes/search"),
        *(f"recipes/{name}/README" for name in ("systems", "mbr", "moses", "llm", "hf")),
        *(f"recipes/{name}/README" for name in ("estimators", "plugin", "cluster")),
    ),
    "Models and results": ("recipes/README",),  # and all other pages
    "Reference": ("recipes/reference", "recipes/api", "recipes/site/python"),
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


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", with_contents)
    app.connect("build-finished", with_index)
