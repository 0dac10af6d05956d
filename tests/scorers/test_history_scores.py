"""Scores by history: what is entered is found again, also by way of the cache's arrays."""

import numpy as np

from rerank.scorers.cached_scores import CachedScores, ListTexts
from rerank.scorers.histories import digest
from rerank.scorers.history_scores import HistoryScores

CACHED = ListTexts(b"a\nb\nc\nd\ne\n", np.array([2, 3]))
REQUESTED = ListTexts(b"a\nb\nc\nd\n", np.array([2, 2]))
ONE, TWO = digest(b"one"), digest(b"two")


def test_scores_return_from_the_arrays_and_serve_shorter_lists() -> None:
    table = HistoryScores(CachedScores(CACHED, CACHED, {}))
    assert not table.grown
    table.enter(0, [ONE], [np.array([1, 2], np.float32)])
    table.enter(1, [ONE, TWO], np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    assert table.grown
    arrays = table.arrays()
    for requested, k in ((CACHED, 3), (REQUESTED, 2)):
        again = HistoryScores(CachedScores(CACHED, requested, arrays))
        assert not again.grown
        assert again.stacked(1, [TWO, ONE]).tolist() == [[4, 5, 6][:k], [1, 2, 3][:k]]
        assert [again.has(0, ONE), again.has(0, TWO)] == [True, False]


def test_scores_of_fewer_candidates_are_not_enough() -> None:
    table = HistoryScores(CachedScores(REQUESTED, REQUESTED, {}))
    table.enter(1, [ONE], [np.array([1, 2], np.float32)])
    longer = HistoryScores(CachedScores(REQUESTED, CACHED, table.arrays()))
    assert not longer.has(1, ONE)
