"""The maximum-entropy classifier of `recipes/coherence`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest


def text(path: Path, seed: int, documents: int, *, ordered: bool) -> Path:
    """Documents whose sentences name their position, or chance."""
    rng, lines = np.random.default_rng(seed), []
    for _ in range(documents):
        for i in range(5):
            place = i if ordered else rng.integers(5)
            lines.append(f"place{place} {' '.join(rng.choice(list('abcdefgh'), 3))}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("ordered", [True, False])
def test_documents_are_told_from_permutations_where_there_is_an_order(
    ordered: bool, tmp_path: Path, script: Any
) -> None:
    train, valid, new = (
        text(tmp_path / str(n), n, size, ordered=ordered) for n, size in enumerate((150, 25, 25))
    )
    options = ["--train", train, "--valid", valid, "--permutations", 5]
    lines = script("coherence/maximum_entropy.py", *options, new).out.splitlines()
    share = float(lines[-1].split("|")[2].split()[0])
    assert share > 95 if ordered else 30 < share < 70
