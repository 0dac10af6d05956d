"""Scores of systems under several metrics, of tokenised and of detokenised texts."""

import math

import pytest
from sacrebleu.metrics.bleu import BLEU
from support.evaluations import TRUTH, evaluated


@pytest.mark.parametrize("n_references", [1, 2])
def test_every_metric_is_that_of_sacrebleu(n_references: int) -> None:
    references, systems, found = evaluated(n_references)
    for lines, system in zip(systems, found.systems, strict=True):
        assert list(system.metrics) == ["bleu", "chrf", "ter"]
        for name, own in system.metrics.items():
            truth = TRUTH[name].corpus_score(lines, references)
            assert own.score == pytest.approx(truth.score, rel=1e-12)
            assert own.signature == str(TRUTH[name].get_signature())
    base, other = (system.metrics for system in found.systems)
    for name in base:
        assert base[name].difference is None
        assert other[name].difference == other[name].score - base[name].score
        low, high = other[name].interval or (math.nan, math.nan)
        assert low <= other[name].score <= high


def test_without_its_brevity_penalty_bleu_is_the_mean_of_the_precisions() -> None:
    references, systems, found = evaluated()
    for lines, system in zip(systems, found.systems, strict=True):
        precisions = TRUTH["bleu"].corpus_score(lines, references).precisions
        mean = math.exp(sum(map(math.log, precisions)) / 4)
        assert system.bleu_without_brevity_penalty == pytest.approx(mean, rel=1e-12)


def test_the_share_of_the_oracle_is_that_of_its_gain() -> None:
    _, _, found = evaluated(oracle=True)
    base, other = found.systems
    assert base.oracle_share is None
    assert found.oracle is not None
    assert other.oracle_share == (other.bleu - base.bleu) / (found.oracle.bleu - base.bleu)
    assert "share of" in found.to_text()


def test_detokenised_scores_stand_in_a_table_of_their_own() -> None:
    references, systems, found = evaluated(detokenise=True)
    text = found.to_text()
    for lines, system in zip(systems, found.systems, strict=True):
        truth = BLEU(tokenize="13a").corpus_score(lines, references)
        assert system.detokenised["bleu"].score == truth.score
        assert "tok:13a" in system.detokenised["bleu"].signature
        assert f"{system.detokenised['bleu'].score:.2f}" in text
    assert text.count("\ndetokenised ") == 1 + 3
    assert "\ndetokenised " not in evaluated()[2].to_text()
