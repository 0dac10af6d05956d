"""Prediction of the next sentence's topic, Tables 4 and 5: `recipes/studies/ptb/topics.py`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

THINGS = ("lamp light oil wick", "boat oar sail mast")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Texts whose topics take turns, and their labels, as `topics learn` and `label` leave them."""
    rng = np.random.default_rng(4)
    work = tmp_path / "work"
    (work / "topics-kmeans-2").mkdir(parents=True)
    (work / "topics-kmeans-2" / "topics.json").touch()
    for part, documents in (("train", 40), ("valid", 10), ("test", 10)):
        turns = [(n + t) % 2 if t < 4 else None for n in range(documents) for t in range(5)]
        lines = ["" if z is None else " ".join(rng.choice(THINGS[z].split(), 5)) for z in turns]
        labels = ["" if z is None else "ab"[z] for z in turns]
        (tmp_path / f"bbc.{part}.txt").write_text("\n".join(lines) + "\n")
        (work / f"topics-kmeans-2.{part}").write_text("\n".join(labels) + "\n")
    return tmp_path


def test_topics_in_turns_are_predicted_as_their_bigrams_are(script: Any, labelled: Path) -> None:
    """Closed forms: the topic of the sentence before is never right, its bigrams always are."""
    texts = "--data", labelled, "--work", labelled / "work", "--topics-number", 2
    found = script("studies/ptb/topics.py", *texts, "--hidden", 32, "--epochs", 10).out
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found.splitlines()[2:]]
    assert [inputs for _, inputs, _ in rows[:10]] == [
        *("W", "ST", "W + ST") * 2,
        *("W + PST", "W + ST", "W", "W + ST"),
    ]
    of = {(place, inputs): cell.split(" / ") for place, inputs, cell in rows}
    assert of["baseline", "topic of the sentence before"] == ["–", "0.0%"]
    assert of["baseline", "bigram of topics"][1] == "100.0%"
    assert of["Table 4", "W + ST"][1] == "100.0%"
    assert all(1 < float(perplexity) < 3 for perplexity, _ in [*of.values()][:10])
    again = script("studies/ptb/topics.py", *texts, "--hidden", 32, "--epochs", 10)
    assert (again.out, "epoch" in again.err) == (found, False)  # what was measured is kept
