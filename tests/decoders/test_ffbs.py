"""Paths drawn backwards: exactly on order 0 and 1, nearly elsewhere.

χ² of M draws with c − 1 degrees of freedom, c paths; the thresholds are its quantiles of 0.999,
from tables, so that one seed in a thousand would fail. The seeds are fixed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from decoders.chains import Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.ffbs import ffbs
from decoders.lockstep import path_score
from decoders.marginals import marginals
from decoders.posterior import Posterior
from decoders.problem import DocumentProblem, Path, ScoreError
from decoders.result import SearchResult
from decoders.tables import HistoryTable

CHI2_999 = {6: 22.46, 11: 31.26, 17: 40.79}  # degrees of freedom: quantile of 0.999


def table(order: int | None, lengths: tuple[int, ...], seed: int) -> HistoryTable:
    rng = np.random.default_rng(seed)
    tables = []
    for t in range(len(lengths)):
        first = 0 if order is None else max(0, t - order)
        tables.append(rng.normal(size=lengths[first : t + 1]))
        tables[-1].flags.writeable = False
    return HistoryTable(tables, order)


def truth(problem: DocumentProblem, alpha: float) -> Mapping[tuple[int, ...], float]:
    """Probability of each possible path."""
    weights = {p.choices: math.exp(alpha * p.score) for p in exhaustive(problem, n_best=10**4)}
    z = math.fsum(weights.values())
    return {path: weight / z for path, weight in weights.items() if weight}


def chi2(found: SearchResult, expected: Mapping[tuple[int, ...], float]) -> float:
    """Σ (observed − expected)² / expected over the paths; infinite for an impossible draw."""
    draws = draws_of(found)
    counts = Counter(map(tuple, draws.tolist()))
    if counts.keys() - expected.keys():
        return math.inf
    return sum((counts[c] - len(draws) * p) ** 2 / (len(draws) * p) for c, p in expected.items())


def posterior_of(found: SearchResult) -> Posterior:
    assert found.posterior is not None
    return found.posterior


def draws_of(found: SearchResult) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    return posterior_of(found).draws


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_draws_follow_the_exact_path_probabilities(order: int, alpha: float) -> None:
    problem = table(order, (3, 2, 3), 3)
    expected = truth(problem, alpha)
    found = ffbs(problem, alpha=alpha, rng=np.random.default_rng(4), samples=20_000)
    assert chi2(found, expected) < CHI2_999[17]


def test_impossible_paths_are_never_drawn() -> None:
    matrices = [np.array([[0.0, 1, -np.inf]]), np.zeros((3, 3)), np.zeros((3, 2))]
    matrices[1][0, 1] = matrices[1][1, 2] = matrices[2][2, 1] = -np.inf
    problem = Pairwise(matrices)
    expected = truth(problem, 1.0)
    assert len(expected) == 7
    found = ffbs(problem, alpha=1.0, rng=np.random.default_rng(5), samples=5000)
    assert chi2(found, expected) < CHI2_999[6]


@pytest.mark.parametrize("order", [0, 1])
def test_marginals_and_normaliser_are_the_exact_ones(order: int) -> None:
    problem = table(order, (3, 2, 3), 6)
    posterior = posterior_of(ffbs(problem, alpha=0.7, rng=np.random.default_rng(1), samples=5))
    rows, log_z = marginals(problem, 0.7)
    assert posterior.exact
    assert posterior.log_normaliser == log_z
    assert [row.tolist() for row in posterior.marginals] == [row.tolist() for row in rows]
    assert posterior.weights.tolist() == [0.2] * 5


@pytest.mark.parametrize(("order", "lag"), [(2, None), (2, 4), (None, 4)])
def test_many_particles_and_a_lag_that_suffices_draw_by_the_path_probabilities(
    order: int | None, lag: int | None
) -> None:
    # 10^6 particles hold every prefix, its weight to a standard error of some 10^-3 of itself:
    # to 4,000 draws that adds 4,000 · 10^-6 to χ², nothing beside the quantile
    problem = table(order, (2, 3, 2, 1), 7)
    rng = np.random.default_rng(8)
    found = ffbs(problem, alpha=1.2, rng=rng, samples=4000, particles=10**6, lag=lag)
    posterior = posterior_of(found)
    expected = truth(problem, 1.2)
    assert chi2(found, expected) < CHI2_999[11]
    assert not posterior.exact
    z = math.fsum(math.exp(1.2 * path.score) for path in exhaustive(problem, n_best=99))
    assert posterior.log_normaliser == pytest.approx(math.log(z), abs=0.01)
    for t, row in enumerate(posterior.marginals):
        for k, share in enumerate(row.tolist()):
            p = sum(q for path, q in expected.items() if path[t] == k)
            assert abs(share - p) <= 4 * math.sqrt(max(0, p * (1 - p)) / 4000) + 1e-3


def test_a_lag_too_short_for_the_dependence_is_an_approximation() -> None:
    # sentence 2 allows only the candidate of sentence 0; a lag of 1 does not see that far
    tables = [np.zeros(2), np.zeros((2, 1)), np.array([[[0, -np.inf]], [[-np.inf, 0]]])]
    problem = HistoryTable(tables)
    rng = np.random.default_rng(9)
    near = ffbs(problem, alpha=1.0, rng=rng, samples=200, particles=100, lag=1)
    far = ffbs(problem, alpha=1.0, rng=rng, samples=200, particles=100, lag=2)
    assert chi2(near, truth(problem, 1.0)) == math.inf
    assert {tuple(row) for row in draws_of(far).tolist()} == {(0, 0, 0), (1, 0, 1)}


def test_draws_weighed_in_many_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = table(None, (3, 2, 3, 4, 2), 10)
    whole = ffbs(problem, alpha=0.5, rng=np.random.default_rng(2), samples=30)
    monkeypatch.setattr("decoders.ffbs.MAX_CHOICES", 1)
    pieces = ffbs(problem, alpha=0.5, rng=np.random.default_rng(2), samples=30)
    assert np.array_equal(draws_of(whole), draws_of(pieces))
    assert whole.paths == pieces.paths


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_the_best_paths_are_those_of_the_draws_with_their_scores(order: int | None) -> None:
    problem = table(order, (3, 2, 3), 10)
    found = ffbs(problem, alpha=0.5, rng=np.random.default_rng(2), samples=30, n_best=4)
    draws = {tuple(row) for row in draws_of(found).tolist()}
    every = [path for path in exhaustive(problem, n_best=18) if path.choices in draws]
    assert list(found.paths) == every[:4]
    assert [p.score for p in found.paths] == [path_score(problem, p.choices) for p in found.paths]


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_without_a_possible_path_the_first_candidates_come_out(order: int | None) -> None:
    tables = [np.zeros(2), np.full((2, 2) if order != 0 else 2, -np.inf)]
    found = ffbs(HistoryTable(tables, order), alpha=1.0, rng=np.random.default_rng(1))
    assert found.paths == (Path((0, 0), -np.inf),)
    posterior = posterior_of(found)
    assert posterior.extinct
    assert posterior.exact == (order in (0, 1))
    assert [row.tolist() for row in posterior.marginals] == [[0, 0], [0, 0]]


def test_an_empty_document_has_the_empty_path() -> None:
    for order in (0, 1, 2, None):
        found = ffbs(HistoryTable([], order), alpha=1.0, rng=np.random.default_rng(1), samples=3)
        assert found.paths == (Path((), 0.0),)
        assert draws_of(found).shape == (3, 0)


def test_a_thousand_sentences_are_drawn_by_their_own_shares() -> None:
    rng = np.random.default_rng(11)
    scores = [np.log(rng.dirichlet(np.ones(3))) for _ in range(1000)]
    found = ffbs(Unary(scores), alpha=1.0, rng=rng, samples=400)
    means = np.array([[np.mean(row == k) for k in range(3)] for row in draws_of(found).T])
    gaps = (means - np.exp(scores)) / np.sqrt(np.exp(scores) * (1 - np.exp(scores)) / 400)
    # 3,000 gaps in standard errors, nearly normal: their mean square has a standard error of 0.03
    assert abs(float((gaps**2).mean()) - 1) < 4 * 0.03


@pytest.mark.parametrize("options", [{"samples": 0}, {"lag": 0}, {"alpha": 0.0}, {"n_best": 0}])
def test_options_that_are_none_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        ffbs(UNARY, rng=np.random.default_rng(1), **{"alpha": 1.0, **options})  # type: ignore[arg-type]


UNARY = Unary([np.zeros(2)])


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_nan_is_refused_by_sentence_and_candidate(order: int | None) -> None:
    tables = [np.zeros(1), np.array([0, np.nan]) if order == 0 else np.array([[0, np.nan]])]
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
        ffbs(HistoryTable(tables, order), alpha=1.0, rng=np.random.default_rng(1))
