"""Tables of an evaluation for papers and programs."""

import csv
import json
from io import StringIO

import pytest
from scipy.stats import binomtest
from support.evaluations import TRUTH, N, evaluated

from rerank.report.evaluation_tables import NAMES, documents_table, score_lines


def test_formats_for_papers_and_programs_hold_the_same_numbers() -> None:
    _, _, found = evaluated()
    other = found.systems[1]
    rows = list(csv.DictReader(StringIO(found.to_tsv()), delimiter="\t"))
    assert [row["system"] for row in rows] == ["system.0", "system.1"]
    assert float(rows[1]["ter"]) == other.metrics["ter"].score
    assert float(rows[1]["chrf_gain"]) == other.metrics["chrf"].difference
    assert (rows[0]["bleu_gain"], rows[0]["sign_test_p"]) == ("", "")
    assert found.to_latex().startswith("\\begin{tabular}")
    assert "\\toprule" in found.to_latex()
    lines = found.to_markdown().splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    for score in other.metrics.values():
        assert f"{score.score:.2f}" in lines[3]
        assert f"{score.score:.2f}" in found.to_latex()
    json.dumps(found.to_dict(), allow_nan=False)


def test_scores_alone_are_a_line_for_each_system_but_the_baseline() -> None:
    _, _, found = evaluated()
    other = found.systems[1].metrics
    assert score_lines(found, 3) == "\t".join(f"{s.score:.3f}" for s in other.values()) + "\n"


def test_the_table_of_documents_has_their_bleu_and_gains() -> None:
    _, _, found = evaluated()
    header, _, *lines = documents_table(found).splitlines()
    assert header.split() == ["document", "lines", "system.0", "system.1", "gain"]
    for line, document in zip(lines, found.documents, strict=True):
        base, other = document.bleu
        expected = [document.id, "3", f"{base:.2f}", f"{other:.2f}", f"{other - base:+.2f}"]
        assert line.split() == expected


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
