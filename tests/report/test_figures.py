"""Figures: files that are pictures, and refusals before any work."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from rerank.errors import UsageError
from rerank.report.figures import check_figure, plot_sections
from rerank.tuning.surface import Section

drawing = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="needs the extra `figures`"
)
MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--plot surface.jpg: expected a file .svg, .png, .pdf"):
        check_figure("surface.jpg")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'rerank-mt\[figures\]'"):
        check_figure("surface.svg")


@drawing
@pytest.mark.parametrize("suffix", MAGIC)
def test_a_picture_is_written_in_the_format_of_its_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"surface{suffix}"
    check_figure(path)
    left = np.array([-np.inf, -1.0, 0.0, 2.0])
    found = [Section(f, 0.5, left, np.array([1.0, 3.0, 4.0, 2.0])) for f in range(5)]
    plot_sections(path, found, [f"F{f}" for f in range(5)], [1.0] * 5, objective="corpus BLEU")
    assert path.read_bytes().startswith(MAGIC[suffix])
    if suffix == ".svg":
        assert path.read_text().count('id="axes_') == 5


@drawing
def test_labels_and_a_legend_explain_the_figure(tmp_path: Path) -> None:
    import matplotlib

    path, left = tmp_path / "surface.svg", np.array([-np.inf, 0.0])
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        sections = [Section(0, 0.5, left, np.array([1.0, 3.0]))]
        plot_sections(path, sections, ["LM0"], [1.0], objective="corpus BLEU")
    text = path.read_text()
    for label in (
        "corpus BLEU",
        "tuned weight",
        "objective at most 0.1 below its tuned value",
        "weight of LM0",
    ):
        assert f">{label}<" in text
