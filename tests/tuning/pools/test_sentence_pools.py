"""Pools of sentences on a synthetic problem of order 1 decoded by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.mert.mert import MertSettings, optimise
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums, bleu_of
from rerank.tuning.pools.pool import Pool
from rerank.tuning.pools.sentence_pools import conditional_pools, one_pool
from rerank.tuning.rounds import BestRound, Round, tune_in_rounds

Choices = tuple[int, ...]
QUICK = MertSettings(random_starts=4, kicks=5)


@dataclass
class Chain:
    """Documents of T sentences with K candidates: one plain feature, one of pairs of neighbours."""

    seed: int
    n_documents: int = 4
    n_sentences: int = 4
    k: int = 3
    paths: list[tuple[Choices, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        shape = (self.n_documents, self.n_sentences, self.k)
        self.plain = rng.standard_normal(shape)
        self.pairs = rng.standard_normal((*shape[:2], self.k, self.k))
        length = rng.integers(6, 12, size=shape)
        totals = length[..., None] - np.arange(4)
        quality = 1 / (1 + np.exp(-self.plain - self.pairs.mean(axis=2)))
        matches = (totals * quality[..., None] ** np.arange(1, 5)).astype(np.int64)
        reference = np.full((*shape, 1), 9)
        self.statistics = np.concatenate([matches, totals, reference], axis=-1)

    @property
    def first(self) -> tuple[Choices, ...]:
        return ((0,) * self.n_sentences,) * self.n_documents

    def features(self, d: int, path: Choices) -> NDArray[np.float64]:
        """Features (T, K, 2) of a document's candidates after the choices of a path."""
        before = [0, *path[:-1]]
        pairs = self.pairs[d][np.arange(self.n_sentences), before]
        return np.stack([self.plain[d], pairs], axis=-1)

    def pool_under(self, paths: tuple[Choices, ...]) -> Pool:
        self.paths.append(paths)
        features = np.concatenate([self.features(d, p) for d, p in enumerate(paths)])
        n = self.n_documents * self.n_sentences * self.k
        statistics = self.statistics.reshape(n, 9)
        return Pool(np.arange(0, n + 1, self.k), features.reshape(n, 2), statistics, np.zeros(n))

    def decode(self, weights: NDArray[np.float64]) -> tuple[tuple[Choices, ...], NDArray[np.int64]]:
        """The best path of every document, by trying all, and its summed statistics (D, 9)."""
        places = np.arange(self.n_sentences)
        paths = []
        summed = np.zeros((self.n_documents, 9), dtype=np.int64)
        for d in range(self.n_documents):
            every = list(product(range(self.k), repeat=self.n_sentences))
            scores = [(self.features(d, p) @ weights)[places, p].sum() for p in every]
            paths.append(every[int(np.argmax(scores))])
            summed[d] = self.statistics[d][places, paths[-1]].sum(axis=0)
        return tuple(paths), summed


def find(pool: Pool, start: NDArray[np.float64]) -> Optimum:
    return optimise(pool, start, Notices(), names=["plain", "pairs"], settings=QUICK).best


def bleu(sums: Sums, weights: NDArray[np.float64]) -> float:
    return bleu_of(sums)


