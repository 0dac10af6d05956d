"""Values of a metric of another tool, read from a file."""

import re
from pathlib import Path

import numpy as np
import pytest

from rerank.errors import InputError
from rerank.metrics.line_scores import read_line_scores
from rerank.notices import Notices
from rerank.signature import short_digest


def written(folder: Path, content: str) -> Path:
    path = folder / "out.comet"
    path.write_text(content, encoding="utf-8")
    return path


def test_every_line_is_a_number_as_python_reads_it(tmp_path: Path) -> None:
    numbers = ["0.5", "-1", "1e-3", " +0.8125\t", "7"]
    path = written(tmp_path, "".join(f"{number}\n" for number in numbers) + "\n \n")
    found = read_line_scores(path, "comet", 5, Notices(), text="out")
    np.testing.assert_array_equal(found.values, list(map(float, numbers)))
    assert f"|metric:comet|file:out.comet={short_digest(path)}|" in found.signature


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\nnan\n3\n", "out.comet:2: expected a decimal number for comet, found 'nan'; write one"),
        ("1\n2\ninf\n", "out.comet:3: expected a finite number for comet, found 'inf'"),
        ("1\n\n3\n", "out.comet:2: expected a decimal number for comet, found ''; write one"),
        ("1\n2 0.5\n3\n", "out.comet:2: expected a decimal number for comet, found '2 0.5'"),
        ("1\n2\n", "out.comet:3: expected 3 lines as out has, found 2; write one number"),
        ("", "out.comet:1: expected 3 lines as out has, found 0; write one number"),
        ("1\n2\n3\n\n5\n", "out.comet:4: expected 3 lines as out has, found 5; write one number"),
    ],
    ids=["nan", "infinite", "blank", "two", "short", "empty", "long"],
)
def test_what_is_no_number_for_each_line_is_refused_with_its_place(
    content: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_line_scores(written(tmp_path, content), "comet", 3, Notices(), text="out")


def test_of_a_file_that_is_too_long_little_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected 3 lines as out has, found 1,003 or more"):
        read_line_scores(written(tmp_path, "1\n" * 9999), "comet", 3, Notices(), text="out")
