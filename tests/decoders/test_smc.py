"""Particle filters: the target, the unbiased normaliser, and paths that come out whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    SEEDS,
    normaliser,
    posterior_of,
    probabilities,
    random_problem,
    rng,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.marginals import marginals
from decoders.problem import Array, Indices, Path
from decoders.resampling import RESAMPLING
from decoders.smc import FilterOptions, particle_filter, smc

RESAMPLINGS = ("systematic", "stratified", "residual", "multinomial")


@pytest.mark.parametrize(
    ("resampling", "ess_threshold", "temper"),
    [  # each scheme with each threshold and each schedule; each pair of these with some scheme
        (scheme, (0, 0.5, 1)[i], (0, 0.3, 1)[(i + shift) % 3])
        for shift, scheme in enumerate(RESAMPLINGS)
        for i in range(3)
    ],
)
def test_the_normaliser_is_unbiased(resampling: str, ess_threshold: float, temper: float) -> None:
    draws, runs, resampled = rng(16), 500, 0
    tables = [draws.normal(scale=0.8, size=(3, 2, 3)[: t + 1]) for t in range(3)]
    tables[1][2] = tables[2][0, 1] = -np.inf  # two ways into nothing
    problem = HistoryTable(tables)
    z = normaliser(problem, 0.8)

    def resample(shares: Array, n: int, rng: np.random.Generator) -> Indices:
        nonlocal resampled
        resampled += 1
        return RESAMPLING[resampling](shares, n, rng)

    options = FilterOptions(3, ess_threshold, temper, resample)
    logs = [
        particle_filter(problem, alpha=0.8, rng=draws, options=options).log_normaliser
        for _ in range(runs)
    ]
    estimates = np.exp(logs)  # a run that died out counts as 0
    assert 0.05 < (estimates == 0).mean() < 0.3
    assert (resampled > runs / 10) == (ess_threshold > 0)
    error = estimates.std(ddof=1) / math.sqrt(runs)
    assert 0 < error < 0.04 * z  # the test would see a bias of a sixth
    assert abs(estimates.mean() - z) < 4 * error


def test_runs_that_die_out_are_part_of_the_mean() -> None:
    # two of three ways through sentence 0 end in nothing that any candidate could save
    tables = [np.zeros(3), np.array([[0.0, 0], [-np.inf] * 2, [-np.inf] * 2])]
    problem, draws, runs = HistoryTable(tables), rng(8), 800
    estimates = []
    for _ in range(runs):
        found = smc(problem, alpha=1.0, rng=draws, particles=1)
        posterior = posterior_of(found)
        if posterior.extinct:
            assert found.paths == (Path((0, 0), 0.0),)
            assert [row.tolist() for row in posterior.marginals] == [[0, 0, 0], [0, 0]]
        estimates.append(math.exp(posterior.log_normaliser))
    share = np.mean(np.array(estimates) == 0)
    assert abs(share - 2 / 3) < 4 * math.sqrt(2 / 9 / runs)
    assert abs(np.mean(estimates) - 2) < 4 * np.std(estimates) / math.sqrt(runs)


@pytest.mark.parametrize("order", [0, 1, 2, None])
@pytest.mark.parametrize("temper", [0, 1])
def test_many_particles_weigh_paths_by_their_probability(order: int | None, temper: float) -> None:
    values = (-np.inf, *np.linspace(-1, 1, 6))
    problem = random_problem(order, (3, 2, 3), rng(9), values)
    paths, z = probabilities(problem, 1.5), normaliser(problem, 1.5)
    found = smc(problem, alpha=1.5, rng=rng(10), particles=10**6, temper=temper, n_best=18)
    posterior = posterior_of(found)
    # a share of 10^6 particles has a standard error of at most 0.0005; its weights add some
    assert posterior.log_normaliser == pytest.approx(math.log(z), abs=0.01)
    for choices, weight in zip(posterior.draws.tolist(), posterior.weights, strict=True):
        assert weight == pytest.approx(paths[tuple(choices)], abs=0.005)
    for t, row in enumerate(posterior.marginals):
        sums = [sum(p for path, p in paths.items() if path[t] == k) for k in range(row.size)]
        assert row == pytest.approx(sums, abs=0.005)
    possible = [path for path in exhaustive(problem, n_best=18) if path.score > -np.inf]
    assert list(found.paths) == possible


@given(
    lengths=st.lists(st.integers(1, 3), max_size=4),
    seed=SEEDS,
    particles=st.integers(1, 20),
    resampling=st.sampled_from(RESAMPLINGS),
    threshold=st.sampled_from([0, 0.5, 1]),
    temper=st.sampled_from([0, 0.3, 1]),
)
def test_draws_are_distinct_paths_with_scores_and_weights_of_their_own(
    lengths: list[int],
    seed: int,
    particles: int,
    resampling: str,
    threshold: float,
    temper: float,
) -> None:
    problem = random_problem(None, lengths, rng(seed), (-np.inf, *np.linspace(-3, 4, 6)))
    found = smc(
        problem,
        alpha=2.0,
        rng=rng(seed),
        particles=particles,
        resampling=resampling,
        ess_threshold=threshold,
        temper=temper,
        n_best=5,
    )
    for path in found.paths:
        assert path.score == path_score(problem, path.choices)
    posterior = posterior_of(found)
    if posterior.extinct:
        assert [path.choices for path in found.paths] == [(0,) * len(lengths)]
        return
    draws = posterior.draws.tolist()
    assert len({tuple(row) for row in draws}) == len(draws) <= particles
    assert posterior.weights.sum() == pytest.approx(1)
    assert all(path_score(problem, row) > -np.inf for row in draws)
    assert all(row.sum() == pytest.approx(1) for row in posterior.marginals)


def test_one_candidate_everywhere_leaves_one_path_and_its_own_normaliser() -> None:
    problem = Unary([np.array([-0.5])] * 1000)
    found = smc(problem, alpha=2.0, rng=rng(1), particles=8)
    assert found.paths == (Path((0,) * 1000, -500.0),)
    assert posterior_of(found).log_normaliser == pytest.approx(-1000)


@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_all_zero_scores_weigh_every_path_alike(order: int | None) -> None:
    problem = random_problem(order, (3, 2), rng(), [0.0])
    posterior = posterior_of(smc(problem, alpha=0.3, rng=rng(), particles=10**6))
    assert posterior.log_normaliser == pytest.approx(math.log(6))
    assert len(posterior.draws) == 6
    # a share of 10^6 particles has a standard error of at most 0.0005
    assert posterior.weights == pytest.approx(np.full(6, 1 / 6), abs=0.002)


def test_an_empty_document_has_the_normaliser_1() -> None:
    assert posterior_of(smc(Unary([]), alpha=1.0, rng=rng())).log_normaliser == 0


def test_tempering_grows_by_equal_steps_to_the_scale() -> None:
    options = FilterOptions(temper=0.25)
    assert [options.scale(t, 4) for t in range(4)] == [0.25, 0.5, 0.75, 1]
    assert options.scale(0, 1) == 1
    assert FilterOptions(temper=0.0).scale(1, 3) == 0.5


@pytest.mark.parametrize(
    "options", [{"particles": 0}, {"ess_threshold": 1.5}, {"temper": -0.1}, {"resampling": "best"}]
)
def test_invalid_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"expected particles|there are systematic, stratified"):
        smc(Unary([]), alpha=1.0, rng=rng(1), **options)  # type: ignore[arg-type]


def test_a_scale_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="scale alpha above 0"):
        smc(Unary([]), alpha=0.0, rng=rng())


def test_marginals_are_those_of_the_prefixes_some_sentences_later() -> None:
    """The final particles of a long document have one ancestor; marginals are not theirs."""
    problem = Pairwise([np.zeros((1, 2)), *([np.array([[0.0, 0.0], [1.0, -1.0]])] * 200)])
    truth, _ = marginals(problem, 1.0)
    how = {"resampling": "multinomial", "ess_threshold": 1.0}
    found = smc(problem, alpha=1.0, rng=rng(3), particles=50, **how)  # type: ignore[arg-type]
    posterior = posterior_of(found)
    assert len(np.unique(posterior.draws[:, 0])) == 1
    for row, expected in zip(posterior.marginals, truth, strict=True):
        # of 50 draws with probability 1/2: six standard errors
        assert row == pytest.approx(expected, abs=6 * 0.5 / math.sqrt(50))
    assert 0 < posterior.marginals[0][0] < 1


@pytest.mark.parametrize("lag", [1, 2, 9])
def test_a_lag_that_reaches_the_end_leaves_the_marginals_of_the_draws(lag: int) -> None:
    problem = random_problem(None, (3, 2, 3), rng(5))
    found = smc(problem, alpha=1.0, rng=rng(4), particles=30, lag=lag)
    posterior = posterior_of(found)
    last = len(posterior.marginals) - 1
    for t in range(last - lag if lag < last else 0, last + 1):
        row = posterior.marginals[t]
        truth = np.bincount(posterior.draws[:, t], posterior.weights, row.size)
        np.testing.assert_allclose(row, truth)
    with pytest.raises(ValueError, match="a lag of at least 1"):
        smc(problem, alpha=1.0, rng=rng(4), lag=0)
