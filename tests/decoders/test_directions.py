"""In which direction problems are searched."""

import numpy as np
import pytest
from support.problems import RightToLeft, random_problem, rng

from decoders.directions import Direction
from decoders.problem import DocumentProblem
from decoders.reversal import direction_of, reversed_problem
from decoders.weighted_sum import WeightedSum

LENGTHS = [2, 3, 2]
PARTS: dict[str, DocumentProblem] = {
    "order 0": random_problem(0, LENGTHS, rng(1)),
    "pairs": random_problem(1, LENGTHS, rng(1)),
    "later pairs": reversed_problem(random_problem(1, LENGTHS[::-1], rng(1))),
    "earlier": random_problem(None, LENGTHS, rng(1)),
    "earlier two": random_problem(2, LENGTHS, rng(1)),
    "later": reversed_problem(random_problem(None, LENGTHS[::-1], rng(1))),
    "later two": reversed_problem(random_problem(2, LENGTHS[::-1], rng(1))),
    "neighbours": RightToLeft([np.zeros(k) for k in LENGTHS], 1.0),
}


@pytest.mark.parametrize(
    ("names", "expected", "order"),
    [
        (["order 0"], "forward", 0),
        (["order 0", "pairs", "later pairs"], "forward", 1),
        (["earlier", "later pairs"], "forward", None),
        (["later"], "reversed", None),
        (["later two", "pairs", "order 0"], "reversed", 2),
        (["later", "later two", "later pairs"], "reversed", None),
        (["earlier", "later"], "both", None),
        (["earlier two", "later two"], "both", None),
        (["neighbours"], "both", None),
    ],
)
def test_the_direction_follows_from_what_sentences_depend_on(
    names: list[str], expected: str, order: int | None
) -> None:
    problem = WeightedSum([(1.0, PARTS[name]) for name in names])
    assert direction_of(problem) is Direction(expected)
    searched = reversed_problem(problem) if expected == "reversed" else problem
    assert searched.order == order


def test_scorers_without_weight_do_not_count() -> None:
    problem = WeightedSum([(1.0, PARTS["earlier"]), (0.0, PARTS["later"])])
    assert direction_of(problem) is Direction.FORWARD
    assert direction_of(reversed_problem(problem)) is Direction.REVERSED
