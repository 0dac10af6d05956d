"""Figures of a report for papers."""

import importlib.util
import re
from pathlib import Path

import pytest
from support.reports import HOSTILE, report_of

from rerank.report.paper_figures import write_figures

if importlib.util.find_spec("matplotlib") is None:
    pytest.skip("needs the extra `figures`", allow_module_level=True)

CURVES = {"codclm": [(60.0, 50.0), (120.0, 40.0)], "$x$": [(30.0, 60.0), (90.0, 45.0)]}


def test_figures_are_pdf_and_svg_and_the_same_bytes_for_the_same_report(tmp_path: Path) -> None:
    one, other = (write_figures(tmp_path / name, report_of(), CURVES) for name in "ab")
    assert [path.name for path in one] == [
        *("gains.pdf", "gains.svg", "features.pdf", "features.svg", "curves.pdf", "curves.svg")
    ]
    for a, b in zip(one, other, strict=True):
        magic = b"%PDF" if a.suffix == ".pdf" else b"<?xml"
        assert a.read_bytes().startswith(magic)
        assert a.read_bytes() == b.read_bytes()
    without = write_figures(tmp_path / "c", report_of(), {})
    assert [path.stem for path in without] == ["gains"] * 2 + ["features"] * 2


def test_labels_are_texts_and_names_are_no_markup(tmp_path: Path) -> None:
    write_figures(tmp_path, report_of(), CURVES)
    gains, features, curves = (
        (tmp_path / f"{name}.svg").read_text() for name in ("gains", "features", "curves")
    )
    assert "gain in BLEU" in gains
    assert len(re.findall(r'<g id="patch_\d+">', gains)) >= 12  # a bar for each document
    assert ">LM0<" in features
    assert "&lt;b&gt;" in features
    assert "<b>" not in features
    assert all(hostile not in features for hostile in HOSTILE[:2])
    assert ">$x$<" in curves
    assert "minutes of training" in curves
