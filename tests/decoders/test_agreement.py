"""Decoders against each other on problems of every kind, small enough to enumerate, or long.

Truth is `exhaustive`, itself checked against the definition in `test_exhaustive.py`. On tables,
`test_laws.py` holds each decoder against it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import (
    DYADIC,
    LENGTHS,
    SEEDS,
    SOME_LENGTHS,
    ExactMatch,
    random_pairwise,
    random_problem,
    random_unary,
    rng,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.beam import beam, full_width
from decoders.exhaustive import exhaustive
from decoders.ffbs import ffbs
from decoders.greedy import greedy
from decoders.mbr import mbr
from decoders.problem import Array, DocumentProblem, Indices, Path, ScoreError
from decoders.random_beam import random_beam
from decoders.result import SearchResult
from decoders.search import Options, decode
from decoders.smc import smc
from decoders.survivors import survivors
from decoders.sweeps import sweeps
from decoders.table import DECODERS
from decoders.viterbi import viterbi
from decoders.weighted_sum import WeightedSum

Values: TypeAlias = Sequence[float] | None
Build: TypeAlias = Callable[[list[int], int, Values], DocumentProblem]
VALUES = st.sampled_from([None, *DYADIC])


def history(lengths: list[int], seed: int, values: Values) -> HistoryTable:
    return random_problem(None, lengths, rng(seed), values)


def second(lengths: list[int], seed: int, values: Values) -> HistoryTable:
    return random_problem(2, lengths, rng(seed), values)


def mixed(lengths: list[int], seed: int, values: Values) -> WeightedSum:
    parts: list[tuple[float, DocumentProblem]] = [
        (0.5, random_unary(lengths, seed, values)),
        (0.0, history(lengths, seed, values)),
        (2.0, random_pairwise(lengths, seed + 1, values)),
    ]
    return WeightedSum(parts)


def mixed_third(lengths: list[int], seed: int, values: Values) -> WeightedSum:
    third = random_problem(3, lengths, rng(seed + 2), values)
    return WeightedSum([(1, random_pairwise(lengths, seed, values)), (0.5, third)])


def mixed_unbounded(lengths: list[int], seed: int, values: Values) -> WeightedSum:
    return WeightedSum([(0.25, mixed(lengths, seed, values)), (1, history(lengths, seed, values))])


class Hashed(DocumentProblem):
    """A random function of the whole history: scores picked by the sum of the choices' codes."""

    lengths: tuple[int, ...] = ()
    order = None

    def __init__(self, lengths: list[int], seed: int, values: Values) -> None:
        self.lengths = tuple(lengths)
        (self.values,) = random_problem(0, (64,), rng(seed), values).tables
        shape = (len(lengths), max(lengths, default=0))
        self.codes = rng(seed).integers(2**20, size=shape)

    def initial(self) -> Indices:
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Array, tuple[Indices, int]]:
        return self._picked(states[:, None], np.arange(self.lengths[t]), t), (states, t)

    def select(
        self, successors: tuple[Indices, int], parents: Indices, choices: Indices
    ) -> Indices:
        states, t = successors
        return np.asarray(states[parents] + self.codes[t, choices])

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        paths = paths[:, : t + horizon + 1]
        sentences = np.arange(paths.shape[1])
        codes = self.codes[sentences, paths]
        scores = self._picked(codes.cumsum(axis=1) - codes, paths, sentences)
        return np.asarray(scores[:, t:].sum(axis=1))

    def _picked(self, states: Indices, choices: Indices, t: int | Indices) -> Array:
        return np.asarray(self.values[((states + t) * 40_503 + choices * 7_919 >> 5) % 64])


FINITE: list[Build] = [random_unary, random_pairwise, mixed, second, mixed_third]
ANY_ORDER: list[Build] = [*FINITE, history, mixed_unbounded, Hashed]


