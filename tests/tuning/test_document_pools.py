"""Pools that grow by decoding, on documents of which all paths are written out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.metrics.bleu import corpus_bleu
from rerank.notices import Notices
from rerank.tuning.ascent import Optimum
from rerank.tuning.document_pools import NEIGHBOURS, RADIUS, WIDEST, DocumentPools
from rerank.tuning.mert import Settings, optimise
from rerank.tuning.path_pool import PathPool, Paths
from rerank.tuning.pool import Pool
from rerank.tuning.rounds import Ended, Round, tune_in_rounds

QUICK = Settings(random_starts=2, kicks=3)
START = np.array([0.9, 0.1])
GAP = np.array([0, 0, 0, 0, 0, 0, 0, 0, 3])  # of each document


@dataclass
class Documents:
    """Documents of T sentences with K candidates: a plain feature, one of pairs of neighbours.

    decoded: the weights that were asked for, in order; fixed: standard deviation of a score of
    paths that is not tuned.
    """

    seed: int
    n_documents: int = 5
    n_sentences: int = 4
    k: int = 3
    fixed: float = 0.0
    decoded: list[NDArray[np.float64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        choices = np.array(list(product(range(self.k), repeat=self.n_sentences)))
        places = np.arange(self.n_sentences)
        before = np.concatenate([np.zeros((len(choices), 1), np.intp), choices[:, :-1]], axis=1)
        self.every = []
        for _ in range(self.n_documents):
            plain = rng.standard_normal((self.n_sentences, self.k))
            pairs = rng.standard_normal((self.n_sentences, self.k, self.k))
            quality = 1 / (1 + np.exp(-plain - pairs.mean(axis=1)))
            length = rng.integers(6, 12, (self.n_sentences, self.k))[..., None]
            totals = length - np.arange(4)
            matches = (totals * quality[..., None] ** np.arange(1, 5)).astype(np.int64)
            sentences = np.concatenate([matches, totals, np.full_like(length, 9)], axis=-1)
            features = [plain[places, choices], pairs[places, before, choices]]
            self.every.append(
                Paths(
                    choices,
                    np.stack([feature.sum(axis=1) for feature in features], axis=1),
                    sentences[places, choices].sum(axis=1),
                    self.fixed * rng.standard_normal(len(choices)),
                )
            )

    def decode(self, weights: NDArray[np.float64], n_best: int = 1) -> list[Paths]:
        """The best paths of every document, of all there are."""
        self.decoded.append(weights)
        orders = [np.argsort(-(d.features @ weights + d.fixed), kind="stable") for d in self.every]
        return [d.take(o[:n_best].tolist()) for d, o in zip(self.every, orders, strict=True)]

    def statistics(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Summed statistics (D, 9) of the best paths."""
        return np.array([GAP + paths.statistics[0] for paths in self.decode(weights)])

    def bleu(self, weights: NDArray[np.float64]) -> float:
        """Corpus BLEU of the best paths."""
        return float(corpus_bleu(self.statistics(weights).sum(axis=0)))

    def pools(self, seed: int = 1, spreads: tuple[float, float] = (1.0, 1.0)) -> DocumentPools:
        first = PathPool(
            tuple(d.take([0]) for d in self.every), np.tile(GAP, (self.n_documents, 1))
        )
        return DocumentPools(first, self.decode, find, np.array(spreads), self.fixed, seed)


def find(pool: Pool, start: NDArray[np.float64]) -> Optimum:
    return optimise(pool, start, Notices(), names=["plain", "pairs"], settings=QUICK).best


def rounds_of(
    documents: Documents, start: NDArray[np.float64] = START, seed: int = 1
) -> tuple[Ended, list[Round]]:
    seen: list[Round] = []
    pools, fixed = documents.pools(seed), documents.fixed > 0
    return tune_in_rounds(pools, start, fixed=fixed, report=seen.append), seen


@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_of_a_round_is_what_decoding_gives(seed: int) -> None:
    documents = Documents(seed)
    _, seen = rounds_of(documents)
    for r in seen:
        truth = documents.statistics(r.step.weights)
        np.testing.assert_array_equal(r.step.statistics, truth)
    for step in (r.step for r in seen[1:]):
        assert step.predicted is not None
        assert step.there is not None
        truth = documents.statistics(step.predicted.weights)
        np.testing.assert_array_equal(step.there, truth)


