"""What a run adds to somebody's scorer: shapes, caching, time, and errors that name the place."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.lists import kbest, kbest_without_candidates

from decoders.arrays import Unary
from decoders.batching import conditional_scores
from decoders.problem import DocumentProblem
from rerank.cache import Cache
from rerank.corpus.document import Document
from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.scorers import FeatureSource
from rerank.scorers.plugin import PluginScorer

LISTS = [["a b", "a"], [], ["c d e", "c", ""]]


class Repeats:
    """A scorer of order 1 as its author writes it: words that the sentence before has as well."""

    order = 1
    digest = "1"

    def __init__(self) -> None:
        self.calls = 0

    def score(self, document: Document) -> list[Any]:
        self.calls += 1
        matrices: list[Any] = []
        before = [""]
        for texts in document.texts:
            matrices.append(
                [[len({*a.split()} & {*b.split()}) for b in texts] for a in before] if texts else []
            )
            before = texts or before
        return matrices


class Custom:
    def __init__(self, order: Any, answer: Callable[[Document], Any]) -> None:
        self.order, self.score = order, answer


def lengths(document: Document) -> list[list[int]]:
    return [[-len(text.split()) for text in sentence] for sentence in document.texts]


def scores(source: FeatureSource, path: Sequence[int]) -> list[list[float]]:
    problem = source.score([("talk", kbest(LISTS))])[0].problem
    return [own.tolist() for own in conditional_scores(problem, path)]


def test_a_function_is_a_scorer_of_order_0() -> None:
    source = PluginScorer("short", lengths)
    assert (source.order, source.error, source.passes(9)) == (0, 0.0, 1.0)
    assert scores(source, (0, 0)) == [[-2, -1], [-3, -1, 0]]
    assert source.score([("talk", kbest(LISTS))])[0].columns.shape == (5, 0)
    assert source.report().startswith("short: 2 documents scored in ")
    assert source.seconds > 0


def test_matrices_follow_the_nearest_earlier_sentence_that_has_candidates() -> None:
    lists = [["a b", "c"], [], ["c", "a b"]]
    source = PluginScorer("again", Repeats())
    (problem,) = (one.problem for one in source.score([("talk", kbest(lists))]))
    assert problem.order == 1
    assert problem.pairwise(1).tolist() == [[0, 2], [1, 0]]


def test_a_problem_of_any_order_is_searched_as_it_is() -> None:
    arrays = [np.array([1.0, 2]), np.array([3.0, 4, 5])]
    source = PluginScorer("own", Custom(None, lambda document: Unary(arrays)))
    assert (source.order, scores(source, (0, 1))) == (None, [[1, 2], [3, 4, 5]])


def test_a_document_without_candidates_has_no_scores() -> None:
    gaps = kbest_without_candidates(2)
    for author in (lengths, Repeats()):
        assert PluginScorer("x", author).score([("gaps", gaps)])[0].problem.lengths == ()


def raising(document: Document) -> list[Any]:
    raise KeyError("no\nsuch word")


FAULTS = [
    (0, lambda d: [[0, 0], []], "expected scores of 3 sentences, those without candidates inc"),
    (
        0,
        lambda d: [[0, 0], [], [0, 0]],
        "sentence 2 (counted from 0): expected scores of shape (3,)",
    ),
    (0, lambda d: [[0, 0], [], [0, 0, "é"]], "sentence 2 (counted from 0): expected scores, found"),
    (0, lambda d: [[0, math.nan], [], [0] * 3], "sentence 0, candidate 1 (counted from 0): expec"),
    (0, lambda d: [[0, 0], [], [0, 0, math.inf]], "sentence 2, candidate 2 (counted from 0): expe"),
    (0, lambda d: None, "expected a list of arrays from a scorer of order 0, found NoneType"),
    (0, raising, "expected scores, found KeyError at test_plugin.py:"),
    (
        1,
        lambda d: [[[0, 0]], [], [[0, 0, 0]]],
        "sentence 2 (counted from 0): expected scores of sh",
    ),
    (
        2,
        lambda d: [[0, 0], [], [0] * 3],
        "expected a DocumentProblem from a scorer of order 2, fou",
    ),
]


@pytest.mark.parametrize(("order", "answer", "message"), FAULTS)
def test_a_fault_is_one_line_with_scorer_document_sentence(
    order: int | None, answer: Callable[[Document], Any], message: str
) -> None:
    source = PluginScorer("own", Custom(order, answer))
    with pytest.raises(RerankError) as fault:
        conditional_scores(source.score([("talk", kbest(LISTS))])[0].problem, (0, 0))
    told = str(fault.value)
    assert told.startswith("scorer 'own', document 'talk'")
    assert message in told
    assert "\n" not in told
    assert fault.value.exit_code == 1


@pytest.mark.parametrize("author", [3, Custom(-1, lengths), Custom("1", lengths)])
def test_what_is_no_scorer_is_a_usage_error(author: Any) -> None:
    with pytest.raises(UsageError, match="scorer 'x': expected"):
        PluginScorer("x", author)


def test_scores_of_a_scorer_with_a_digest_are_cached_by_the_texts(tmp_path: Path) -> None:
    cache, author = Cache(tmp_path, Notices(), 10**9), Repeats()
    first = PluginScorer("again", author, cache=cache, identity=("p:Repeats", "x"))
    expected = scores(first, (0, 1))
    second = PluginScorer("again", author, cache=cache, identity=("p:Repeats", "x"))
    assert second.remembers(kbest(LISTS))
    assert scores(second, (0, 1)) == expected
    assert (author.calls, second.report()) == (1, "again: 1 documents from the cache")
    shorter = kbest([["a b"], [], ["c d e", "c", ""]])  # scores may depend on the whole list
    assert not second.remembers(shorter)


@pytest.mark.parametrize("change", ["digest", "identity", "no digest"])
def test_scores_are_not_taken_from_another_scorer(change: str, tmp_path: Path) -> None:
    cache, author, other = Cache(tmp_path, Notices(), 10**9), Repeats(), Repeats()
    scores(PluginScorer("again", author, cache=cache, identity=("p:Repeats", "x")), (0, 0))
    other.digest = {"digest": "2", "no digest": None}.get(change, "1")  # type: ignore[assignment]
    identity = ("p:Repeats", "y" if change == "identity" else "x")
    source = PluginScorer("again", other, cache=cache, identity=identity)
    assert not source.remembers(kbest(LISTS))
    scores(source, (0, 0))
    assert other.calls == 1
    assert (cache.saved == 1) == (change == "no digest")


def test_measuring_time_neither_counts_nor_fails() -> None:
    source = PluginScorer("short", lengths)
    trial = source.forgetful()
    assert scores(trial, (0, 0)) == [[-2, -1], [-3, -1, 0]]
    assert (source.scored, source.seconds) == (0, 0.0)
    broken = PluginScorer("short", Custom(1, raising)).forgetful()
    problem: DocumentProblem = broken.score([("talk", kbest(LISTS))])[0].problem
    assert (problem.order, list(problem.lengths)) == (1, [2, 3])