def decode_cheaply(name: str, problem: DocumentProblem) -> SearchResult:
    """With few particles, a narrow beam and so on."""
    options, row = Options(scale=0.5), DECODERS[name]
    for few in (Options(particles=8), Options(samples=2), Options(lag=1), Options(width=2)):
        given = few.given()
        if all(row.takes(o) and not row.idle(o, given, problem.order) for o in given):
            options = dataclasses.replace(options, **few.given())  # type: ignore[arg-type]
    return decode(problem, name, options, utility=ExactMatch())


@settings(max_examples=50)
@given(
    build=st.sampled_from(FINITE), lengths=LENGTHS, seed=SEEDS, values=VALUES, n=st.integers(1, 30)
)
def test_viterbi_equals_enumeration_ties_and_lists_included(
    build: Build, lengths: list[int], seed: int, values: Values, n: int
) -> None:
    problem = build(lengths, seed, values)
    paths = viterbi(problem, n_best=n)
    assert paths == exhaustive(problem, n_best=n)
    assert viterbi(problem) == paths[:1]
    assert all(path.score == path_score(problem, path.choices) for path in paths)
    assert greedy(problem).score <= paths[0].score
    assert beam(problem, width=n % 9 + 1)[0].score <= paths[0].score


@settings(max_examples=50)
@given(build=st.sampled_from(ANY_ORDER), lengths=LENGTHS, seed=SEEDS, values=VALUES, n=SEEDS)
def test_a_full_beam_lists_what_enumeration_lists_in_the_same_order(
    build: Build, lengths: list[int], seed: int, values: Values, n: int
) -> None:
    problem = build(lengths, seed, values)
    paths = math.prod(lengths)
    n_best = n % paths + 1
    assert beam(problem, width=paths, n_best=n_best) == exhaustive(problem, n_best=n_best)
    width = full_width(lengths, problem.order)
    assert beam(problem, width=width, n_best=n_best) == exhaustive(problem, n_best=n_best)


def test_all_agree_on_a_thousand_sentences_of_order_0() -> None:
    lengths = rng(2).integers(1, 5, size=1000).tolist()
    problem = random_unary(lengths, 2, tuple(np.arange(-8, 8) / 4))
    before = [1, *lengths]
    pairs = Pairwise([np.tile(s, (k, 1)) for k, s in zip(before, problem.scores, strict=False)])
    path = greedy(problem)
    assert [path] == viterbi(problem) == viterbi(pairs)
    assert [path] == beam(problem, width=4) == beam(pairs, width=4)


@pytest.mark.parametrize("name", DECODERS)
def test_all_agree_where_there_is_nothing_to_choose(name: str) -> None:
    for build in (random_pairwise, Hashed):
        problem = build([1] * 300, 3, DYADIC[0])
        if DECODERS[name].serves(problem.order):
            path = Path((0,) * 300, path_score(problem, [0] * 300))
            assert decode_cheaply(name, problem).paths == (path,)


def test_a_tie_is_broken_alike_by_all() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[0, 1.0], [1, 0]])])
    expected = Path((1, 0), 1.0)  # by hand
    assert viterbi(problem)[0] == beam(problem, width=2)[0] == exhaustive(problem)[0] == expected
    assert survivors(problem, rng=rng()) == sweeps(problem, rng=rng()) == expected
    assert random_beam(problem, width=4, alpha=1.0, rng=rng())[0] == expected


@settings(max_examples=50)
@given(
    name=st.sampled_from(list(DECODERS)),
    build=st.sampled_from(ANY_ORDER),
    lengths=LENGTHS,
    seed=SEEDS,
    values=VALUES,
)
def test_the_comparison_with_the_best_known_path_is_right(
    name: str, build: Build, lengths: list[int], seed: int, values: Values
) -> None:
    problem = build(lengths, seed, values)
    if not DECODERS[name].serves(problem.order):
        return
    optimum = exhaustive(problem)[0].score
    found = decode(problem, name, Options(scale=0.7), document="talk", utility=ExactMatch())
    for path in found.paths:
        assert path.score == path_score(problem, path.choices)
    assert found.paths[0].score <= found.best_score <= optimum
    assert found.baseline_score == path_score(problem, (0,) * len(lengths))
    assert found.gap >= 0
    assert found.optimal or problem.order is None
    if found.optimal:
        assert found.best_score == optimum
    if found.exact:
        assert found.paths[0].score == optimum
        assert found.gap == 0


