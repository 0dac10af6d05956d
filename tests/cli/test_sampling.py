"""`rerank sample` on the shell: text on standard output, counts on standard error."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rerank.cli import run


def test_the_text_goes_to_standard_output_and_its_counts_to_standard_error(
    model_folders: Mapping[str, Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = [
        "sample",
        "--lm",
        str(model_folders["codclm"]),
        "--documents",
        "2",
        "--device",
        "cpu",
    ]
    assert run([*command, "--sentences", "3"]) == 0
    captured = capfdbinary.readouterr()
    assert captured.out.count(b"\n") == 7
    assert captured.err.startswith(b"2 documents, 6 sentences, ")
    assert run([*command, "--sentences", "3", "-q"]) == 0
    again = capfdbinary.readouterr()
    assert (again.out, again.err) == (captured.out, b"")


@pytest.mark.parametrize(
    "option",
    [
        *("--documents 0", "--sentences 0", "--longest 0"),
        *("--temperature 0", "--temperature nan", "--seed -1"),
    ],
)
def test_values_that_draw_nothing_are_refused(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sample", "--lm", "m", *option.split()]) == 2
    assert option.split()[0] in capsys.readouterr().err
