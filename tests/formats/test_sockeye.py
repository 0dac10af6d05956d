"""Sockeye's JSON: signs, factors, and objects that are faulty."""

import pytest
from support.reading import features, rows_of, texts

from rerank.errors import InputError
from rerank.formats.sockeye import Sockeye
from rerank.formats.table import detect
from rerank.notices import Notices

LIST = """{"score": 1.5, "scores": [[1.5], [1.75]], "sentence_id": 1, "translation": "a lamp", \
"translations": ["a lamp", "the lamp"]}
{"score": 0.5, "sentence_id": 2, "translation": "light"}
"""


def test_costs_are_read_as_log_probabilities() -> None:
    rows = rows_of(Sockeye(), LIST)
    assert texts(rows) == ["a lamp", "the lamp", "light"]
    assert rows.sentences.tolist() == [0, 0, 1]  # an n-best list of one has no `translations`
    assert features(rows) == {"logprob": [-1.5, -1.75, -0.5]}
    assert rows.totals.tolist() == [-1.5, -1.75, -0.5]
    assert (rows.line_numbers.tolist(), rows.file_lines.tolist()) == ([1, 2, 3], [1, 1, 2])


def test_factors_have_features_of_their_own() -> None:
    text = '{"sentence_id": "a", "translation": "x", "translations": ["x"], "scores": [[1, 2, 3]]}'
    assert features(rows_of(Sockeye(), text)) == {
        "logprob": [-1.0],
        "factor1": [-2.0],
        "factor2": [-3.0],
    }


def test_factors_of_a_single_translation_have_keys_of_their_own() -> None:
    single = '{"sentence_id": 1, "translation": "x", "score": 4, "factor1_score": 5}'
    several = (
        '{"sentence_id": 2, "translation": "y", "score": 1, "factor1_score": 2, '
        '"translations": ["y", "z"], "scores": [[1, 2], [3, 4]]}'
    )
    assert features(rows_of(Sockeye(), single)) == {"logprob": [-4.0], "factor1": [-5.0]}
    for text in (f"{single}\n{several}", f"{several}\n{single}"):
        found = features(rows_of(Sockeye(), text))
        assert sorted(zip(found["logprob"], found["factor1"], strict=True)) == [
            (-4.0, -5.0),
            (-3.0, -4.0),
            (-1.0, -2.0),
        ]


def test_it_is_recognised_before_other_json() -> None:
    lines = LIST.encode().splitlines()
    assert detect(iter(lines))[0].name == "sockeye"
    assert detect(iter(lines[1:]))[0].name == "sockeye"


def test_documents_may_be_carried_through() -> None:
    text = b'{"sentence_id": 1, "translation": "x", "score": 1, "doc_id": 7, "source": "y"}'
    assert list(Sockeye().beside([text], Notices(), source="f")) == [(0, b"7", b"y")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"translation": "x", "score": NaN}', "f:1: expected a finite number for logprob"),
        ('{"translation": "x", "score": Infinity}', "f:1: .*--clip-inf"),
        ('{"translation": "x", "score": "1"}', "f:1: expected numbers"),
        ('{"translation": "x", "score": true}', "f:1: expected numbers"),
        ('{"translation": "x", "score": []}', "f:1: expected a score of each"),
        ('{"translation": 1, "score": 1}', "f:1: expected a text"),
        ('{"translations": ["x"], "scores": [[1], [2]]}', "f:1: expected a score for each of 1"),
        ('{"translations": "x", "scores": 1}', "f:1: expected lists"),
        ('{"translation": "x", "score": 1, "score": 2}', "f:1: .*the key 'score' twice"),
        ('{"translation": "\\ud800", "score": 1}', "f:1: .*surrogate"),
        ('{"translation": "\\u0000", "score": 1}', "f:1: .*NUL"),
        ('{"translation": "x", "score": ' + "9" * 5000 + "}", "f:1: .*5000 digits"),
        ('{"translation": "x", "score": 1' + "0" * 350 + "}", "f:1: expected a finite number"),
        ("[" * 200_000, "f:1: expected a JSON object, found too deep a nesting"),
        ('{"translation": "x", "score": 1} {}', "f:1: expected one JSON object.*Extra data"),
        ("[1]", "f:1: expected a JSON object"),
    ],
    ids=range(16),
)
def test_faults_are_said_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        rows_of(Sockeye(), text)


def test_a_line_end_in_a_text_is_a_space() -> None:
    notices = Notices()
    rows = rows_of(Sockeye(), '{"translation": "a\\n b\\n", "score": 1}', notices=notices)
    assert texts(rows) == ["a b"]
    assert notices.lines() == ["1 x line end inside a text, read as a space, first at f:1"]
