"""Histories of a document under a causal model: equal contexts are read once."""

from pathlib import Path

import numpy as np
import pytest
from support import causal
from support.lists import kbest

from lm.causal.folder import CausalModel, open_causal_model
from rerank.scorers.causal_lm import CausalLM
from rerank.scorers.causal_options import CausalOptions
from rerank.scorers.causal_problem import CausalProblem

LISTS = [["it", "the lamp", "it"], ["she is", "he"], ["no", "no sea"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return open_causal_model(causal.save(tmp_path_factory.mktemp("models") / "gpt"))


def problem(model: CausalModel, sentences: int | None = None) -> CausalProblem:
    source = CausalLM("gpt", model, CausalOptions(Path("gpt"), sentences))
    found = source.score([("evening", kbest(LISTS))])[0].problem
    assert isinstance(found, CausalProblem)
    return found


def test_histories_of_equal_texts_are_scored_once(model: CausalModel) -> None:
    own = problem(model)
    _, successors = own.extend(own.initial(), 0)
    read = own.engine.counts.nodes
    states = own.select(successors, np.array([0, 0]), np.array([0, 2]))
    scores, _ = own.extend(states, 1)
    np.testing.assert_array_equal(scores[0], scores[1])
    # the context without its last token, and the tree of the second list, both once
    (tree,) = own.texts.trees(1, own.context(1, (0,))[0])
    assert own.engine.counts.nodes - read == len(own.context(1, (0,))[0].ids) - 1 + len(tree)


def test_states_are_the_last_choices_of_a_window(model: CausalModel) -> None:
    for sentences, expected in ((None, (1, 0, 1)), (2, (0, 1))):
        own = problem(model, sentences)
        states = own.initial()
        for t, k in enumerate((1, 0, 1)):
            states = own.select((states, t), np.array([0]), np.array([k]))
        assert states == [expected]


def test_a_path_is_rescored_as_it_is_extended(model: CausalModel) -> None:
    own, total = problem(model), 0.0
    path, states = (1, 0, 1), own.initial()
    for t, k in enumerate(path):
        scores, successors = own.extend(states, t)
        total += float(scores[0, k])
        states = own.select(successors, np.array([0]), np.array([k]))
    (found,) = problem(model).rescore(np.array([path]), 0, 2)
    assert found == pytest.approx(total, abs=1e-5)
