"""`recipes/bench/load` what its lists are."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_lists_have_their_size_and_the_totals_of_their_weights(tmp_path: Path, script: Any) -> None:
    for name in ("a", "b"):
        script("bench/load/generate.py", tmp_path / name, 3, 4, 5, 4, 7, "--sparse", 50)
    made = bytes_of(tmp_path / "a")
    assert made == bytes_of(tmp_path / "b")  # the same seed, the same bytes
    weights = json.loads(made["weights.json"])
    every = [weights["LM0"], weights["WordPenalty0"], *weights["TM0"]]
    lines = [line.split(" ||| ") for line in gzip.decompress(made["kbest.gz"]).decode().split("\n")]
    assert [int(fields[0]) for fields in lines[:-1]] == [t for t in range(12) for _ in range(5)]
    totals = [float(fields[3]) for fields in lines[:-1]]
    for fields, total in zip(lines, totals, strict=False):
        words = fields[2].split()
        values = [float(words[1]), float(words[3]), *map(float, words[5:7])]
        assert words[0::2][:3] == ["LM0=", "WordPenalty0=", "TM0="]
        assert total == pytest.approx(sum(w * v for w, v in zip(every, values, strict=True)))
        assert "sp_" in fields[2]
    assert all(totals[i] >= totals[i + 1] for i in range(59) if i % 5 < 4)
    documents = made["docids"].split()
    assert len(documents) == 12
    assert len(set(documents)) == 3
    assert made["ref"].count(b"\n") == 12
    assert made["lm.arpa"].startswith(b"\\data\\")
