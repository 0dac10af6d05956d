"""Decoders that work with p(path) ∝ exp(α · score), against the probabilities of all paths.

χ² of M draws with c − 1 degrees of freedom, c paths; the thresholds are its quantiles of 0.999,
from tables, so that one seed in a thousand would fail. The seeds are fixed.
"""

import math
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    CHI2_999,
    LENGTHS,
    ORDERS,
    SEEDS,
    all_paths,
    chi2,
    normaliser,
    posterior_of,
    probabilities,
    random_problem,
    rng,
    shares_of_candidates,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.beam import draw_paths, random_beam
from decoders.ffbs import ffbs
from decoders.marginals import is_chain, marginals, max_marginals
from decoders.problem import Array, Indices, Path, ScoreError, UnsuitedDecoder
from decoders.result import SearchResult
from decoders.smc import RESAMPLING, particle_filter, smc
from decoders.viterbi import exhaustive

every_order = pytest.mark.parametrize("order", [0, 1, 2, None])


def draws_of(found: SearchResult) -> list[list[int]]:
    draws: list[list[int]] = posterior_of(found).draws.tolist()
    return draws


# Exact sums on order 0 and 1
@given(
    lengths=LENGTHS, order=st.integers(0, 1), seed=SEEDS, alpha=st.sampled_from([0.1, 1.0, 3.0]),
    values=st.sampled_from([(-np.inf, -1.0, 0.0, 0.75), (-np.inf,) * 4 + (0.5,), (-99.0, 5, 80)]),
)  # fmt: skip
def test_marginals_normaliser_and_best_paths_through_candidates_are_those_of_all_paths(
    lengths: list[int], order: int, seed: int, alpha: float, values: Sequence[float]
) -> None:
    problem = random_problem(order, lengths, rng(seed), values)
    paths, (result, log_z) = all_paths(problem), marginals(problem, alpha)
    best = [np.full(k, -np.inf) for k in lengths]
    for path, score in paths.items():
        for row, choice in zip(best, path, strict=True):
            row[choice] = max(row[choice], score)
    assert [row.tolist() for row in max_marginals(problem)] == [row.tolist() for row in best]
    top = max(paths.values())
    if top == -np.inf:
        assert log_z == -np.inf
        assert not any(row.any() for row in result)
        return
    logs = {path: alpha * (score - top) for path, score in paths.items()}
    z = math.fsum(map(math.exp, logs.values()))
    # logarithms up to 1,500, of which 2^-53 is 2e-13; a few such roundings a sentence
    assert log_z == pytest.approx(math.log(z) + alpha * top, rel=1e-13, abs=1e-12)
    shares = shares_of_candidates({p: math.exp(log) / z for p, log in logs.items()}, lengths)
    for mine, theirs in zip(result, shares, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-10)


