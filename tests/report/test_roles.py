"""Roles of metrics in tuning, and where they are shown."""

import csv
from io import StringIO

from support.evaluations import evaluated

from rerank.report.roles import with_roles


def test_every_metric_is_optimised_or_held_out() -> None:
    _, _, plain = evaluated(detokenise=True)
    found = with_roles(plain, "corpus chrF2", {"chrf"})
    for system in found.systems:
        for scores in (system.metrics, system.detokenised):
            roles = {name: score.role for name, score in scores.items()}
            assert roles == {"bleu": "held out", "chrf": "optimised", "ter": "held out"}
    text = found.to_text()
    first, second, third = (block.splitlines()[:2] for block in text.split("\n\n")[:3])
    assert first[0].split()[1] == "BLEU"
    assert first[1].split()[:2] == ["(held", "out)"]
    assert second[1].split()[0] == "(optimised)"
    assert third[1].split()[:3] == ["(held", "out)", "(BLEU)"]
    assert "\noptimised: in the objective of tuning, corpus chrF2; held out: not in it\n" in text
    assert "\nchrF2 (optimised)  system.1" in found.to_text(tests=True)
    assert found.to_markdown().splitlines()[0].count("(held out)") == 2
    rows = list(csv.DictReader(StringIO(found.to_tsv()), delimiter="\t"))
    assert [rows[1][f"{name}_role"] for name in ("bleu", "chrf")] == ["held out", "optimised"]


def test_without_an_objective_nothing_is_said() -> None:
    _, _, plain = evaluated()
    assert "held out" not in plain.to_text(tests=True)
    assert "role" not in plain.to_tsv()
    assert plain.to_dict()["objective"] is None
