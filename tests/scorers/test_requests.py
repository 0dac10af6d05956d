"""Histories of many documents scored together: once each, with the scores of each alone."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from lm.checkpoint import load_model
from rerank.corpus.kbest import KBest
from rerank.scorers.contextual import ContextualProblem
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.requests import scored_together

LISTS: list[list[tuple[str, dict[str, float]]]] = [
    [("the lamp", {}), ("it", {})],
    [("is lit", {}), ("burns", {}), ("one", {})],
]


def scorer_of(folder: Path) -> LanguageModel:
    return LanguageModel("lm", load_model(folder))


def problem_of(scorer: LanguageModel, name: str) -> ContextualProblem:
    (scored,) = scorer.score([(name, KBest.of(LISTS))])
    assert isinstance(scored.problem, ContextualProblem)
    return scored.problem


@pytest.mark.parametrize("name", ["ccdclm", "hrnnlm"])
def test_equal_histories_of_two_callers_are_scored_once(
    name: str, model_folders: Mapping[str, Path]
) -> None:
    scorer = scorer_of(model_folders[name])
    one, other = problem_of(scorer, "one"), problem_of(scorer, "other")
    start = one.initial()
    found = scored_together([(one, start), (one, start), (other, other.initial())])
    tokens = scorer.work.tokens
    assert tokens == 2 * 5  # `the lamp` and `it`, with their ends, in each problem once
    assert [len(one.summary or ()) for one in found] == [2, 2, 2]
    again = scored_together([(one, start)])
    assert scorer.work.tokens == tokens
    np.testing.assert_array_equal(again[0].scored, [-1])  # from the table


def test_scores_are_those_of_each_alone(model_folders: Mapping[str, Path]) -> None:
    scorer = scorer_of(model_folders["ccdclm"])
    both = [problem_of(scorer, name) for name in ("one", "other")]
    answers = ContextualProblem.extend_together([(p, p.initial(), 0) for p in both])
    for scores, _ in answers:
        alone = problem_of(scorer_of(model_folders["ccdclm"]), "alone")
        np.testing.assert_allclose(scores, alone.extend(alone.initial(), 0)[0], atol=1e-5)
