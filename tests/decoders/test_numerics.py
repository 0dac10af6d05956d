"""Logarithms of sums, shares, and draws: against sums of plain numbers and frequencies."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoders.numerics import draw, effective_size, log_sum_exp, rng_for, softmax

LOGS = st.lists(st.floats(-30, 30) | st.just(-math.inf), min_size=1, max_size=8)


@given(logs=LOGS)
def test_log_sum_exp_is_the_logarithm_of_the_sum(logs: list[float]) -> None:
    total = math.fsum(map(math.exp, logs))
    found = float(log_sum_exp(np.array(logs)))
    # eight roundings of terms and one of the logarithm, each of 2^-53
    assert found == (pytest.approx(math.log(total), abs=1e-13) if total else -math.inf)


def test_log_sum_exp_neither_overflows_nor_underflows() -> None:
    assert log_sum_exp(np.array([1e4, 1e4])) == pytest.approx(1e4 + math.log(2), rel=1e-15)
    assert log_sum_exp(np.array([-1e4, -np.inf])) == -1e4


def test_log_sum_exp_runs_along_any_axis() -> None:
    logs = np.log(np.array([[1.0, 2, 3], [4, 5, 6]]))
    assert np.exp(log_sum_exp(logs)) == pytest.approx([6, 15])
    assert np.exp(log_sum_exp(logs, axis=0)) == pytest.approx([5, 7, 9])
    assert log_sum_exp(np.zeros((2, 0))).tolist() == [-np.inf, -np.inf]
    assert log_sum_exp(np.full((2, 3), -np.inf), axis=0).tolist() == [-np.inf] * 3


@given(logs=LOGS)
def test_softmax_gives_probabilities_or_zeros(logs: list[float]) -> None:
    found = softmax(np.array(logs))
    total = math.fsum(map(math.exp, logs))
    expected = [math.exp(log) / total if total else 0.0 for log in logs]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=6), logs=LOGS)
def test_the_effective_size_counts_each_particle_of_a_row(
    counts: list[int], logs: list[float]
) -> None:
    n = min(len(counts), len(logs))
    rows = [math.exp(log) for log in logs[:n]]
    weights = [w / c for w, c in zip(rows, counts, strict=False) for _ in range(c)]
    squares = sum(w * w for w in weights)
    expected = sum(weights) ** 2 / squares if squares else 0.0
    assert effective_size(np.array(logs[:n]), np.array(counts[:n])) == pytest.approx(expected)


def test_equal_particles_are_all_effective() -> None:
    assert effective_size(
        np.log(np.array([0.25, 0.5, 0.25])), np.array([1, 2, 1])
    ) == pytest.approx(4)
    assert effective_size(np.array([0.0, -np.inf]), np.array([1, 3])) == 1


def test_draws_follow_their_shares_and_avoid_the_impossible() -> None:
    logs = np.log(np.array([0.1, 0.2, 0.7]))[None] + 5
    logs = np.insert(logs, 1, -np.inf, axis=1)
    found = draw(np.repeat(logs, 20_000, axis=0), np.random.default_rng(1))
    counts = np.bincount(found, minlength=4)
    assert counts[1] == 0
    expected = np.array([0.1, 0.2, 0.7]) * 20_000
    # χ² with 2 degrees of freedom exceeds 13.8 once in a thousand seeds
    assert float(((counts[[0, 2, 3]] - expected) ** 2 / expected).sum()) < 13.8
    assert draw(np.full((2, 3), -np.inf), np.random.default_rng(1)).tolist() == [0, 0]


def test_each_document_and_seed_has_random_numbers_of_its_own() -> None:
    draws = {(s, d): rng_for(s, d).random() for s in (0, 1) for d in ("", "a", "b", "ä")}
    assert len(set(draws.values())) == 8
    assert rng_for(1, "a").random() == draws[1, "a"]


def test_random_numbers_are_the_same_in_another_process() -> None:
    program = "from decoders.numerics import rng_for; print(rng_for(3, 'talk-7').random())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == rng_for(3, "talk-7").random()
