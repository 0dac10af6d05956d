"""The JSON of mlm-scoring."""

import json

import pytest
from support.reading import features, rows_of, texts

from rerank.errors import InputError
from rerank.formats.mlm_scoring import MlmScoring
from rerank.formats.table import detect

UTTERANCES = {
    "b": {
        "ref": "a lamp",
        "hyp_2": {"score": -2, "text": "lamp"},
        "hyp_10": {"score": -3, "text": "lamps"},
        "hyp_1": {"score": -1.5, "text": "a lamp"},
    },
    "a": {"ref": "x", "hyp_1": {"score": -1, "text": "x"}},
}


@pytest.mark.parametrize("indent", [None, 1])
def test_hypotheses_come_by_number_utterances_by_place(indent: int | None) -> None:
    text = json.dumps(UTTERANCES, indent=indent)
    assert detect(iter(text.encode().splitlines()))[0].name == "mlm-scoring"
    rows = rows_of(MlmScoring(), text)
    assert texts(rows) == ["a lamp", "lamp", "lamps", "x"]
    assert rows.sentences.tolist() == [0, 0, 0, 1]
    assert features(rows) == {"score": [-1.5, -2, -3, -1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 3}', "expected an object at 'a'"),
        ('{"a": {"hyp_1": {"score": 1}}}', "expected a score and a text at 'a' 'hyp_1'"),
        ('{"a": {"hyp_1": {"score": "x", "text": "y"}}}', "expected a number for score"),
        ('{"a": {"hyp_1"', "expected one JSON object"),
    ],
)
def test_faults_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^f:1: {message}"):
        rows_of(MlmScoring(), text)
