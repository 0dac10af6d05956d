"""Decoders against each other on documents small enough to enumerate.

Truth is `exhaustive`, itself checked against the definition in `test_exhaustive.py`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.beam import beam, full_width
from decoders.chains import Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.greedy import greedy
from decoders.lockstep import path_score
from decoders.problem import DocumentProblem, Indices, Path
from decoders.random_beam import random_beam
from decoders.result import SearchResult
from decoders.search import Options, decode
from decoders.survivors import survivors
from decoders.sweeps import sweeps
from decoders.table import DECODERS
from decoders.tables import HistoryTable
from decoders.viterbi import viterbi
from decoders.weighted import WeightedSum

Array: TypeAlias = NDArray[np.float64]
Build: TypeAlias = Callable[[list[int], int, Array | None], DocumentProblem]
LENGTHS = st.lists(st.integers(1, 4), max_size=5)
SEEDS = st.integers(0, 2**32 - 1)
EXACT_SUMS = {  # dyadic: no sum is rounded, so ties are ties in every order of work
    "few": np.array([-1.0, -0.5, 0.0]),
    "with -inf": np.array([-np.inf, -np.inf, -0.25, 0.0, 0.75]),
    "mostly -inf": np.array([-np.inf] * 5 + [0.5]),
    "equal": np.array([-2.0]),
}


def draw(shapes: list[tuple[int, ...]], seed: int, values: Array | None) -> list[Array]:
    """Arrays of the given values, or of any floats, that raise when written to."""
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=s) if values is None else rng.choice(values, size=s) for s in shapes]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def unary(lengths: list[int], seed: int, values: Array | None) -> Unary:
    return Unary(draw([(k,) for k in lengths], seed, values))


def pairwise(lengths: list[int], seed: int, values: Array | None) -> Pairwise:
    return Pairwise(draw(list(zip([1, *lengths], lengths, strict=False)), seed, values))


def history(lengths: list[int], seed: int, values: Array | None) -> HistoryTable:
    shapes = [tuple(lengths[: t + 1]) for t in range(len(lengths))]
    return HistoryTable(draw(shapes, seed, values))


def mixed(lengths: list[int], seed: int, values: Array | None) -> WeightedSum:
    parts: list[tuple[float, DocumentProblem]] = [
        (0.5, unary(lengths, seed, values)),
        (0.0, history(lengths, seed, values)),
        (2.0, pairwise(lengths, seed + 1, values)),
    ]
    return WeightedSum(parts)


def mixed_unbounded(lengths: list[int], seed: int, values: Array | None) -> WeightedSum:
    return WeightedSum([(0.25, mixed(lengths, seed, values)), (1, history(lengths, seed, values))])


def second(lengths: list[int], seed: int, values: Array | None) -> HistoryTable:
    shapes = [tuple(lengths[max(0, t - 2) : t + 1]) for t in range(len(lengths))]
    return HistoryTable(draw(shapes, seed, values), order=2)


def mixed_third(lengths: list[int], seed: int, values: Array | None) -> WeightedSum:
    shapes = [tuple(lengths[max(0, t - 3) : t + 1]) for t in range(len(lengths))]
    third = HistoryTable(draw(shapes, seed + 2, values), order=3)
    return WeightedSum([(1, pairwise(lengths, seed, values)), (0.5, third)])


class Hashed(DocumentProblem):
    """A random function of the whole history: scores picked by the sum of the choices' codes."""

    lengths: tuple[int, ...] = ()
    order = None

    def __init__(self, lengths: list[int], seed: int, values: Array | None) -> None:
        self.lengths = tuple(lengths)
        (self.values,) = draw([(64,)], seed, values)
        shape = (len(lengths), max(lengths, default=0))
        self.codes = np.random.default_rng(seed).integers(2**20, size=shape)

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


FIRST_ORDER: list[Build] = [unary, pairwise, mixed]
FINITE: list[Build] = [*FIRST_ORDER, second, mixed_third]
ANY_ORDER: list[Build] = [*FINITE, history, mixed_unbounded, Hashed]
LONG: list[Build] = [unary, pairwise, second, Hashed]  # a table of all histories grows too large


class ExactMatch:
    """The utility of being right."""

    def expected(self, t: int, marginals: Array) -> Array:
        return marginals


def found_by(name: str, problem: DocumentProblem, n_best: int = 1) -> SearchResult:
    options = Options(scale=0.7, n_best=n_best)
    return decode(problem, name, options, document="talk", utility=ExactMatch())


