"""Traces of choices: features and contributions by hand, margins and marginals by all paths."""

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lists import kbest_of_lines

from decoders.arrays import HistoryTable, Pairwise
from decoders.problem import DocumentProblem, Path
from decoders.result import SearchResult
from decoders.search import Options
from rerank.corpus.kbest import KBest
from rerank.pipeline.searching import Search, search_documents
from rerank.pipeline.trace_file import trace_lines
from rerank.pipeline.tracing import Trace, stated_error
from rerank.scorers import ZeroScores
from rerank.scorers.features import DocumentFeatures, FeatureSpace

SIZES = (3, 0, 2, 1, 4)  # the second sentence has no candidates
LENGTHS = tuple(size for size in SIZES if size)
WEIGHTS = np.array([0.5, 0.25, -0.5, 1.5, 2.0])
PATHS = list(product(*map(range, LENGTHS)))


def kbest(sparse: bool = False) -> KBest:
    tag = " tag_x= 2" if sparse else ""
    lines = (
        f"{t} ||| wörd {k} ||| LM0= {-k - t} TM0= {k / 8} {t / 4}{tag if k else ''} ||| 0"
        for t, size in enumerate(SIZES)
        for k in range(size)
    )
    return kbest_of_lines(lines, len(SIZES))


def document(problem: DocumentProblem, lists: KBest) -> DocumentFeatures:
    """Three features of the list, one of a scorer in context, and one of it that is static."""
    space = FeatureSpace.of(lists.labels, [ZeroScores("lm", ("lmoov",), 0)], total=False)
    static = np.column_stack([lists.dense, np.zeros(lists.n), np.arange(lists.n) / 4])
    sparse = lists.sparse.dot({"tag_x": 0.75})
    offsets = np.cumsum([0, *LENGTHS])
    return DocumentFeatures(
        "tälk", space, static, sparse, (problem,), offsets, np.flatnonzero(lists.counts)
    )


def pairs(seed: int) -> Pairwise:
    rng = np.random.default_rng(seed)
    shapes = zip((1, *LENGTHS), LENGTHS, strict=False)
    return Pairwise([rng.integers(-32, 0, shape) / 8 for shape in shapes])


def unbounded(seed: int) -> HistoryTable:
    rng = np.random.default_rng(seed)
    return HistoryTable([rng.integers(-32, 0, LENGTHS[: t + 1]) / 8 for t in range(len(LENGTHS))])


def score(one: DocumentFeatures, path: Sequence[int]) -> float:
    """Of a path, by features and weights of its own candidates."""
    return float((one.under(path)[one.rows(path)] @ WEIGHTS + one.sparse[one.rows(path)]).sum())


def traced(problem: DocumentProblem, how: Search, sparse: bool = False) -> list[dict[str, Any]]:
    lists = kbest(sparse)
    one = document(problem, lists)
    (found,) = search_documents([one], WEIGHTS, how)
    return lines_of(lists, one, found)


def lines_of(lists: KBest, one: DocumentFeatures, found: SearchResult) -> list[dict[str, Any]]:
    trace = Trace.of(one, WEIGHTS, found, (0.0,))
    written = list(trace_lines(lists, one, WEIGHTS, trace))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in written)
    return [json.loads(line) for line in written]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("problem", [pairs(1), unbounded(1)], ids=["order-1", "unbounded"])
def test_a_line_holds_the_features_of_the_choice_and_what_each_adds(
    problem: DocumentProblem, sparse: bool
) -> None:
    lists = kbest(sparse)
    one = document(problem, lists)
    (found,) = search_documents([one], WEIGHTS, Search("greedy"))
    lines = lines_of(lists, one, found)
    assert [line["sentence"] for line in lines] == [0, 2, 3, 4]
    assert {line["document"] for line in lines} == {"tälk"}
    assert [line["chosen"] for line in lines] == list(found.choices)
    total = 0.0
    for line, t, k in zip(lines, (0, 2, 3, 4), found.choices, strict=True):
        own = {"LM0": -k - t, "TM0_0": k / 8, "TM0_1": t / 4}
        features = line["features"]
        assert {name: features[name] for name in own} == own
        assert list(features) == ["LM0", "TM0_0", "TM0_1", "lm", "lmoov"]
        expected = {name: w * features[name] for name, w in zip(features, WEIGHTS, strict=True)}
        if sparse:
            expected["sparse"] = 1.5 if k else 0.0
        assert line["weighted"] == pytest.approx(expected)
        assert line["total"] == pytest.approx(sum(expected.values()))
        total += line["total"]
    assert total == pytest.approx(found.score)


