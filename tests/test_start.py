"""Start weights of Moses: init.opt, and weights with a place instead of a name."""

from pathlib import Path

import pytest

from rerank.columns import Label, column_names
from rerank.errors import InputError
from rerank.notices import Notices
from rerank.tuning.start import Start, named, read_init_opt
from rerank.weights import Weights, weights_from_lines

LABELS = (Label("LM0", 1), Label("TM0", 2))


def init(folder: Path, text: str) -> Start:
    path = folder / "init.opt"
    path.write_text(text)
    return read_init_opt(path, column_names(LABELS), Notices())


def weights(text: str) -> Weights:
    return weights_from_lines(text.encode().splitlines(), Notices())


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


@pytest.mark.parametrize(
    "text",
    ["F0 0.5\nF1 -1\nF2 2\nt_a 3\n", "0.5 -1 2 \nt_a= 3\n", "F1= -1\nF2= 2\nF0= 0.5\nt_a= 3\n"],
    ids=["kbmira", "weights.txt", "run.dense"],
)
def test_weights_without_names_get_those_of_the_features(text: str) -> None:
    assert named(weights(text), LABELS) == Weights(
        {"LM0": (0.5,), "TM0": (-1.0, 2.0)}, {"t_a": 3.0}
    )


def test_weights_with_names_stay_as_they_are() -> None:
    given = Weights({"TM0": (1.0, 2.0)}, {"t_a": 3.0})
    assert named(given, LABELS) is given
    without = Weights({"F0": (1.0,)})
    assert named(without, (Label("F0", 1), Label("F1", 1))) is without
    sparse = Weights({}, {"t_a": 3.0})
    assert named(sparse, LABELS) is sparse


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("1 2", 2),
        ("1 2 3 4", 4),
        ("F0 1\nF1 2\nF3 3", 3),
        ("1 2 3\n0 0 0\n1 1 1", 9),
    ],
)
def test_another_number_of_weights_is_refused(text: str, n: int) -> None:
    message = f"w.txt: expected 3 weights without names, F0 to F2, .* of LM0 TM0, found {n}"
    with pytest.raises(InputError, match=message):
        named(weights(text), LABELS, source="w.txt")