def cheaply_found_by(name: str, problem: DocumentProblem) -> SearchResult:
    """With little to look at."""
    options, row = Options(scale=0.5), DECODERS[name]
    for few in (Options(particles=8), Options(samples=2), Options(lag=1), Options(width=2)):
        given = few.given()
        if all(row.takes(o) and not row.idle(o, given, problem.order) for o in given):
            options = dataclasses.replace(options, **few.given())  # type: ignore[arg-type]
    return decode(problem, name, options, utility=ExactMatch())


@pytest.mark.parametrize("build", FINITE)
@settings(max_examples=60, deadline=None)
@given(
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from(list(EXACT_SUMS.values())),
    n=st.integers(1, 30),
)
def test_viterbi_equals_enumeration_ties_and_lists_included(
    build: Build, lengths: list[int], seed: int, values: Array, n: int
) -> None:
    problem = build(lengths, seed, values)
    assert viterbi(problem) == exhaustive(problem)
    assert viterbi(problem, n_best=n) == exhaustive(problem, n_best=n)


@pytest.mark.parametrize("build", FINITE)
@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS)
def test_viterbi_equals_enumeration_bit_for_bit_on_any_floats(
    build: Build, lengths: list[int], seed: int
) -> None:
    problem = build(lengths, seed, None)
    paths = viterbi(problem, n_best=20)
    assert paths == exhaustive(problem, n_best=20)
    assert paths[:1] == viterbi(problem)
    assert all(path.score == path_score(problem, path.choices) for path in paths)


@pytest.mark.parametrize("build", ANY_ORDER)
@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, values=st.sampled_from([None, *EXACT_SUMS.values()]), n=SEEDS)
def test_a_full_beam_lists_what_enumeration_lists_in_the_same_order(
    build: Build, lengths: list[int], seed: int, values: Array | None, n: int
) -> None:
    problem = build(lengths, seed, values)
    paths = math.prod(lengths)
    n_best = n % paths + 1
    assert beam(problem, width=paths, n_best=n_best) == exhaustive(problem, n_best=n_best)
    width = full_width(lengths, problem.order)
    assert beam(problem, width=width, n_best=n_best) == exhaustive(problem, n_best=n_best)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, width=st.integers(1, 9))
def test_any_beam_lists_what_enumeration_lists_on_order_0(
    lengths: list[int], seed: int, width: int
) -> None:
    problem = unary(lengths, seed, EXACT_SUMS["few"])
    assert beam(problem, width=width, n_best=width) == exhaustive(problem, n_best=width)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, values=st.sampled_from(list(EXACT_SUMS.values())))
def test_greedy_equals_enumeration_on_order_0(lengths: list[int], seed: int, values: Array) -> None:
    problem = unary(lengths, seed, values)
    assert [greedy(problem)] == exhaustive(problem)


@settings(max_examples=60, deadline=None)
@given(
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from([None, *EXACT_SUMS.values()]),
    width=st.integers(1, 9),
)
def test_no_decoder_beats_viterbi(
    lengths: list[int], seed: int, values: Array | None, width: int
) -> None:
    problem = mixed(lengths, seed, values)
    best = viterbi(problem)[0].score
    assert greedy(problem).score <= best
    assert beam(problem, width=width)[0].score <= best


def test_all_agree_on_a_thousand_sentences_of_order_0() -> None:
    rng = np.random.default_rng(2)
    scores = [rng.integers(-8, 8, size=k) / 4 for k in rng.integers(1, 5, size=1000)]
    matrices = [np.tile(s, (len(p), 1)) for p, s in zip([[0], *scores], scores, strict=False)]
    path = greedy(Unary(scores))
    assert [path] == viterbi(Unary(scores)) == viterbi(Pairwise(matrices))
    assert [path] == beam(Unary(scores), width=4) == beam(Pairwise(matrices), width=4)


def test_all_agree_where_there_is_nothing_to_choose() -> None:
    for build in (pairwise, Hashed):
        problem = build([1] * 1000, 3, EXACT_SUMS["few"])
        path = Path((0,) * 1000, path_score(problem, [0] * 1000))
        for name, row in DECODERS.items():
            if row.serves(problem.order):
                assert cheaply_found_by(name, problem).paths == (path,), name


