"""A tuning set's pools and sums against what they are by definition."""

from dataclasses import replace

import numpy as np

from decoders.arrays import Pairwise
from rerank.corpus.labels import Label
from rerank.notices import Notices
from rerank.pipeline.searching import Search, search_documents
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.pools.tuning_set import TuningSet
from rerank.tuning.scale import fit_scale

SPACE = FeatureSpace((Label("LM0", 1), Label("x", 1)), (1,), 1, False)
PAIRS = [np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0, -5.0], [-6.0, -7.0, -8.0]])]
STATISTICS = np.arange(45).reshape(5, 9)
GAPS = np.array([[0, 0, 0, 0, 0, 0, 0, 0, 7]])


def tuning_set() -> TuningSet:
    """One document: lists of 2 and 3 candidates, and a gap whose reference has 7 words."""
    static = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0], [5.0, 0.0]])
    sparse = np.array([0.0, 0.5, 0.0, 0.0, 0.0])
    document = DocumentFeatures(
        "a", SPACE, static, sparse, (Pairwise(PAIRS),), np.array([0, 2, 5]), np.array([0, 2])
    )
    return TuningSet(((document,),), (STATISTICS,), GAPS)


def test_a_pool_holds_every_candidate_in_the_context_that_the_path_gives_it() -> None:
    pool = tuning_set().pool(((1, 0),), np.array([0, 1]), np.zeros(2))
    assert pool.offsets.tolist() == [0, 2, 5, 6]
    assert pool.features[:, 0].tolist() == [1, 2, 3, 4, 5, 0]
    assert pool.features[:, 1].tolist() == [-1, -2, -6, -7, -8, 0]
    assert pool.fixed.tolist() == [0, 0.5, 0, 0, 0, 0]
    assert pool.statistics[-1:].tolist() == GAPS.tolist()
    assert pool.n_documents == 1


def test_a_pool_is_made_once_where_no_path_changes_it() -> None:
    contextual = tuning_set()
    tuned, start = np.array([0]), np.array([0.0, 1.0])
    (document,) = contextual.documents
    alone = replace(document, problems=(), space=FeatureSpace(SPACE.labels, (), 2, False))
    static = TuningSet(((alone,),), (STATISTICS,), GAPS)
    first, second = ((0, 0),), ((1, 2),)
    assert static.pool(first, tuned, start) is static.pool(second, tuned, start)
    assert static.pool(first, tuned, start) is not static.pool(first, tuned, 2 * start)
    assert static.pool(first, tuned, start) is not static.pool(first, np.array([1]), start)
    changed = (
        contextual.pool(first, tuned, start).fixed != contextual.pool(second, tuned, start).fixed
    )
    assert changed.tolist() == [False, False, True, True, True, False]


def test_columns_that_are_not_tuned_count_with_their_weight() -> None:
    pool = tuning_set().pool(((0, 0),), np.array([1]), np.array([10.0, 0.0]))
    assert pool.features.shape == (6, 1)
    assert pool.fixed.tolist() == [10, 20.5, 30, 40, 50, 0]


def test_the_sum_of_a_path_counts_gaps_as_empty_lines() -> None:
    sums = tuning_set().sums(((1, 2),))
    assert sums.tolist() == (STATISTICS[1] + STATISTICS[4] + GAPS).tolist()


def several() -> TuningSet:
    """Documents a to d in two groups; one more row of gaps is of documents without candidates."""
    (one,) = tuning_set().documents
    groups = [tuple(replace(one, name=name) for name in names) for names in ("abc", "d")]
    statistics = tuple(STATISTICS + 100 * d for d in range(4))
    return TuningSet(tuple(groups), statistics, np.arange(5)[:, None] * GAPS)


def test_some_of_the_documents_come_in_their_order_as_often_as_they_are_named() -> None:
    found = several().take([3, 1, 0, 1])
    assert [[document.name for document in group] for group in found.groups] == [
        ["a", "b", "b"],
        ["d"],
    ]
    assert [rows[0, 0] for rows in found.statistics] == [0, 100, 100, 300]
    assert found.gaps[:, 8].tolist() == [0, 7, 7, 21]
    path = ((0, 0), (1, 2), (0, 0), (1, 2))
    whole = several().sums(((0, 0), (1, 2), (0, 0), (1, 2)))
    assert found.sums(path)[[0, 1, 3]].tolist() == whole[[0, 1, 3]].tolist()
    assert whole[4].tolist() == (4 * GAPS[0]).tolist()


def test_groups_without_a_named_document_are_left_out() -> None:
    assert [len(group) for group in several().take([3]).groups] == [1]
    path = ((0, 1), (0, 1))
    sums = several().take([3, 3]).sums(path)
    assert sums[0].tolist() == sums[1].tolist() == several().sums(path * 2)[3].tolist()


def test_a_pool_knows_the_documents_of_its_lists() -> None:
    pool = several().pool(several().first, np.array([0, 1]), np.zeros(2))
    path = ((1, 2),) * 4
    chosen = np.array([[5 * d + 1, 5 * d + 4] for d in range(4)]).ravel()
    rows = np.concatenate([chosen, 20 + np.arange(5)])
    assert pool.n_documents == 5
    assert pool.sums(rows).tolist() == several().sums(path).tolist()


def test_chains_decode_as_the_search_does() -> None:
    for weights in np.random.default_rng(1).standard_normal((20, 2)):
        path = tuple(
            one.choices for one in search_documents(several().documents, weights, Search())
        )
        assert several().chains().decode(weights).tolist() == several().sums(path).tolist()


def test_the_scale_is_fitted_on_all_candidates_after_the_path() -> None:
    """The best of both lists is the last one; the path decides where it stands in one."""
    other = [PAIRS[0], np.array([[-3.0, -4.0, -5.0], [-9.0, -8.0, -7.0]])]
    whole = tuning_set()
    document = replace(whole.documents[0], problems=(Pairwise(other),))
    whole = replace(whole, groups=((document,),))
    weights = np.array([0.0, 1.0])
    for choice, second in enumerate(other[1].tolist()):
        scores = np.array([-1.0, -1.5, *second])
        truth = fit_scale(scores, np.array([0, 1, 0, 0, 1]), document.offsets, Notices())
        assert whole.scale(((choice, 0),), weights, Notices()) == truth
        assert (truth is None) == (choice == 0)