@pytest.mark.parametrize(("fixed", "short"), [(0.0, 0.01), (0.5, 0.6)])
@pytest.mark.parametrize("seed", range(4))
def test_it_comes_close_to_the_best_of_all_weights(seed: int, fixed: float, short: float) -> None:
    """All directions of two weights, and lengths where a fixed score makes them matter."""
    documents = Documents(seed, fixed=fixed)
    ended, seen = rounds_of(documents)
    angles = np.linspace(0, 2 * np.pi, 361)
    lengths = np.geomspace(0.05, 20, 20) if fixed else [1.0]
    points = [s * np.array([np.cos(a), np.sin(a)]) for a in angles for s in lengths]
    best = max(documents.bleu(point) for point in points)
    assert ended.best.bleu >= seen[0].bleu
    assert ended.best.bleu >= best - short


def test_paths_are_counted_once() -> None:
    documents = Documents(0)
    _, seen = rounds_of(documents)
    counts = [r.step.new_paths or 0 for r in seen]
    pool = documents.pools().first
    for weights in [*documents.decoded]:
        pool = pool.joined(documents.decode(weights))
    start = documents.pools().first.joined(documents.decode(START))
    assert len(start) + sum(counts) <= len(pool)  # a last round that added none is not told


@pytest.mark.parametrize("seed", range(8))
def test_the_best_that_was_decoded_is_told_whether_its_paths_are_new_or_not(seed: int) -> None:
    documents = Documents(seed, n_documents=2, n_sentences=3, k=2)
    ended, _ = rounds_of(documents)
    assert ended.best.bleu == max(documents.bleu(weights) for weights in [*documents.decoded])


def test_documents_of_one_path_end_at_once() -> None:
    ended, seen = rounds_of(Documents(1, k=1))
    assert ended.reason == "no new paths"
    assert len(seen) == 1


def test_the_first_points_lie_on_a_sphere_around_the_start_in_spreads() -> None:
    """A fixed score settles the length of weights, so that they are not normalised."""
    documents, spreads = Documents(1, fixed=0.5), (4.0, 0.25)
    steps = documents.pools(spreads=spreads).steps(START)
    next(steps)
    next(steps)
    around = np.array(documents.decoded[1 : 1 + NEIGHBOURS])
    distances = np.linalg.norm((around - START) * spreads, axis=1)
    length = np.sqrt((START * spreads) @ (START * spreads) + 0.5**2)
    np.testing.assert_allclose(distances, RADIUS * length)
    assert len(np.unique(around, axis=0)) == NEIGHBOURS


def test_without_fixed_scores_points_have_unit_norm() -> None:
    documents = Documents(1)
    rounds_of(documents, start=10 * START)
    norms = [np.abs(weights).sum() for weights in documents.decoded[1:]]
    np.testing.assert_allclose(norms, 1)


def test_features_that_do_not_vary_keep_their_weights() -> None:
    documents = Documents(1, fixed=0.5)
    steps = documents.pools(spreads=(1.0, 0.0)).steps(START)
    next(steps)
    next(steps)
    around = np.array(documents.decoded[1 : 1 + NEIGHBOURS])
    assert (around[:, 1] == START[1]).all()


def test_the_way_to_the_optimum_is_halved_until_decoding_gains() -> None:
    """A tuner that always names the same bad point."""
    documents, bad = Documents(1, fixed=0.5), np.array([-30.0, 10.0])
    pools = replace(documents.pools(), find=lambda pool, _: Optimum.at(pool, bad))
    steps = pools.steps(START)
    next(steps)
    next(steps)
    known, tried = np.split(np.array(documents.decoded), [1 + NEIGHBOURS])
    bleu = [documents.bleu(weights) for weights in known]
    best = known[int(np.argmax(bleu))]
    ways = [best + share * (bad - best) for share in (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)]
    np.testing.assert_allclose(tried, ways[: len(tried)])
    gains = [documents.bleu(weights) > max(bleu) for weights in tried]
    assert not any(gains[:-1])
    assert gains[-1] or len(tried) == len(ways)


def test_where_all_paths_around_are_known_points_farther_away_are_decoded() -> None:
    documents = Documents(1, k=1, fixed=0.5)
    list(documents.pools().steps(START))
    rounds = np.array(documents.decoded[1:]).reshape(-1, NEIGHBOURS + 5, 2)
    distances = np.linalg.norm(rounds[:, 0] - START, axis=1)
    np.testing.assert_allclose(distances / distances[0], 2.0 ** np.arange(6))
    assert distances[-1] >= WIDEST * np.linalg.norm(START)


def test_zeros_are_left_for_weights_that_choose() -> None:
    ended, _ = rounds_of(Documents(2), start=np.zeros(2))
    assert ended.best.step.weights.any()


def test_a_seed_decides_the_weights() -> None:
    one, same, other = (rounds_of(Documents(3), seed=s)[1][1].step for s in (1, 1, 2))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert (one.weights != other.weights).any()