def test_at_order_0_no_matrix_of_pairs_is_made() -> None:
    """Of two lists of 20,000 candidates it would take 3 GB."""
    problem = Unary([rng(seed).standard_normal(20_000) for seed in (1, 2)])
    tracemalloc.start()
    result, _ = marginals(problem, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6
    assert result[0].sum() == pytest.approx(1)
    assert max_marginals(problem)[0].max() == sum(score.max() for score in problem.scores)


# Draws
@pytest.mark.parametrize("order", [0, 1])
def test_on_order_0_and_1_ffbs_draws_by_the_exact_probabilities(order: int) -> None:
    problem = random_problem(order, (3, 2, 3), rng(3))
    result = ffbs(problem, alpha=1.2, rng=rng(4), samples=10_000)
    assert chi2(draws_of(result), probabilities(problem, 1.2)) < CHI2_999[17]
    posterior, (rows, log_z) = posterior_of(result), marginals(problem, 1.2)
    assert (posterior.exact, posterior.log_normaliser) == (True, log_z)
    assert [row.tolist() for row in posterior.marginals] == [row.tolist() for row in rows]
    assert (posterior.weights == 1e-4).all()


@pytest.mark.parametrize(("order", "lag"), [(2, None), (2, 4), (None, 4)])
def test_ffbs_of_many_particles_is_exact(order: int | None, lag: int | None) -> None:
    # 10^6 particles hold every prefix, its weight to a standard error of some 10^-3 of itself:
    # to 4,000 draws that adds 4,000 · 10^-6 to χ², nothing beside the quantile
    problem = random_problem(order, (2, 3, 2, 1), rng(7))
    result = ffbs(problem, alpha=1.2, rng=rng(8), samples=4000, particles=10**6, lag=lag)
    posterior, expected = posterior_of(result), probabilities(problem, 1.2)
    assert chi2(draws_of(result), expected) < CHI2_999[11]
    assert not posterior.exact
    assert posterior.log_normaliser == pytest.approx(math.log(normaliser(problem, 1.2)), abs=0.01)
    for t, row in enumerate(posterior.marginals):
        truth = np.bincount(posterior.draws[:, t], np.full(4000, 1 / 4000), row.size).tolist()
        assert row.tolist() == truth


def test_a_lag_shorter_than_the_dependence_is_an_approximation() -> None:
    # sentence 2 allows only the candidate of sentence 0; a lag of 1 does not see that far
    tables = [np.zeros(2), np.zeros((2, 1)), np.array([[[0, -np.inf]], [[-np.inf, 0]]])]
    how: dict[str, Any] = {"alpha": 1.0, "samples": 200, "particles": 100}
    near, far, usual = (
        {tuple(row) for row in draws_of(ffbs(HistoryTable(tables), rng=rng(9), lag=lag, **how))}
        for lag in (1, 2, None)
    )
    assert near > far == usual == {(0, 0, 0), (1, 0, 1)}


@every_order
def test_the_paths_of_ffbs_are_the_best_of_its_draws(order: int | None) -> None:
    problem = random_problem(order, (3, 2, 3), rng(10))
    result = ffbs(problem, alpha=0.5, rng=rng(2), samples=30, n_best=4)
    draws = {tuple(row) for row in draws_of(result)}
    every = [path for path in exhaustive(problem, n_best=18) if path.choices in draws]
    assert list(result.paths) == every[:4]


@every_order
@pytest.mark.parametrize("decoder", [ffbs, smc])
def test_without_a_possible_path_the_first_candidates_come_out(
    decoder: Any, order: int | None
) -> None:
    tables = [np.zeros(2), np.full((2, 2) if order != 0 else 2, -np.inf)]
    result = decoder(HistoryTable(tables, order), alpha=1.0, rng=rng(1))
    posterior = posterior_of(result)
    assert result.paths == (Path((0, 0), -np.inf),)
    assert posterior.extinct
    assert posterior.exact == (decoder is ffbs and order in (0, 1))
    assert [row.tolist() for row in posterior.marginals] == [[0, 0], [0, 0]]
    assert (posterior.draws.shape, posterior.weights.size) == ((0, 2), 0)


# Particle filters
@pytest.mark.parametrize(
    ("scheme", "ess_threshold", "temper"),
    [  # each scheme with each threshold and each schedule; each pair of these with some scheme
        (scheme, (0, 0.5, 1)[i], (0, 0.3, 1)[(i + shift) % 3])
        for shift, scheme in enumerate(RESAMPLING)
        for i in range(3)
    ],
)
def test_mean_evidence_is_the_normaliser(scheme: str, ess_threshold: float, temper: float) -> None:
    draws, runs, resampled = rng(16), 300, 0
    tables = [draws.normal(scale=0.8, size=(3, 2, 3)[: t + 1]) for t in range(3)]
    tables[1][2] = tables[2][0, 1] = -np.inf  # two ways into nothing
    problem = HistoryTable(tables)

    def resample(shares: Array, n: int, rng: np.random.Generator) -> Indices:
        nonlocal resampled
        resampled += 1
        return RESAMPLING[scheme](shares, n, rng)

    how: dict[str, Any] = {"threshold": ess_threshold, "temper": temper, "resample": resample}
    logs = [
        particle_filter(problem, alpha=0.8, rng=draws, particles=3, **how).log_normaliser
        for _ in range(runs)
    ]
    estimates = np.exp(logs)  # a run that died out counts as 0
    assert 0.05 < (estimates == 0).mean() < 0.3
    assert (resampled > runs / 10) == (ess_threshold > 0)
    z, error = normaliser(problem, 0.8), estimates.std(ddof=1) / math.sqrt(runs)
    assert 0 < error < 0.05 * z  # the test would see a bias of a fifth
    assert abs(estimates.mean() - z) < 4 * error


@every_order
@pytest.mark.parametrize("temper", [0, 1])
def test_many_particles_weigh_paths_by_their_probability(order: int | None, temper: float) -> None:
    problem = random_problem(order, (3, 2, 3), rng(9), (-np.inf, *np.linspace(-1, 1, 6)))
    paths = probabilities(problem, 1.5)
    result = smc(problem, alpha=1.5, rng=rng(10), particles=10**6, temper=temper, n_best=18)
    posterior = posterior_of(result)
    # a share of 10^6 particles has a standard error of at most 0.0005; its weights add some
    assert posterior.log_normaliser == pytest.approx(math.log(normaliser(problem, 1.5)), abs=0.01)
    for choices, weight in zip(posterior.draws.tolist(), posterior.weights, strict=True):
        assert weight == pytest.approx(paths[tuple(choices)], abs=0.005)
    for mine, theirs in zip(
        posterior.marginals, shares_of_candidates(paths, (3, 2, 3)), strict=True
    ):
        assert mine == pytest.approx(theirs, abs=0.005)
    assert list(result.paths) == [p for p in exhaustive(problem, n_best=18) if p.score > -np.inf]


def test_marginals_are_those_of_the_prefixes_some_sentences_later() -> None:
    """The final particles of a long document have one ancestor; marginals are not theirs."""
    problem = Pairwise([np.zeros((1, 2)), *([np.array([[0.0, 0.0], [1.0, -1.0]])] * 200)])
    truth, _ = marginals(problem, 1.0)
    how: dict[str, Any] = {"resampling": "multinomial", "ess_threshold": 1.0, "particles": 50}
    posterior = posterior_of(smc(problem, alpha=1.0, rng=rng(3), **how))
    assert len(np.unique(posterior.draws[:, 0])) == 1
    for row, expected in zip(posterior.marginals, truth, strict=True):
        # of 50 draws with probability 1/2: six standard errors
        assert row == pytest.approx(expected, abs=6 * 0.5 / math.sqrt(50))
    assert 0 < posterior.marginals[0][0] < 1


# Beams with Gumbel noise
@pytest.mark.parametrize("width", [2, 3])
def test_on_order_1_a_random_beam_draws_paths_without_replacement(width: int) -> None:
    problem = Pairwise([np.array([[0.0, 0.5]]), np.array([[1.0, 0], [-0.5, 0.25]])])
    shares, draws, result = probabilities(problem, 0.8), rng(5), []
    for _ in range(1500):
        choices, _ = draw_paths(problem, width=width, alpha=0.8, rng=draws)
        result.append(tuple(choices[:2].ravel().tolist()))
    expected = {
        share + other: shares[share] * shares[other] / (1 - shares[share])
        for share in shares
        for other in shares.keys() - {share}
    }
    assert chi2(result, expected) < CHI2_999[11]


@given(
    order=ORDERS,
    lengths=st.lists(st.integers(1, 3), max_size=4),
    seed=SEEDS,
    width=st.integers(1, 90),
)
def test_draws_of_a_random_beam_are_distinct_and_all_paths_where_it_is_wide(
    order: int | None, lengths: list[int], seed: int, width: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), (-np.inf, *np.linspace(-1, 1.5, 9)))
    choices, scores = draw_paths(problem, width=width, alpha=1.0, rng=rng(seed))
    rows = [tuple(row) for row in choices.tolist()]
    assert len({*rows}) == len(rows) == min(width, math.prod(lengths))
    assert scores.tolist() == [path_score(problem, row) for row in rows]
    result = random_beam(problem, width=81, alpha=1.0, rng=rng(seed), n_best=9)
    assert result == exhaustive(problem, n_best=9)


