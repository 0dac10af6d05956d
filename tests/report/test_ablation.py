"""An ablation is an evaluation, with the numbers of lines that each context changes."""

import json

from support.evaluations import evaluated

from rerank.report.ablation import Ablation


def test_every_form_has_the_evaluation_and_its_systems_have_changed_lines() -> None:
    _, _, evaluation = evaluated()
    found = Ablation(evaluation, {"system.0": 0, "system.1": 1234})
    written = found.to_dict()
    assert [system.pop("changed") for system in written["systems"]] == [0, 1234]
    assert written == evaluation.to_dict()
    json.dumps(written, allow_nan=False)
    assert found.to_text().startswith(evaluation.to_text())
    assert "changed: system.0 0; system.1 1,234\n" in found.to_text()
    forms = (found.to_tsv(), found.to_latex(), found.to_markdown())
    assert forms == (evaluation.to_tsv(), evaluation.to_latex(), evaluation.to_markdown())
