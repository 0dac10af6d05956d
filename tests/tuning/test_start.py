"""Start weights of Moses: init.opt."""

from pathlib import Path

import pytest

from rerank.corpus.labels import Label, column_names
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.tuning.start import Start, read_init_opt

LABELS = (Label("LM0", 1), Label("TM0", 2))


def init(folder: Path, text: str) -> Start:
    path = folder / "init.opt"
    path.write_text(text)
    return read_init_opt(path, column_names(LABELS), Notices())


def test_three_lines_are_start_and_ranges(tmp_path: Path) -> None:
    found = init(tmp_path, "0.5 -0.25 1e-3 \n0 -1 0\n\n1 1 2\n")
    assert found.weights.tolist() == [0.5, -0.25, 1e-3]
    assert found.least.tolist() == [0, -1, 0]
    assert found.largest.tolist() == [1, 1, 2]
    assert not found.usual
    assert init(tmp_path, "0.5 -0.25 3\n0 0 0\n1 1 1\n").usual


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5 1 2\n0 0 0\n", "init.opt: expected three lines, start, .*, found 2"),
        ("0.5 1 2\n0 0 0\n1 1 1\n1 1 1\n", "init.opt: expected three lines.*, found 4"),
        ("", "init.opt: expected three lines.*, found 0"),
        ("0.5 1\n0 0 0\n1 1 1\n", "init.opt:1: expected 3 values, for LM0 … TM0_1, found 2"),
        ("0.5 1 2\n0 0 0 0\n1 1 1\n", "init.opt:2: expected 3 values, .*, found 4"),
        ("0.5 1 nan\n0 0 0\n1 1 1\n", "init.opt:1: expected a finite decimal number, found 'nan'"),
        ("0.5 1 1\n0 0 0\n1 1 inf\n", "init.opt:3: expected a finite decimal number, found 'inf'"),
        ("0.5 1 1\n1 1 1\n1 0 1\n", "init.opt: expected a range for TM0_0, found 1 to 0"),
    ],
)
def test_what_is_no_init_opt_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        init(tmp_path, text)
