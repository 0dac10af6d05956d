import json
from itertools import pairwise

import pytest
from sacrebleu.metrics.bleu import BLEU
from support.metrics import drafts as edits

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.metrics.bleu import Bleu, Statistics
from rerank.metrics.oracle import Extremes
from rerank.report.evaluation import Evaluation, Text, evaluate
from rerank.report.metric_scores import PValues

PLAIN = Bleu()


def documents(n: int, sentences: int = 3) -> Documents:
    return Documents(
        ids=tuple(f"doc-{d}" for d in range(n)),
        starts=tuple(range(0, (n + 1) * sentences, sentences)),
    )


def text(name: str, lines: list[str]) -> Text:
    return Text(name, [line.encode() for line in lines])


def sentences(*references: Text) -> list[list[bytes]]:
    """The references of each sentence."""
    return [list(lines) for lines in zip(*(text.lines for text in references), strict=True)]


def drafts(n: int, n_texts: int, *, seed: int = 1) -> list[Text]:
    return [text(f"text.{i}", lines) for i, lines in enumerate(edits(n, n_texts, seed=seed))]


def strings(text: Text) -> list[str]:
    return [line.decode() for line in text.lines]


@pytest.mark.parametrize("n_references", [1, 3])
def test_scores_of_corpora_and_documents_are_sacrebleus(n_references: int) -> None:
    *references, baseline, system = drafts(36, n_references + 2)
    report = evaluate(documents(12), sentences(*references), [baseline, system], metric=PLAIN)
    for i, hypotheses in enumerate([baseline, system]):
        metric = BLEU(tokenize="none")
        truth = metric.corpus_score(strings(hypotheses), [strings(r) for r in references])
        assert report.systems[i].name == hypotheses.name
        assert report.systems[i].bleu == truth.score
        assert report.systems[i].length_ratio == truth.ratio
        assert report.systems[i].signature == str(metric.get_signature())
        for d, (start, end) in enumerate(pairwise(range(0, 37, 3))):
            truth = metric.corpus_score(
                strings(hypotheses)[start:end], [strings(r)[start:end] for r in references]
            )
            assert report.documents[d].id == f"doc-{d}"
            assert report.documents[d].sentences == 3
            assert report.documents[d].bleu[i] == truth.score
            assert report.documents[d].length_ratio[i] == truth.ratio


def test_documents_are_better_only_if_strictly_better() -> None:
    reference = text("reference", ["a b c d e", "f g h i j", "k l m n o", "p q r s t"])
    baseline = text("baseline", ["a b c d x", "f g h i x", "k l m n x", "p q r s x"])
    system = text("system", ["a b c d e", "f g h i y", "k l m x x", "p q r s x"])
    report = evaluate(documents(4, 1), sentences(reference), [baseline, system], metric=PLAIN)
    counts = report.systems[1].documents
    assert (counts.better, counts.equal, counts.worse) == (1, 2, 1)
    assert counts.increase_ratio == 0.25
    assert report.systems[0].documents.better is None


def test_difference_interval_and_p_value_are_those_of_the_difference() -> None:
    reference, baseline, system = drafts(36, 3)
    report = evaluate(documents(12), sentences(reference), [baseline, system], metric=PLAIN, seed=7)
    first, second = report.systems
    assert second.difference == second.bleu - first.bleu
    assert first.interval is not None
    assert first.interval[0] < first.bleu < first.interval[1]
    assert second.difference_interval is not None
    assert second.difference_interval[0] < second.difference < second.difference_interval[1]
    assert second.p_value is not None
    assert second.p_value * 2**12 == int(second.p_value * 2**12)


def test_a_system_is_judged_alike_in_any_company() -> None:
    reference, baseline, system, other = drafts(75, 4)
    alone = evaluate(documents(25), sentences(reference), [baseline, system], metric=PLAIN)
    beside = evaluate(documents(25), sentences(reference), [baseline, other, system], metric=PLAIN)
    assert alone.systems[1] == beside.systems[2]


def test_the_baseline_beside_itself_gains_nothing() -> None:
    reference, baseline = drafts(36, 2)
    same = evaluate(
        documents(12), sentences(reference), [baseline, baseline], metric=PLAIN
    ).systems[1]
    assert (same.difference, same.difference_interval, same.p_value) == (0, (0, 0), 1)
    assert same.documents.equal == 12
    assert same.p_values == PValues(1, 1, 1)


def test_one_document_has_no_interval_and_no_p_value() -> None:
    reference, baseline, system = drafts(3, 3)
    report = evaluate(documents(1), sentences(reference), [baseline, system], metric=PLAIN)
    assert report.systems[0].interval is None
    assert report.systems[1].difference_interval is None
    assert report.systems[1].p_value is None
    assert report.systems[1].p_values == PValues(None, None, 1)
    assert "p: not computed for fewer than 10 documents" in report.to_text()
    assert "bootstrap" not in report.to_text()


