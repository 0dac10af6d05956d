"""The numbers of a report for machines."""

import json

from support.reports import report_of


def test_the_numbers_are_those_of_the_parts() -> None:
    report = report_of(shown=3)
    found = report.to_dict()
    json.dumps(found, allow_nan=False)
    assert found["evaluation"] == report.evaluation.to_dict()
    assert found["explanation"] == report.explanation.to_dict()
    for one, written in zip(report.documents, found["documents"], strict=True):
        assert written["gain"] == one.gain == written["bleu"] - written["baseline_bleu"]
    assert [one["shown"] is not None for one in found["documents"]] == [True] * 3 + [False] * 9
