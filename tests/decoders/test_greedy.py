"""Greedy search: best candidate after what was chosen."""

from __future__ import annotations

import numpy as np

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.greedy import greedy
from decoders.problem import Path


def test_it_takes_the_best_candidate_after_the_last_choice() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 1.0], [9, 9]])])
    assert greedy(problem) == Path((0, 1), 2.0)


def test_it_follows_the_whole_history() -> None:
    tables = [np.array([0, 1.0]), np.zeros((2, 2)), np.zeros((2, 2, 3))]
    tables[2][1, 0] = [0, 0, 5]
    assert greedy(HistoryTable(tables)) == Path((1, 0, 2), 6.0)


def test_equal_scores_go_to_the_first_candidate() -> None:
    assert greedy(Unary([np.zeros(3), np.array([0, 2.0, 2])])) == Path((0, 1), 2.0)


def test_when_every_path_is_impossible_first_candidates_are_kept() -> None:
    problem = Unary([np.array([0, 1.0]), np.full(2, -np.inf), np.array([0, 1.0])])
    assert greedy(problem) == Path((0, 0, 0), -np.inf)


def test_a_long_document_of_order_0_is_decoded_sentence_by_sentence() -> None:
    scores = np.random.default_rng(1).integers(-9, 9, size=(1000, 7)).astype(np.float32)
    path = greedy(Unary(list(scores)))
    assert path.choices == tuple(scores.argmax(axis=1).tolist())
    assert path.score == scores.max(axis=1).sum(dtype=np.float64)


def test_float32_scores_are_summed_in_float64() -> None:
    scores = np.full(1, 0.1, dtype=np.float32)
    assert greedy(Unary([scores] * 3)).score == sum([float(scores[0])] * 3)