@pytest.mark.parametrize("n", [5, 7])
def test_texts_of_other_lengths_are_refused(n: int) -> None:
    """Where they are files, `pipeline.evaluate` names file and line first."""
    reference, other = text("ref", ["a"] * 6), text("hyp", ["a"] * n)
    for systems in ([reference, other], [other, other]):
        with pytest.raises(ValueError, match=f"argument 2 is|hypotheses of {n} sentences"):
            evaluate(documents(2), sentences(reference), systems, metric=PLAIN)


def test_no_documents_are_refused() -> None:
    nothing = text("empty", [])
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(Documents((), (0,)), [], [nothing], metric=PLAIN)


def report_with_oracle() -> Evaluation:
    reference, baseline, system, best, worst = drafts(36, 5)

    def rows(draft: Text) -> Statistics:
        return PLAIN.statistics([[line] for line in draft.lines], sentences(reference))

    return evaluate(
        documents(12),
        sentences(reference),
        [baseline, system],
        metric=PLAIN,
        extremes=Extremes(rows(best), rows(worst)),
    )


def test_systems_are_columns_where_rows_are_too_wide() -> None:
    report = report_with_oracle()
    rows, columns = (report.to_text(width).partition("\n\n")[0] for width in (200, 80))
    assert rows == report.to_text().partition("\n\n")[0]
    assert max(map(len, rows.splitlines())) > 80 >= max(map(len, columns.splitlines()))
    words = {word for word in rows.split() if not word.startswith("--")}
    assert words - {"better/equal/", "worse"} <= {*columns.split()}
    assert "first column" in report.to_text(80)


def test_json_has_the_promised_keys_and_unrounded_numbers() -> None:
    report = report_with_oracle()
    loaded = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert loaded["schema"] == 1
    baseline, system = loaded["systems"]
    assert set(baseline) == set(system)
    p_values = system["p_values"]
    assert set(p_values) == {"sign_flip", "bootstrap", "sign_test"}
    assert p_values["sign_flip"] == report.systems[1].p_value
    assert baseline["p_values"] is None
    assert system == {
        "name": "text.2",
        "bleu": report.systems[1].bleu,
        "length_ratio": report.systems[1].length_ratio,
        "signature": PLAIN.signature(1),
        "interval": list(report.systems[1].interval or ()),
        "difference": report.systems[1].difference,
        "difference_interval": list(report.systems[1].difference_interval or ()),
        "documents": {
            "better": report.systems[1].documents.better,
            "equal": report.systems[1].documents.equal,
            "worse": report.systems[1].documents.worse,
            "increase_ratio": report.systems[1].documents.increase_ratio,
            "p_value": report.systems[1].p_value,
        },
        "increase_ratio": report.systems[1].documents.increase_ratio,
        "p_value": report.systems[1].p_value,
        "p_values": p_values,
        "sign_test_p_value": p_values["sign_test"],
        "bleu_without_brevity_penalty": report.systems[1].bleu_without_brevity_penalty,
        "oracle_share": report.systems[1].oracle_share,
        "metrics": {
            "bleu": {
                "score": report.systems[1].bleu,
                "signature": PLAIN.signature(1),
                "interval": list(report.systems[1].interval or ()),
                "difference": report.systems[1].difference,
                "difference_interval": list(report.systems[1].difference_interval or ()),
                "p_value": report.systems[1].p_value,
                "p_values": p_values,
                "role": None,
            }
        },
        "detokenised": {},
        "scores": {},
        "word_classes": {},
    }
    assert baseline["p_value"] is None
    assert set(baseline["documents"].values()) == {None}
    assert len(loaded["documents"]) == 12
    assert loaded["documents"][3]["bleu"] == list(report.documents[3].bleu)
    assert loaded["oracle"]["bleu"] == report.oracle.bleu if report.oracle else False
    assert set(loaded["anti_oracle"]) == {"bleu", "length_ratio"}


def test_table_has_a_row_per_system_and_oracle_with_the_length_ratio_beside_bleu() -> None:
    report = report_with_oracle()
    lines = report.to_text().splitlines()
    system = report.systems[1]
    assert lines[0].split()[:3] == ["system", "BLEU", "95%"]
    assert [line.split()[0] for line in lines[3:7]] == ["text.1", "text.2", "oracle", "anti-oracle"]
    counts = system.documents
    cells = lines[4].split()
    assert [cells[1], cells[5], cells[6]] == [
        f"{system.bleu:.2f}",
        f"{system.length_ratio:.3f}",
        f"{system.difference:+.2f}",
    ]
    assert cells[-3] == f"{counts.better}/{counts.equal}/{counts.worse}"
    assert cells[-2] == f"{counts.increase_ratio:.1%}"
    assert cells[-1] == f"{system.p_value:.4f}"
    assert len({len(line) for line in lines[2:3] + lines[4:5]}) == 1  # the rule spans the row
    assert PLAIN.signature(1) in report.to_text()


def test_a_baseline_alone_is_reported_without_a_comparison() -> None:
    reference, baseline = drafts(36, 2)
    lines = evaluate(documents(12), sentences(reference), [baseline], metric=PLAIN).to_text()
    assert "p: " not in lines
    assert "increase" not in lines
