"""Tables of an evaluation with a row for each measure and system."""

import csv
from io import StringIO

import pytest
from scipy.stats import binomtest
from support.evaluations import TRUTH, N, evaluated

from rerank.report.evaluation_details import NAMES, ends, p_text


def test_small_p_values_keep_a_digit_and_missing_ones_are_empty() -> None:
    assert [p_text(p) for p in (None, 1.0, 0.04321, 2e-6)] == ["", "1.0000", "0.0432", "2e-06"]
    assert [ends(interval, "+.1f") for interval in (None, (-1.0, 2.55))] == ["", "-1.0 … +2.5"]


def test_all_tests_stand_in_a_table_of_their_own_that_says_what_each_is_of() -> None:
    _, _, found = evaluated()
    plain, text = found.to_text(), found.to_text(tests=True)
    tables, _, legend = plain.partition("\n\nBLEU: ")
    assert text.startswith(tables)
    assert legend in text
    header = text.splitlines().index(
        "metric    system      gain    sign-flip         paired      sign"
    )
    for line, (name, score) in zip(
        text.splitlines()[header + 3 :], found.systems[1].metrics.items(), strict=False
    ):
        assert score.p_values is not None
        p = score.p_values
        shown = [f"{one:.4f}" for one in (p.sign_flip or 0, p.bootstrap or 0, p.sign_test)]
        assert line.split() == [NAMES[name], "system.1", f"{score.difference:+.2f}", *shown]
    assert "sign-flip test p: that above; it is exact randomisation, which swaps" in text
    assert "\npaired bootstrap p: of the same gain, as sacrebleu computes it" in text
    rows = list(csv.DictReader(StringIO(found.to_tsv()), delimiter="\t"))
    ter = found.systems[1].metrics["ter"].p_values
    assert ter is not None
    assert float(rows[1]["ter_bootstrap_p"]) == ter.bootstrap
    assert float(rows[1]["ter_sign_test_p"]) == ter.sign_test
    assert float(rows[1]["sign_test_p"]) == float(rows[1]["bleu_sign_test_p"])


def test_the_sign_test_of_a_metric_counts_the_documents_that_it_finds_better() -> None:
    references, systems, found = evaluated()
    for name, score in found.systems[1].metrics.items():
        better = worse = 0
        for d in range(0, N, 3):
            base, ours = (
                TRUTH[name].corpus_score(s[d : d + 3], [r[d : d + 3] for r in references]).score
                for s in systems
            )
            sign = -1 if name == "ter" else 1
            better += sign * (ours - base) > 0
            worse += sign * (ours - base) < 0
        assert score.p_values is not None
        p = binomtest(better, better + worse).pvalue if better + worse else 1.0
        assert score.p_values.sign_test == pytest.approx(p, rel=1e-12)