def test_possible_paths_are_drawn_before_impossible_ones() -> None:
    # one path of 81 is possible: prefixes are drawn for what may come of them
    matrices = [np.zeros((1, 3)), *(np.full((3, 3), -np.inf) for _ in range(3))]
    for matrix, (before, after) in zip(matrices[1:], [(2, 1), (1, 1), (1, 0)], strict=True):
        matrix[before, after] = -1.0
    for seed in range(10):
        result = random_beam(Pairwise(matrices), width=1, alpha=1.0, rng=rng(seed))
        assert result == [Path((2, 1, 1, 0), -3.0)]


# Lists of draws, and what is refused
ONE: Any = Unary([np.zeros(2)])
POISONED = Unary([np.zeros(2), np.array([0, np.nan])])
SECOND = HistoryTable([np.zeros(2)], order=2)


def test_exact_sums_refuse_other_orders_scales_and_invalid_scores() -> None:
    assert (is_chain(SECOND), is_chain(HistoryTable([np.zeros(2)], order=1))) == (False, True)
    with pytest.raises(UnsuitedDecoder, match="order 0 or 1"):
        marginals(SECOND, 1.0)
    with pytest.raises(ValueError, match="scale alpha above 0, found 0"):
        marginals(ONE, 0)
    for call in (lambda: marginals(POISONED, 1.0), lambda: max_marginals(POISONED)):
        with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
            call()
