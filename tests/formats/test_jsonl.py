"""JSON lines with candidates: usual spellings, and what is kept of a file."""

import json

import numpy as np
import pytest
from support.reading import features, rows_of, texts

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import documents_of
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats.jsonl import JsonLines
from rerank.notices import Notices

LIST = """{"document": "d", "source": "licht", "candidates": [\
{"text": "light", "score": -1, "features": {"lp": -2, "TM0": [1, 2]}, "model": "m"}, \
{"text": "lights", "score": -3, "features": {"TM0": [3, 4], "lp": -5}, \
"sparse": {"t_a": 1}}]}
{"document": "d", "source": "x", "candidates": []}
{"document": "e", "candidates": [{"text": "y", "score": 0, "features": {"lp": 1, "TM0": [2, 3]}}]}
"""


def kbest_of(text: str, n: int) -> KBest:
    rows = JsonLines().read(text.encode().splitlines(), Notices(), source="f", clip=None)
    (found,) = documents_of(rows, Documents.one(n), Notices(), source="f")
    return found


def test_candidates_have_texts_totals_and_features() -> None:
    rows = rows_of(JsonLines(), LIST)
    assert texts(rows) == ["light", "lights", "y"]
    assert rows.sentences.tolist() == [0, 0, 2]
    assert rows.totals.tolist() == [-1, -3, 0]
    assert features(rows) == {"lp": [-2, -5, 1], "TM0": [1, 2, 3, 4, 2, 3]}
    assert [rows.sparse.row(row) for row in range(3)] == [{}, {"t_a": 1.0}, {}]


@pytest.mark.parametrize(
    "text",
    [
        '{"candidates": [{"text": "a", "score": -1}]}',
        '{"translations": ["a"], "scores": [-1]}',
        '{"prompt": "x", "outputs": [{"text": "a", "cumulative_logprob": -1, "index": 0}]}',
        '{"src": "x", "hypotheses": [{"hypothesis": "a", "logprob": -1}]}',
        '{"choices": [{"message": {"role": "assistant", "content": "a"}, "score": -1}]}',
        '{"predictions": ["a"], "sequences_scores": [-1]}',
        '{"generations": [{"generated_text": "a", "log_prob": -1}]}',
    ],
)
def test_usual_spellings_are_read(text: str) -> None:
    assert JsonLines().detect([text.encode()])
    rows = rows_of(JsonLines(), text)
    assert (texts(rows), features(rows), rows.totals.tolist()) == (["a"], {"score": [-1]}, [-1])


def test_documents_and_sources_are_beside_the_lists() -> None:
    found = JsonLines().beside(LIST.encode().splitlines(), Notices(), source="f")
    assert list(found) == [(0, b"d", b"licht"), (1, b"d", b"x"), (2, b"e", None)]


def test_other_keys_are_written_as_they_came_with_what_is_new() -> None:
    kbest = kbest_of(LIST, 3)
    added = np.array([[0.5], [0.25], [0.125]])
    written = JsonLines().write(kbest, ["new"], added, np.array([7.0, 8, 9]))
    first, second, third = map(json.loads, written)
    assert (first["document"], first["source"]) == ("d", "licht")
    assert first["candidates"][0] == {
        "text": "light",
        "score": 7.0,
        "features": {"lp": -2.0, "TM0": [1.0, 2.0], "new": 0.5},
        "model": "m",
    }
    assert first["candidates"][1]["sparse"] == {"t_a": 1.0}
    assert (second["id"], second["candidates"]) == (1, [])
    assert third["document"] == "e"


def test_names_become_those_that_moses_reads() -> None:
    notices = Notices()
    text = '{"candidates": [{"text": "a", "features": {"lm_score": 1, "2nd": 2}}]}'
    rows = rows_of(JsonLines(), text, notices=notices)
    assert features(rows) == {"lmscore": [1], "F2nd": [2]}
    assert notices.lines() == [
        "2 x feature renamed to letters and digits: lm_score → lmscore, 2nd → F2nd, first at f:1"
    ]


def test_ids_are_numbers_of_sentences() -> None:
    text = '{"id": 4, "candidates": ["a"]}\n{"id": 7, "candidates": ["b"]}\n'
    assert rows_of(JsonLines(), text).sentences.tolist() == [4, 7]
    named = '{"id": "x", "candidates": ["a"]}\n{"id": "y", "candidates": ["b"]}\n'
    assert rows_of(JsonLines(), named).sentences.tolist() == [0, 1]


ONE = '{"candidates": [{"text": "a", "features": {"lp": 1}}]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE + ONE.replace("lp", "lq"), "f:2: expected 1 feature values as the first .*lp has 0"),
        (ONE.replace("1", "NaN"), "f:1: expected a finite number for lp"),
        (ONE.replace("1", "-Infinity"), "f:1: .*--clip-inf"),
        (ONE.replace("1", "1e400"), "f:1: expected a finite number for lp"),
        (ONE.replace("1", '"1"'), "f:1: expected a number for lp"),
        (ONE.replace("1", "true"), "f:1: expected a number for lp"),
        (ONE.replace("lp", "_"), "f:1: expected a feature name with letters"),
        (ONE.replace('"lp": 1', '"l_p": 1, "lp": 2'), "f:1: expected features that differ"),
        ('{"candidates": 3}', "f:1: expected a list"),
        ('{"text": "a"}', "f:1: expected a key 'candidates'"),
        ('{"candidates": [3]}', "f:1: expected a candidate with a text"),
        ('{"candidates": [{"score": 3}]}', "f:1: expected a candidate's key 'text'"),
        ('{"candidates": ["a"], "scores": [1, 2]}', "f:1: expected a list of 1 numbers"),
        ('{"candidates": [{"text": "a", "score": "x"}]}', "f:1: expected a number for"),
        ('{"id": -1, "candidates": ["a"]}', "f:1: expected a number from 0"),
        ('{"id": 2147483648, "candidates": ["a"]}', "f:1: expected a number from 0"),
        ('{"candidates": [{"text": "a", "features": [1]}]}', "f:1: expected an object at"),
        ('{"candidates": [{"text": "a", "sparse": [1]}]}', "f:1: expected an object at"),
        ('{"candidates": [{"text": "a", "sparse": {"a_b": "x"}}]}', "f:1: expected a number"),
    ],
    ids=range(19),
)
def test_faults_are_said_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        rows_of(JsonLines(), text)
