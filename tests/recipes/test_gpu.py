"""The measurements for a GPU, `recipes/bench/gpu/run.py`, at tiny sizes on the CPU."""

from typing import Any

import pytest

pytest.importorskip("transformers")
MODELS = ("rnnlm", "codclm", "ccdclm 8", "ccdclm 64", "attention", "gpt2")
PRECISIONS = ("float32", "tf32", "bfloat16")


def test_every_part_runs_and_scores_are_those_of_the_cpu(script: Any) -> None:
    parts = ("--part", "scoring", "--part", "decode", "--part", "training")
    printed = script("bench/gpu/run.py", "--device", "cpu", "--quick", *parts).out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:2] == "| "]
    scored = [row for row in rows if len(row) == 9 and row[1] in PRECISIONS]
    expected = [[m, precision] for m in MODELS for precision in PRECISIONS]
    assert [row[:2] for row in scored] == expected
    for _, precision, *_, of_script, of_cpu in scored:
        half = precision == "bfloat16"
        assert float(of_script) < (10.0 if half else 1e-3)  # autocast adds up in bfloat16, too
        assert float(of_cpu) < (2.0 if half else 1e-3)
    assert [row[1] for row in rows if len(row) == 5 and row[0] in PRECISIONS] == ["6"] * 3
    trained = [row for row in rows if len(row) == 7 and row[2] in PRECISIONS]
    assert len(trained) == 2 * 2 * 3
    assert "no time left" not in printed


def test_kernels_are_listed_with_their_seconds(script: Any) -> None:
    chosen = ("--part", "kernels", "--case", "rnnlm")
    printed = script("bench/gpu/run.py", "--device", "cpu", "--quick", *chosen).out
    titles = [line for line in printed.splitlines() if line.startswith("## rnnlm")]
    assert [title.split(":")[0] for title in titles] == [f"## rnnlm, {p}" for p in PRECISIONS]
    for own in printed.split("## rnnlm")[1:]:
        rows = [line.strip("| ").split(" | ") for line in own.splitlines() if line[:2] == "| "]
        assert float(dict(row[::-1] for row in rows[1:])["`aten::mm`"]) > 0