@settings(max_examples=50)
@given(
    build=st.sampled_from(ANY_ORDER),
    lengths=SOME_LENGTHS,
    seed=SEEDS,
    values=st.sampled_from(DYADIC),
    t=st.integers(0, 4),
    block=st.integers(1, 3),
)
def test_rescoring_is_what_paths_differ_by(
    build: Build, lengths: list[int], seed: int, values: Values, t: int, block: int
) -> None:
    problem, draws, t = build(lengths, seed, values), rng(seed), t % len(lengths)
    paths = np.tile(draws.integers(lengths), (6, 1))
    paths[:, t : t + block] = draws.integers(lengths, size=(6, len(lengths)))[:, t : t + block]
    reach = block - 1 + (len(lengths) if problem.order is None else problem.order)
    sums = problem.rescore(paths, t, reach)
    assert sums.tolist() == DocumentProblem.rescore(problem, paths, t, reach).tolist()
    scores = np.array([path_score(problem, path) for path in paths.tolist()])
    if np.isfinite(scores).all():
        assert (sums - sums[0]).tolist() == (scores - scores[0]).tolist()


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("build", ANY_ORDER)
def test_one_sentence_is_searched_exactly(name: str, build: Build) -> None:
    problem = build([4], 6, None)
    if DECODERS[name].serves(problem.order) and name != "survivors":
        (best, *_) = exhaustive(problem)
        found = decode(problem, name, Options(scale=0.7), utility=ExactMatch())
        assert found.best_score == best.score
        if name not in ("mbr", "smc", "ffbs", "random-beam"):  # these draw, or value agreement
            assert found.paths == (best,)


@pytest.mark.parametrize("name", [name for name in DECODERS if name != "exhaustive"])
@pytest.mark.parametrize(("build", "sentences"), [(random_pairwise, 1000), (Hashed, 400)])
def test_long_documents_are_decoded(name: str, build: Build, sentences: int) -> None:
    problem = build([3, 1, 1, 1] * (sentences // 4), 7, DYADIC[0])
    if not DECODERS[name].serves(problem.order):
        return
    found = decode_cheaply(name, problem)
    path = found.paths[0]
    assert path.score == path_score(problem, path.choices)
    if problem.order is not None:
        assert found.best_score == viterbi(problem)[0].score


ALONE: dict[str, Callable[[DocumentProblem], Any]] = {
    "greedy": greedy,
    "viterbi": viterbi,
    "beam": partial(beam, width=2),
    "survivors": lambda problem: survivors(problem, rng=rng()),
    "random-beam": lambda problem: random_beam(problem, width=2, alpha=1.0, rng=rng()),
    "smc": lambda problem: smc(problem, alpha=1.0, rng=rng()),
    "ffbs": lambda problem: ffbs(problem, alpha=1.0, rng=rng()),
    "mbr": lambda problem: mbr(problem, utility=ExactMatch(), alpha=1.0, rng=rng()),
    "sweeps": lambda problem: sweeps(problem, rng=rng()),
    "exhaustive": exhaustive,
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_each_decoder_refuses_nan_by_sentence_and_candidate(name: str, order: int | None) -> None:
    if DECODERS[name].serves(order):
        last = np.array([0, np.nan]) if order == 0 else np.array([[0, np.nan]])
        with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN") as caught:
            ALONE[name](HistoryTable([np.zeros(1), last], order))
        assert caught.value.problem is None


@pytest.mark.parametrize("name", DECODERS)
def test_each_decoder_finds_the_empty_path(name: str) -> None:
    found = ALONE[name](Unary([]))
    paths = getattr(found, "paths", found)
    assert (paths if isinstance(paths, Path) else paths[0]) == Path((), 0.0)
