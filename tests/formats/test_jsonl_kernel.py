"""Forms of candidates that the compiled reader of JSON lines takes."""

import pytest

from rerank.formats.jsonl_kernel import Template, read_candidates


def test_lines_of_one_form_are_read_by_the_kernel() -> None:
    template = Template.of(b'{"text": "a", "score": -1.5}', "text", "score", "features")
    assert template is not None
    assert template.kinds == (-1, -2)
    blob = b'[{"text": "b \\" c", "score": 2}, {"text": "", "score": 0.1}]\n[{"text": 3}]'
    end = blob.index(b"\n")
    found = read_candidates(blob, [1, end + 2], [end, len(blob)], template)
    assert found.counts.tolist() == [2, -1]
    assert found.stops[0] == end - 1
    assert found.totals.tolist() == [2, 0.1]
    assert found.escaped.tolist() == [True, False]


@pytest.mark.parametrize(
    "candidate",
    [
        b'{"text": "a", "score": -1.5, "more": 1}',
        b'{"text": 1, "score": -1.5}',
        b'{"text": "a", "score": null}',
        b'{"text": "a", "score": 1, "features": {}}',
        b'{"text": "a", "score": 1, "features": {"a": {"b": 1}}}',
        b'{"text": "a", "score": 1, "features": {"a": [[1]]}}',
        b'{"text": "a", "score": [1]}',
        b'{"text": "a", "score": 1, "features": {"a": true}}',
    ],
)
def test_other_forms_are_left_to_the_general_reader(candidate: bytes) -> None:
    assert Template.of(candidate, "text", "score", "features") is None
