"""Enumeration: against a literal transcription of the definition and of the rule of ties."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import SEEDS, random_problem, rng

from decoders.arrays import HistoryTable, Unary
from decoders.exhaustive import MAX_PATHS, exhaustive
from decoders.problem import Path, UnsuitedDecoder


@given(lengths=st.lists(st.integers(1, 4), max_size=4), seed=SEEDS)
def test_it_lists_all_paths_by_score_and_then_read_from_the_last_sentence(
    lengths: list[int], seed: int
) -> None:
    problem = random_problem(None, lengths, rng(seed), [-np.inf, -1.0, -0.5, 0.0, 0.25])
    paths = []
    for choices in product(*map(range, lengths)):
        score = 0.0
        for t, table in enumerate(problem.tables):
            score += float(table[choices[: t + 1]])
        paths.append(Path(choices, score))
    paths.sort(key=lambda path: (-path.score, path.choices[::-1]))
    assert exhaustive(problem, n_best=300) == paths
    assert exhaustive(problem) == paths[:1]


def test_an_empty_document_has_the_empty_path() -> None:
    assert exhaustive(HistoryTable([]), n_best=2) == [Path((), 0.0)]


def test_a_long_document_with_one_candidate_each_has_one_path() -> None:
    assert exhaustive(Unary([np.array([0.5])] * 1000)) == [Path((0,) * 1000, 500.0)]


def test_a_million_paths_are_enumerated() -> None:
    problem = Unary([np.arange(10.0)] * 6)
    assert exhaustive(problem) == [Path((9,) * 6, 54.0)]
    assert MAX_PATHS == 10**6


def test_more_paths_are_refused_with_their_number() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"1,000,000 paths, this one has about 10\^2000"):
        exhaustive(Unary([np.zeros(100)] * 1000))


def test_a_list_of_no_paths_is_refused() -> None:
    with pytest.raises(ValueError, match="n_best >= 1"):
        exhaustive(Unary([]), n_best=0)