@given(st.integers(0, 2**32))
def test_a_path_margin_is_that_of_the_best_paths_with_and_without_a_candidate(seed: int) -> None:
    problem = pairs(seed)
    one = document(problem, kbest())
    scores = {path: score(one, path) for path in PATHS}
    (found,) = search_documents([one], WEIGHTS, Search("greedy"))
    margins = Trace.of(one, WEIGHTS, found, (0.0,)).result.path_margins
    assert margins is not None
    for s, (choice, k) in enumerate(zip(found.choices, LENGTHS, strict=True)):
        through = [max(value for path, value in scores.items() if path[s] == c) for c in range(k)]
        others = [value for c, value in enumerate(through) if c != choice]
        expected = through[choice] - max(others) if others else np.inf
        assert margins[s] == pytest.approx(expected)


@given(st.integers(0, 2**32), st.sampled_from([pairs, unbounded]))
def test_a_margin_is_to_the_best_other_candidate_after_the_same_sentences(
    seed: int, kind: Any
) -> None:
    one = document(kind(seed), kbest())
    path = PATHS[seed % len(PATHS)]
    margins = Trace.of(one, WEIGHTS, SearchResult((Path(path, 0.0),)), (0.0,)).result.margins
    assert margins is not None
    for s, k in enumerate(LENGTHS):
        # other sentences before s are the same, so that the difference is that of sentence s
        rows = [int(one.rows((*path[:s], c, *path[s + 1 :]))[s]) for c in range(k)]
        totals = one.under(path)[rows] @ WEIGHTS + one.sparse[rows]
        others = np.delete(totals, path[s])
        expected = totals[path[s]] - others.max() if k > 1 else np.inf
        assert margins[s] == pytest.approx(expected)


@pytest.mark.parametrize("method", ["ffbs", "mbr"])
def test_marginals_of_order_one_are_sums_over_all_paths(method: str) -> None:
    problem, lists, alpha = pairs(2), kbest(), 0.75
    one = document(problem, lists)
    scores = np.array([alpha * score(one, path) for path in PATHS])
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    how = Search(method, Options(alpha=alpha))
    (found,) = search_documents([one], WEIGHTS, how, [lists])
    for s, line in enumerate(lines_of(lists, one, found)):
        for c, marginal in enumerate(line["marginals"]):
            chosen = [p for p, path in zip(probabilities, PATHS, strict=True) if path[s] == c]
            assert marginal == pytest.approx(sum(chosen))
        assert line["marginal"] == line["marginals"][line["chosen"]]


def test_what_does_not_exist_is_null() -> None:
    """Margins of an only candidate, of paths above order 1, marginals of no posterior."""
    lines = traced(unbounded(3), Search("greedy"))
    assert [line["margin"] is None for line in lines] == [False, False, True, False]
    assert all(line["path_margin"] is None for line in lines)
    assert all(line["marginal"] is line["marginals"] is None for line in lines)
    lines = traced(pairs(3), Search())
    assert [line["path_margin"] is None for line in lines] == [False, False, True, False]


def test_a_document_without_a_possible_path_is_traced_in_valid_json() -> None:
    matrices = [matrix.copy() for matrix in pairs(4).matrices]
    matrices[1][:] = -np.inf
    lines = traced(Pairwise(matrices), Search("smc", Options(alpha=1.0)))
    assert [line["chosen"] for line in lines] == [0, 0, 0, 0]
    assert lines[1]["total"] is lines[1]["features"]["lm"] is lines[1]["weighted"]["lm"] is None
    assert lines[1]["margin"] is lines[1]["path_margin"] is None
    assert all(line["marginals"] is None for line in lines)
    assert lines[0]["margin"] is not None


def test_two_equal_candidates_are_a_near_tie_where_scores_may_err() -> None:
    lists = kbest()
    matrices = [matrix.copy() for matrix in pairs(5).matrices]
    one = document(Pairwise(matrices), lists)
    (found,) = search_documents([one], WEIGHTS, Search())
    path = found.choices
    assert Trace.of(one, WEIGHTS, found, (1e-4,)).result.near_ties == 0
    other = (path[3] + 1) % 4
    matrices[3][:, other] = matrices[3][:, path[3]]
    one.static[one.rows((0, 0, 0, other))[3]] = one.static[one.rows(path)[3]]
    (again,) = search_documents([one], WEIGHTS, Search())
    assert Trace.of(one, WEIGHTS, again, (1e-4,)).result.near_ties == 1
    # without an error the rule of ties decides, always alike
    assert Trace.of(one, WEIGHTS, again, (0.0,)).result.near_ties == 0


def test_the_error_of_a_path_is_that_of_all_of_its_sentences_under_the_weights() -> None:
    one = document(pairs(6), kbest())
    assert stated_error(one, WEIGHTS, (2e-4,)) == pytest.approx(4 * 1.5 * 2e-4)
    assert stated_error(one, -WEIGHTS, (2e-4,)) == pytest.approx(4 * 1.5 * 2e-4)
    none = DocumentFeatures(
        "x", FeatureSpace((), (), 0, False), np.zeros((9, 0)), np.zeros(9), (), *one_and(one)
    )
    assert stated_error(none, np.zeros(0), ()) == 0.0


def one_and(one: DocumentFeatures) -> tuple[Any, Any]:
    return one.offsets, one.present
