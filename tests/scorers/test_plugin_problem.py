"""A problem that somebody's scorer made: its own answers, and faults that name their place."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem, Floats, UnsuitedDecoder
from decoders.reversal import own_scores
from decoders.search import decode
from rerank.corpus.document import Candidate, Document
from rerank.errors import RerankError
from rerank.scorers.plugin import PluginScorer

RNG = np.random.default_rng(3)
PAIRS = Pairwise([-RNG.integers(0, 64, shape) / 8 for shape in ((1, 2), (2, 3), (3, 2))])


def source(problem: DocumentProblem, order: int | None) -> PluginScorer:
    scorer: Any = SimpleNamespace(order=order, score=lambda document: problem)
    return PluginScorer("own", scorer)


def checked(problem: DocumentProblem, counts: tuple[int, ...], order: int | None) -> Any:
    """Sentence 1 of the document has no candidates."""
    lists: list[list[Candidate]] = [[("", {})] * k for k in (counts[0], 0, *counts[1:])]
    return source(problem, order).document_problem(Document("talk", lists))


@pytest.mark.parametrize("name", ["greedy", "viterbi", "beam", "survivors", "sweeps"])
def test_searches_find_the_same_paths(name: str) -> None:
    found = decode(checked(PAIRS, (2, 3, 2), 1), name)
    assert found == decode(PAIRS, name)


def test_answers_are_those_of_the_problem() -> None:
    own = checked(PAIRS, (2, 3, 2), 1)
    assert (own.lengths, own.order, own.causal) == ((2, 3, 2), 1, True)
    for t in range(3):
        np.testing.assert_array_equal(own.pairwise(t), PAIRS.pairwise(t))
    paths = np.array([[0, 1, 1], [1, 2, 0]])
    np.testing.assert_array_equal(own.rescore(paths, 1, 1), PAIRS.rescore(paths, 1, 1))
    np.testing.assert_array_equal(own.average(None, np.ones((1, 3))), [0, 1, 2])
    assert checked(Unary([np.ones(2)]), (2,), 0).unary(0).tolist() == [1, 1]


class Acausal(Pairwise):
    """Scores that depend on the next sentence, too."""

    causal = False

    def scores_within(self, choices: Sequence[int]) -> list[Floats]:
        return [np.full(k, float(sum(choices) + t)) for t, k in enumerate(self.lengths)]


def test_scores_within_a_path_are_those_of_the_scorer() -> None:
    own = checked(Acausal([np.zeros((1, 2)), np.zeros((2, 3))]), (2, 3), 1)
    assert [row.tolist() for row in own_scores(own, [1, 2])] == [[3, 3], [4, 4, 4]]


class Late(Unary):
    """Scores that turn out wrong inside the search."""

    def extend(self, states: Any, t: int) -> Any:
        if t == 0:
            return super().extend(states, t)
        return [1, 2] if self.scores[0][0] else 1 / 0, None


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Late([np.zeros(2), np.zeros(3)]), "sentence 2 (counted from 0): expected scores, found Z"),
        (Late([np.ones(2), np.zeros(3)]), "sentence 2 (counted from 0): expected scores of shape"),
        (
            Unary([np.zeros(2), np.array([0, 0, np.nan])]),
            "sentence 2, candidate 2 (counted from 0): expected a number or -inf",
        ),
    ],
    ids=["exception", "shape", "NaN"],
)
def test_a_fault_inside_a_search_names_the_sentence_of_the_document(
    problem: DocumentProblem, message: str
) -> None:
    own = checked(problem, (2, 3), None)
    _, successors = own.extend(own.initial(), 0)
    states = own.select(successors, np.array([0]), np.array([1]))
    with pytest.raises(RerankError) as fault:
        own.extend(states, 1)
    assert f"scorer 'own', document 'talk', {message}" in str(fault.value)


@pytest.mark.parametrize(
    ("counts", "order", "message"),
    [((2, 3, 3), 1, "lengths (2, 3, 3)"), ((2, 3, 2), 0, "of order 0, as the scorer states, fo")],
)
def test_a_problem_of_other_lists_or_of_a_higher_order_is_refused(
    counts: tuple[int, ...], order: int, message: str
) -> None:
    with pytest.raises(RerankError) as fault:
        checked(PAIRS, counts, order)
    assert message in str(fault.value)


def test_what_a_problem_cannot_do_stays_a_matter_of_the_decoder() -> None:
    with pytest.raises(UnsuitedDecoder, match="merge by max"):
        DocumentProblem.average(checked(PAIRS, (2, 3, 2), 1), None, np.ones((1, 2)))


def test_time_in_the_problem_is_counted() -> None:
    own = source(PAIRS, 1)
    problem = own.document_problem(Document("talk", [[("", {})] * k for k in (2, 3, 2)]))
    before = own.seconds
    problem.pairwise(0)
    assert own.seconds > before
