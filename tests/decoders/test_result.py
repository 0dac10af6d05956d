"""The record of a search: what follows from its paths and scores."""

import math

from decoders.problem import Path
from decoders.result import SearchResult


def test_choices_and_score_are_those_of_the_first_path() -> None:
    result = SearchResult((Path((1, 0), -2.0), Path((0, 0), -3.0)), best_score=-1.5)
    assert (result.choices, result.score, result.gap) == ((1, 0), -2.0, 0.5)


def test_without_a_possible_path_the_gap_is_zero_or_infinite_and_never_nan() -> None:
    impossible = (Path((0,), -math.inf),)
    assert SearchResult(impossible, best_score=-math.inf).gap == 0.0
    assert SearchResult(impossible, best_score=0.0).gap == math.inf
