"""`recipes/studies/ptb/run.py`: seeds, tests over documents, and runs that are stopped."""

import json
from pathlib import Path
from typing import Any

import pytest


def write_figures(work: Path, model: str, seed: int, test: float) -> None:
    """Files of a training that is done: ten test documents of `test` nats and a little each."""
    label = work / f"{model}-96-seed{seed}"
    documents = [{"nats": test + 0.01 * d} for d in range(10)]
    found = {"perplexity": test, "perplexity_without_eos": test + 1, "documents": documents}
    Path(f"{label}.json").write_text(json.dumps({"valid": found, "test": found}))
    Path(f"{label}.curve.tsv").write_text(f"update\tepoch\n8\t0.5\n96\t{5 + seed}.0\n")


def test_rows_are_tested_against_the_one_above_and_a_stopped_run_prints_the_complete_ones(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten documents that all differ the same way: p is 2 of 2¹⁰ patterns."""
    for model, figures in {"codclm": (7.0, 8.0), "rnnlm": (9.0, 11.0), "adclm": (5.0,)}.items():
        for seed, test in enumerate(figures, start=1):
            write_figures(tmp_path, model, seed, test)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the tests keep their own
    models = [one for name in ("rnnlm", "codclm", "adclm") for one in ("--model", name)]
    where = ["--data", tmp_path, "--text", "{part}.txt", "--work", tmp_path]
    found = script("studies/ptb/run.py", *where, *models, "--seeds", 2, "--hours", 0)
    assert "stopped; the same command goes on" in found.err
    assert found.out.splitlines()[2:] == [
        "| `rnnlm` | 96, 96 | 10.00 ± 1.41 | 10.00 ± 1.41 | 11.00 ± 1.41 | 1.000 | – | 6, 7 |",
        "| `codclm` | 96, 96 | 7.50 ± 0.71 | 7.50 ± 0.71 | 8.50 ± 0.71 | 0.750 | 0.002 | 6, 7 |",
    ]