def chosen(pool: Pool, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Summed statistics (1, 9) of the best candidate of each list, which has three."""
    scores = (pool.features @ weights).reshape(-1, 3)
    best = scores.argmax(axis=1) + 3 * np.arange(len(scores))
    return np.asarray(pool.statistics[best].sum(axis=0, keepdims=True))


def rounds_of(chain: Chain, start: NDArray[np.float64]) -> tuple[BestRound, list[Round]]:
    seen: list[Round] = []
    rounds = conditional_pools(start, chain.first, chain.pool_under, chain.decode, find)
    return tune_in_rounds(rounds, 2, fixed=False, value=bleu, report=seen.append), seen


@pytest.mark.parametrize("seed", range(4))
def test_each_pool_is_scored_under_the_path_decoded_last(seed: int) -> None:
    chain = Chain(seed)
    _, seen = rounds_of(chain, np.array([0.5, 0.5]))
    decoded = [chain.decode(r.result.weights)[0] for r in seen[1:-1]]
    assert chain.paths == [chain.first, *decoded]


@pytest.mark.parametrize("seed", range(4))
def test_the_round_with_the_best_decoded_bleu_is_kept(seed: int) -> None:
    chain = Chain(seed)
    ended, seen = rounds_of(chain, np.array([0.5, 0.5]))
    assert [r.number for r in seen] == list(range(len(seen)))
    assert ended.best.result.bleu == max(r.result.bleu for r in seen)
    assert ended.best is next(r for r in seen if r.result.bleu == ended.best.result.bleu)
    for r in seen:
        np.testing.assert_array_equal(r.result.statistics, chain.decode(r.result.weights)[1])


def test_predictions_are_those_of_the_pool_and_round_zero_has_none() -> None:
    chain = Chain(1)
    _, seen = rounds_of(chain, np.array([0.5, 0.5]))
    assert seen[0].result.predicted is None
    np.testing.assert_array_equal(seen[0].result.weights, [0.5, 0.5])
    for paths, r in zip(chain.paths, seen[1:], strict=True):
        assert r.result.predicted is not None
        pool = Chain(1).pool_under(paths)
        assert r.result.predicted.bleu == Optimum.at(pool, r.result.weights).bleu
        np.testing.assert_array_equal(r.result.predicted.weights, r.result.weights)


def stopping(
    decoded_bleu: Callable[[int], int], features: Callable[[int], NDArray[np.float64]]
) -> tuple[str, list[Round]]:
    """Rounds on lists whose features and whose decoded matches change from call to call."""
    calls = {"pool": 0, "decode": 0}
    matches = np.array([[5, 4, 3, 2], [9, 8, 7, 6]])
    statistics = np.hstack([matches, np.tile([9, 8, 7, 6, 9], (2, 1))])

    def pool_under(path: int) -> Pool:
        calls["pool"] += 1
        return Pool(np.array([0, 2]), features(calls["pool"]), statistics, np.zeros(2))

    def decode(weights: NDArray[np.float64]) -> tuple[int, NDArray[np.int64]]:
        calls["decode"] += 1
        found = decoded_bleu(calls["decode"])
        return 0, np.array([[found] * 4 + [1000] * 4 + [1000]])

    seen: list[Round] = []
    rounds = conditional_pools(np.array([1.0, 0.0]), 0, pool_under, decode, find)
    ended = tune_in_rounds(rounds, 2, fixed=False, value=bleu, report=seen.append)
    return ended.reason, seen


def restless(call: int) -> NDArray[np.float64]:
    """The better candidate needs weights that turn with every call."""
    return np.array([[0.0, 0.0], [-1.0, 1.0] if call % 2 else [1.0, -1.0]])


def still(call: int) -> NDArray[np.float64]:
    return np.array([[0.0, 0.0], [1.0, 0.5]])


def test_rounds_stop_when_no_weight_moves() -> None:
    reason, seen = stopping(lambda call: call, still)
    moved = [
        np.abs(after.result.weights - before.result.weights).max()
        for before, after in pairwise(seen)
    ]
    assert reason == "no weight moves"
    assert moved[-1] < 1e-5
    assert all(distance >= 1e-5 for distance in moved[:-1])
    assert len(seen) <= 3


def test_rounds_stop_after_two_without_a_gain() -> None:
    gains = [100, 200, 300, 300, 250, 900]
    reason, seen = stopping(lambda call: gains[call - 1], restless)
    assert reason == "2 rounds without gain"
    assert [r.number for r in seen] == [0, 1, 2, 3, 4]


def test_a_complete_pool_takes_one_round_and_predicts_what_is_decoded() -> None:
    """A pool under one path, taken for itself: its lists decide alone."""
    chain, seen = Chain(2), list[Round]()
    pool, start = chain.pool_under(chain.first), np.array([0.5, 0.5])
    rounds = one_pool(start, pool, pool.decode, find, "enough")
    ended = tune_in_rounds(rounds, 2, fixed=False, value=bleu, report=seen.append)
    assert ended.reason == "enough"
    first, tuned = (r.result for r in seen)
    np.testing.assert_array_equal(first.statistics, chosen(pool, start))
    assert tuned.predicted is not None
    np.testing.assert_array_equal(tuned.statistics, chosen(pool, tuned.weights))
    assert tuned.bleu == tuned.predicted.bleu > first.bleu
