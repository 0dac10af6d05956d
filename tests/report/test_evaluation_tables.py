"""Tables of an evaluation for papers and programs."""

import csv
import json
from io import StringIO

from support.evaluations import evaluated

from rerank.report.evaluation_tables import documents_table, score_lines


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
