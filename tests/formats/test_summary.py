"""Summaries of decodings are read back; other files are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from rerank.errors import InputError
from rerank.formats.summary import read_summary
from rerank.notices import Notices

DOCUMENT = {"id": "a", "score": -1.5, "baseline_score": -2, "gap": 0.0, "exact": True}
SUMMARY: dict[str, Any] = {
    **{"schema": 1, "signature": "rerank|v:0.1.0", "score": -1.5, "baseline_score": None},
    **{"gap": 0.0, "exact": True, "best": "optimum", "near_ties": 0, "documents": [DOCUMENT]},
}


def read(tmp_path: Path, content: str) -> dict[str, Any]:
    path = tmp_path / "summary.json"
    path.write_text(content)
    return read_summary(path, ["a", "b"], Notices())


def test_a_summary_is_read_back(tmp_path: Path) -> None:
    assert read(tmp_path, json.dumps(SUMMARY, indent=1)) == SUMMARY


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({name: ...}, "something else") for name in SUMMARY if name != "schema"),
        *(({name: "1"}, "something else") for name in ("score", "gap", "exact", "near_ties")),
        ({"documents": [{**DOCUMENT, "id": "c"}]}, "a document 'c'"),
        ({"documents": [{**DOCUMENT, "gap": "0"}]}, "something else"),
        ({"documents": 3}, "something else"),
        ({"signature": None}, "something else"),
    ],
)
def test_what_is_no_summary_of_the_documents_is_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    changed = {k: v for k, v in {**SUMMARY, **change}.items() if v is not ...}
    with pytest.raises(InputError, match=rf"summary.json: expected a summary .*{message}"):
        read(tmp_path, json.dumps(changed))


@pytest.mark.parametrize("content", ["", "[]", "3", "{", "[" * 100_000])
def test_other_content_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a summary"):
        read(tmp_path, content)