def test_a_tie_is_broken_alike_by_all() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[0, 1.0], [1, 0]])])
    expected = Path((1, 0), 1.0)  # by hand
    assert viterbi(problem)[0] == beam(problem, width=2)[0] == exhaustive(problem)[0] == expected
    rng = np.random.default_rng(1)
    assert survivors(problem, rng=rng) == sweeps(problem, rng=rng) == expected
    assert random_beam(problem, width=4, alpha=1.0, rng=rng)[0] == expected


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=25, deadline=None)
@given(
    build=st.sampled_from(ANY_ORDER),
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from([None, *EXACT_SUMS.values()]),
)
def test_what_is_said_of_a_search_is_true(
    name: str, build: Build, lengths: list[int], seed: int, values: Array | None
) -> None:
    problem = build(lengths, seed, values)
    if not DECODERS[name].serves(problem.order):
        return
    optimum = exhaustive(problem)[0]
    found = found_by(name, problem)
    for path in found.paths:
        assert path.score == path_score(problem, path.choices)
    assert found.paths[0].score <= found.best_score <= optimum.score
    assert found.baseline_score == path_score(problem, (0,) * len(lengths))
    assert found.gap >= 0
    assert found.optimal or problem.order is None
    if found.optimal:
        assert found.best_score == optimum.score
    if found.exact:
        assert found.paths[0].score == optimum.score
        assert found.gap == 0


@pytest.mark.parametrize("build", ANY_ORDER)
@settings(max_examples=25, deadline=None)
@given(
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from(list(EXACT_SUMS.values())),
    t=st.integers(0, 4),
    block=st.integers(1, 3),
)
def test_rescoring_is_what_paths_differ_by(
    build: Build, lengths: list[int], seed: int, values: Array, t: int, block: int
) -> None:
    if not lengths:
        return
    problem, rng, t = build(lengths, seed, values), np.random.default_rng(seed), t % len(lengths)
    paths = np.tile(rng.integers(lengths), (6, 1))
    paths[:, t : t + block] = rng.integers(lengths, size=(6, len(lengths)))[:, t : t + block]
    reach = block - 1 + (len(lengths) if problem.order is None else problem.order)
    sums = problem.rescore(paths, t, reach)
    assert sums.tolist() == DocumentProblem.rescore(problem, paths, t, reach).tolist()
    scores = np.array([path_score(problem, path) for path in paths.tolist()])
    if np.isfinite(scores).all():
        assert (sums - sums[0]).tolist() == (scores - scores[0]).tolist()


@pytest.mark.parametrize("name", [n for n, row in DECODERS.items() if "n_best" in row.options])
@settings(max_examples=25, deadline=None)
@given(
    build=st.sampled_from(ANY_ORDER),
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from(list(EXACT_SUMS.values())),
    n_best=st.integers(1, 12),
)
def test_lists_are_distinct_paths_in_the_order_of_the_rule(
    name: str, build: Build, lengths: list[int], seed: int, values: Array, n_best: int
) -> None:
    problem = build(lengths, seed, values)
    if not DECODERS[name].serves(problem.order):
        return
    paths = found_by(name, problem, n_best).paths
    assert 1 <= len(paths) <= n_best
    assert len({path.choices for path in paths}) == len(paths)
    assert list(paths) == sorted(paths, key=lambda path: (-path.score, path.choices[::-1]))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("build", ANY_ORDER)
def test_impossible_documents_leave_the_first_candidates(name: str, build: Build) -> None:
    problem = build([2, 3, 2], 5, np.array([-np.inf]))
    if DECODERS[name].serves(problem.order):
        found = found_by(name, problem)
        assert found.paths == (Path((0, 0, 0), -np.inf),)
        assert found.gap == 0


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("build", ANY_ORDER)
def test_one_sentence_is_searched_exactly(name: str, build: Build) -> None:
    problem = build([4], 6, None)
    if DECODERS[name].serves(problem.order) and name != "survivors":
        (best, *_) = exhaustive(problem)
        found = found_by(name, problem)
        assert found.best_score == best.score
        if name not in ("mbr", "smc", "ffbs", "random-beam"):  # these draw, or value agreement
            assert found.paths == (best,)


@pytest.mark.parametrize("name", [name for name in DECODERS if name != "exhaustive"])
@pytest.mark.parametrize("build", LONG)
def test_a_thousand_sentences_are_decoded(name: str, build: Build) -> None:
    problem = build([3, 1, 1, 1] * 250, 7, EXACT_SUMS["few"])
    if not DECODERS[name].serves(problem.order):
        return
    found = cheaply_found_by(name, problem)
    path = found.paths[0]
    assert path.score == path_score(problem, path.choices)
    if problem.order is not None:
        assert found.best_score == viterbi(problem)[0].score
