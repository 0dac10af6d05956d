"""Paths drawn backwards: exactly on order 0 and 1, nearly elsewhere.

χ² of M draws with c − 1 degrees of freedom, c paths; the thresholds are its quantiles of 0.999,
from tables, so that one seed in a thousand would fail. The seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.problems import (
    CHI2_999,
    chi2,
    normaliser,
    posterior_of,
    probabilities,
    random_problem,
    rng,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.ffbs import ffbs
from decoders.marginals import marginals
from decoders.problem import Path
from decoders.result import SearchResult


def draws_of(found: SearchResult) -> list[list[int]]:
    draws: list[list[int]] = posterior_of(found).draws.tolist()
    return draws


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_draws_follow_the_exact_path_probabilities(order: int, alpha: float) -> None:
    problem = random_problem(order, (3, 2, 3), rng(3))
    expected = probabilities(problem, alpha)
    found = ffbs(problem, alpha=alpha, rng=rng(4), samples=10_000)
    assert chi2(draws_of(found), expected) < CHI2_999[17]


def test_impossible_paths_are_never_drawn() -> None:
    matrices = [np.array([[0.0, 1, -np.inf]]), np.zeros((3, 3)), np.zeros((3, 2))]
    matrices[1][0, 1] = matrices[1][1, 2] = matrices[2][2, 1] = -np.inf
    problem = Pairwise(matrices)
    expected = probabilities(problem, 1.0)
    assert len(expected) == 7
    found = ffbs(problem, alpha=1.0, rng=rng(5), samples=5000)
    assert chi2(draws_of(found), expected) < CHI2_999[6]


@pytest.mark.parametrize("order", [0, 1])
def test_marginals_and_normaliser_are_the_exact_ones(order: int) -> None:
    problem = random_problem(order, (3, 2, 3), rng(6))
    posterior = posterior_of(ffbs(problem, alpha=0.7, rng=rng(1), samples=5))
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
    problem = random_problem(order, (2, 3, 2, 1), rng(7))
    found = ffbs(problem, alpha=1.2, rng=rng(8), samples=4000, particles=10**6, lag=lag)
    posterior = posterior_of(found)
    expected = probabilities(problem, 1.2)
    assert chi2(draws_of(found), expected) < CHI2_999[11]
    assert not posterior.exact
    assert posterior.log_normaliser == pytest.approx(math.log(normaliser(problem, 1.2)), abs=0.01)
    for t, row in enumerate(posterior.marginals):
        for k, share in enumerate(row.tolist()):
            p = sum(q for path, q in expected.items() if path[t] == k)
            assert abs(share - p) <= 4 * math.sqrt(max(0, p * (1 - p)) / 4000) + 1e-3


def test_a_lag_too_short_for_the_dependence_is_an_approximation() -> None:
    # sentence 2 allows only the candidate of sentence 0; a lag of 1 does not see that far
    tables = [np.zeros(2), np.zeros((2, 1)), np.array([[[0, -np.inf]], [[-np.inf, 0]]])]
    problem = HistoryTable(tables)
    near = ffbs(problem, alpha=1.0, rng=rng(9), samples=200, particles=100, lag=1)
    far = ffbs(problem, alpha=1.0, rng=rng(9), samples=200, particles=100, lag=2)
    assert chi2(draws_of(near), probabilities(problem, 1.0)) == math.inf
    assert {tuple(row) for row in draws_of(far)} == {(0, 0, 0), (1, 0, 1)}


def test_draws_weighed_in_many_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(None, (3, 2, 3, 4, 2), rng(10))
    whole = ffbs(problem, alpha=0.5, rng=rng(2), samples=30)
    monkeypatch.setattr("decoders.ffbs.MAX_CHOICES", 1)
    pieces = ffbs(problem, alpha=0.5, rng=rng(2), samples=30)
    assert draws_of(whole) == draws_of(pieces)
    assert whole.paths == pieces.paths


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_the_best_paths_are_those_of_the_draws_with_their_scores(order: int | None) -> None:
    problem = random_problem(order, (3, 2, 3), rng(10))
    found = ffbs(problem, alpha=0.5, rng=rng(2), samples=30, n_best=4)
    draws = {tuple(row) for row in draws_of(found)}
    every = [path for path in exhaustive(problem, n_best=18) if path.choices in draws]
    assert list(found.paths) == every[:4]
    assert [p.score for p in found.paths] == [path_score(problem, p.choices) for p in found.paths]


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_without_a_possible_path_the_first_candidates_come_out(order: int | None) -> None:
    tables = [np.zeros(2), np.full((2, 2) if order != 0 else 2, -np.inf)]
    found = ffbs(HistoryTable(tables, order), alpha=1.0, rng=rng(1))
    assert found.paths == (Path((0, 0), -np.inf),)
    posterior = posterior_of(found)
    assert posterior.extinct
    assert posterior.exact == (order in (0, 1))
    assert [row.tolist() for row in posterior.marginals] == [[0, 0], [0, 0]]


def test_an_empty_document_has_draws_of_the_empty_path() -> None:
    for order in (0, 1, 2, None):
        found = ffbs(HistoryTable([], order), alpha=1.0, rng=rng(), samples=3)
        assert found.paths == (Path((), 0.0),)
        assert draws_of(found) == [[]] * 3


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_all_zero_scores_draw_every_path_alike(order: int | None) -> None:
    problem = random_problem(order, (2, 3, 2), rng(), [0.0])
    posterior = posterior_of(ffbs(problem, alpha=0.3, rng=rng(12), samples=4000, particles=10**6))
    assert chi2(posterior.draws.tolist(), dict.fromkeys(np.ndindex(2, 3, 2), 1 / 12)) < CHI2_999[11]
    assert posterior.log_normaliser == pytest.approx(math.log(12))
    if posterior.exact:
        for row, k in zip(posterior.marginals, (2, 3, 2), strict=True):
            assert row == pytest.approx(np.full(k, 1 / k))


def test_a_thousand_sentences_are_drawn_by_their_own_shares() -> None:
    scores = list(np.log(rng(11).dirichlet(np.ones(3), size=1000)))
    found = ffbs(Unary(scores), alpha=1.0, rng=rng(11), samples=400)
    draws = posterior_of(found).draws
    means = np.stack([(draws == k).mean(axis=0) for k in range(3)], axis=1)
    gaps = (means - np.exp(scores)) / np.sqrt(np.exp(scores) * (1 - np.exp(scores)) / 400)
    # 3,000 gaps in standard errors, nearly normal: their mean square has a standard error of 0.03
    assert abs(float((gaps**2).mean()) - 1) < 4 * 0.03


@pytest.mark.parametrize("options", [{"samples": 0}, {"lag": 0}, {"alpha": 0.0}, {"n_best": 0}])
def test_invalid_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        ffbs(Unary([np.zeros(2)]), rng=rng(), **{"alpha": 1.0, **options})  # type: ignore[arg-type]
