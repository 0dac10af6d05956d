"""Exact search on documents: which steps it tells, and that each is what decoding gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.arrays import Pairwise
from rerank.corpus.labels import Label
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.bounds import Bounds
from rerank.tuning.exact.ascent import document_ascent
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.documents import document_rounds
from rerank.tuning.exact.line_search import ChainSet
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import BLEU_GOAL
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.rounds import BestRound, Round, Rounds, tune_in_rounds

Floats = NDArray[np.float64]
Search = Callable[[Floats], Optimum]
NOTHING = Bounds.none(2)


def peaks(weights: Floats) -> float:
    """Hills on a plane: the highest at (3, 1), a lower one at (0, 0)."""
    far = np.array([[3.0, 1.0], [0.0, 0.0]])
    heights = np.array([60.0, 40.0]) - 20 * np.square(far - weights).sum(axis=1)
    return float(np.maximum(heights, 1.0).max())


def decoded(weights: Floats) -> Sums:
    """Statistics whose matches tell the height, in hundredths."""
    return np.array([[round(100 * peaks(weights)), 1, 1, 1, 10_000, 1, 1, 1, 10_000]])


def height(sums: Sums, weights: Floats) -> float:
    return float(sums[:, 0].sum() / 100)


def optimum(weights: Floats) -> Optimum:
    return Optimum(weights, decoded(weights).sum(axis=0), peaks(weights))


def made(
    find: Search,
    climb: Search,
    start: Floats,
    *,
    bounds: Bounds = NOTHING,
    seed: int = 1,
    spread: float = 1.0,
) -> Rounds:
    spreads = np.array([spread, 1.0])
    return document_rounds(
        start, find, climb, decoded, spreads=spreads, seed=seed, value=height, bounds=bounds
    )


class Climber:
    """A climb that goes nowhere, and remembers whence it was asked."""

    def __init__(self, move: Callable[[Floats], Floats] = lambda weights: weights) -> None:
        self.begun, self.move = list[Floats](), move

    def __call__(self, weights: Floats) -> Optimum:
        self.begun.append(weights.copy())
        return optimum(self.move(weights))


def at(*weights: float) -> Search:
    return lambda start: optimum(np.array(weights))


# The steps


def test_a_climb_begins_at_the_better_of_the_start_and_the_guess() -> None:
    for guess, start, begun in (((3, 1), (0, 0), (3, 1)), ((0.5, 0), (0.1, 0), (0.1, 0))):
        climb = Climber()
        steps = [*islice(made(at(*guess), climb, np.array(start, float)), 3)]
        assert [step.weights.tolist() for step in steps] == [list(start), list(guess), list(begun)]
        assert [step.predicted is None for step in steps] == [True, False, False]
        assert climb.begun[0].tolist() == list(begun)


def test_of_equals_the_start_is_climbed_from() -> None:
    climb = Climber()
    list(islice(made(at(0.0, 1.0), climb, np.array([1.0, 0.0])), 3))
    assert climb.begun[0].tolist() == [1.0, 0.0]


def test_kicks_are_a_tenth_long_and_from_the_best_so_far() -> None:
    climb = Climber()
    steps = [*islice(made(at(2.3, 1.0), climb, np.array([2.0, 1.0]), spread=2.0), 12)]
    spreads, best = np.array([2.0, 1.0]), steps[1]
    for begun, step in zip(climb.begun[1:], steps[3:], strict=True):
        away = np.linalg.norm((begun - best.weights) * spreads)
        assert away == pytest.approx(0.1 * np.linalg.norm(best.weights * spreads))
        best = max(best, step, key=lambda s: height(s.statistics, s.weights))
    assert peaks(best.weights) > peaks(steps[1].weights)


def test_kicks_and_climbs_stay_within_bounds() -> None:
    bounds = Bounds(np.array([2.7, -np.inf]), np.array([2.8, 0.9]))
    climb = Climber(bounds.clipped)
    list(islice(made(at(2.75, 0.9), climb, np.array([2.7, 0.5]), bounds=bounds), 30))
    assert len(climb.begun) == 28
    assert all(bounds.hold(begun) for begun in climb.begun)
    assert len({tuple(begun) for begun in climb.begun}) > 5


def test_a_feature_that_never_varies_is_not_kicked() -> None:
    climb = Climber()
    list(islice(made(at(0.5, 1.0), climb, np.array([0.5, 0.5]), spread=0.0), 10))
    assert {float(begun[0]) for begun in climb.begun} == {0.5}
    assert len({float(begun[1]) for begun in climb.begun}) > 3


def test_features_that_all_never_vary_leave_the_start() -> None:
    rounds = document_rounds(
        np.full(2, 0.5),
        at(0.5, 0.5),
        Climber(),
        decoded,
        spreads=np.zeros(2),
        seed=1,
        value=height,
        bounds=NOTHING,
    )
    told: list[Round] = []
    found = tune_in_rounds(rounds, 3, fixed=False, report=told.append, value=height)
    assert found.reason == "no feature varies"
    assert [done.result.weights.tolist() for done in told] == [[0.5, 0.5]] * 2


def test_a_seed_decides_the_kicks() -> None:
    def begun(seed: int) -> list[list[float]]:
        climb = Climber()
        list(islice(made(at(1.0, 1.0), climb, np.ones(2), seed=seed), 6))
        return [weights.tolist() for weights in climb.begun]

    assert begun(1) == begun(1)
    assert begun(1)[0] == begun(2)[0]
    assert begun(1)[1:] != begun(2)[1:]


def test_nothing_given_is_changed() -> None:
    start = np.array([0.5, 1.0])
    start.flags.writeable = False
    spreads = np.ones(2)
    spreads.flags.writeable = False
    rounds = document_rounds(
        start,
        at(1, 1),
        Climber(),
        decoded,
        spreads=spreads,
        seed=1,
        value=height,
        bounds=NOTHING,
    )
    list(islice(rounds, 5))  # writing to them would raise
    assert start.tolist() == [0.5, 1.0]
    assert spreads.tolist() == [1.0, 1.0]


def ended(climb: Search, start: tuple[float, float] = (2.5, 1.0)) -> tuple[BestRound, list[Round]]:
    told: list[Round] = []
    rounds = made(at(2.6, 1.0), climb, np.array(start))
    found = tune_in_rounds(rounds, 3, fixed=False, report=told.append, value=height)
    return found, told


def test_three_rounds_without_gain_end_it() -> None:
    found, told = ended(Climber(lambda weights: np.zeros(2)))
    assert found.reason == "3 rounds without gain"
    assert found.best.number == 1
    assert [done.number for done in told] == [0, 1, 2, 3, 4]


def test_gains_go_on_for_fifteen_rounds() -> None:
    way: Iterator[float] = iter(np.linspace(2.61, 3.0, 20).tolist())
    found, told = ended(Climber(lambda weights: np.array([next(way), 1.0])))
    assert found.reason == "15 rounds"
    assert found.best is told[-1]


def test_what_is_told_is_decoded_and_not_what_a_climb_claims() -> None:
    def boasts(weights: Floats) -> Optimum:
        return Optimum(weights, decoded(np.array([3.0, 1.0])).sum(axis=0), 1000.0)

    found, told = ended(boasts)
    for done in told:
        assert done.value == round(100 * peaks(done.result.weights)) / 100
    assert found.best.value == max(done.value for done in told)


# On documents, against enumeration


@dataclass(frozen=True)
class Known:
    """A document of one static feature and one that looks a sentence back."""

    static: Floats
    tables: list[Floats]
    offsets: NDArray[np.int64]
    statistics: Sums

    def chain(self) -> DocumentChain:
        space = FeatureSpace((Label("x", 1), Label("pairs", 1)), (1,), 1, False)
        features = np.column_stack([self.static, np.zeros(len(self.static))])
        sparse, problems = np.zeros(len(self.static)), (Pairwise(self.tables),)
        places = np.arange(len(self.tables))
        document = DocumentFeatures("d", space, features, sparse, problems, self.offsets, places)
        return DocumentChain.of(document, self.statistics)

    def best(self, weights: Floats) -> Sums:
        """Statistics of the best path, by trying them all."""
        most, found = -np.inf, self.statistics[:0]
        for path in product(*(range(table.shape[1]) for table in self.tables)):
            rows = self.offsets[:-1] + path
            steps = zip(self.tables, (0, *path), path, strict=False)
            pairs = sum(float(table[i, k]) for table, i, k in steps)
            score = weights[0] * self.static[rows].sum() + weights[1] * pairs
            if score > most:
                most, found = score, self.statistics[rows]
        return np.asarray(found.sum(axis=0))


def known(rng: np.random.Generator, sizes: tuple[int, ...]) -> Known:
    """A document of as many candidates in each sentence."""
    n = sum(sizes)
    tables = [
        rng.standard_normal((before, now)).round(2)
        for before, now in zip((1, *sizes), sizes, strict=False)
    ]
    statistics = rng.integers(0, 9, (n, 9))
    statistics[:, 4:] = [12, 11, 10, 9, 12]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Known(rng.standard_normal(n).round(2), tables, offsets, statistics)


@pytest.mark.parametrize("seed", range(6))
def test_every_value_told_is_that_of_the_best_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    both = [known(rng, (3, 2, 3)), known(rng, (2, 4))]
    documents = ChainSet.of([one.chain() for one in both], np.zeros((2, 9), np.int64))

    def climb(weights: Floats) -> Optimum:
        return document_ascent(
            documents,
            weights,
            BLEU_GOAL,
            features=np.arange(2),
            notices=Notices(),
        )

    rounds = document_rounds(
        np.array([0.5, 0.5]),
        at(0.7, -0.3),
        climb,
        documents.decode,
        spreads=documents.spreads,
        seed=seed,
        value=BLEU_GOAL.value,
        bounds=NOTHING,
    )
    told: list[Round] = []
    found = tune_in_rounds(rounds, 3, fixed=False, report=told.append, value=BLEU_GOAL.value)
    for done in told:
        truth = np.array([one.best(done.result.weights) for one in both])
        assert done.result.statistics.tolist() == truth.tolist()
        if done.number > 1:
            assert done.result.predicted is not None
            assert done.result.predicted.value == done.value
    assert found.best.value >= max(done.value for done in told[:3])
