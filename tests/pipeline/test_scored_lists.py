"""Lists written back by `decode --kbest-out`: totals by hand."""

import json
from pathlib import Path

import pytest
from support.files import read, write, write_weights
from support.gap import LINES, write_lists

from rerank.notices import Notices
from rerank.pipeline import Lists, Reports, decode


def written(lists: Lists, weights: dict[str, float]) -> list[str]:
    """The lines of the list that decoding writes."""
    write_weights("w.json", weights)
    decode(lists, "w.json", "out", reports=Reports("out.kbest"), notices=Notices())
    return read("out.kbest")


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lists:
    """Lists in the current folder; the third sentence has no candidates."""
    monkeypatch.chdir(tmp_path)
    write_lists()
    write("values", map(str, (3, 2, 1, 6, 5, 4)))
    return Lists("dev.kbest", "dev.docs", score_files={"scores": (("qe", Path("values")),)})


def test_features_of_scorers_and_new_totals_stand_in_the_lines(lists: Lists) -> None:
    found = written(lists, {"LM0": 0.5, "qe": 2.0})
    for line, old, value in zip(found, LINES, (3, 2, 1, 6, 5, 4), strict=True):
        number, text, features, total = line.split(" ||| ")
        assert [number, text] == old.split(" ||| ")[:2]
        label, first, name, second = features.split()
        assert (label, name, float(second)) == ("LM0=", "qe=", value)
        assert float(total) == 0.5 * float(first) + 2.0 * value


def test_json_lines_have_documents_without_candidates_too(lists: Lists) -> None:
    candidates = [{"text": "a b", "features": {"f": 1.0}}]
    rows = [{"document": "x", "candidates": candidates}, {"document": "y", "candidates": []}]
    write("l.jsonl", map(json.dumps, rows))
    found = [json.loads(line) for line in written(Lists("l.jsonl"), {"f": 1.0})]
    assert [(one["document"], len(one["candidates"])) for one in found] == [("x", 1), ("y", 0)]
