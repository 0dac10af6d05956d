"""Decoding by name: arguments, what is proved and what is known, many documents at once."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import (
    BUILDS,
    DYADIC,
    LENGTHS,
    SEEDS,
    BothSides,
    Build,
    ExactMatch,
    pairs,
    second,
    unary,
    unbounded,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.beam import beam, random_beam, survivors
from decoders.ffbs import ffbs
from decoders.laws import SCALED
from decoders.marginals import rng_for
from decoders.problem import DocumentProblem, Path, ScoreError
from decoders.result import SearchResult
from decoders.search import decode, decode_all
from decoders.smc import smc
from decoders.sweeps import sweeps
from decoders.table import DECODERS, SEED, Options
from decoders.viterbi import exhaustive

UNARY, PAIRS = (build((5,) * 6, 11) for build in (unary, pairs))
SECOND, TABLE = (build((3,) * 5, 11) for build in (second, unbounded))


def found_by(name: str, problems: Sequence[DocumentProblem]) -> list[SearchResult]:
    """What a decoder finds with a scale and a utility at hand."""
    utilities = [ExactMatch()] * len(problems)
    documents = [f"talk {d}" for d in range(len(problems))]
    return decode_all(problems, name, SCALED, documents=documents, utilities=utilities)


@pytest.mark.parametrize(("name", "decoder", "options"), [
    ("beam", beam, {"width": 3, "threshold": 1.5, "n_best": 2}),
    ("survivors", survivors, {"merge": "sample", "alpha": 1.0}),
    ("random-beam", random_beam, {"width": 2, "alpha": 0.4, "n_best": 2}),
    ("smc", smc,
        {"particles": 5, "temper": 0.5, "ess_threshold": 1.0, "resampling": "residual",
        "alpha": 2.0, "lag": 2, "n_best": 2}),
    ("ffbs", ffbs, {"samples": 3, "particles": 4, "lag": 1, "alpha": 2.0, "n_best": 2}),
    ("sweeps", sweeps, {"width": 1, "block": 2, "horizon": 1, "gibbs": 2, "alpha": 1.0}),
], ids=lambda value: value if isinstance(value, str) else None)  # fmt: skip
@pytest.mark.parametrize("seed", [None, 7])
def test_decoding_by_name_is_calling_the_decoder_with_the_random_numbers_of_the_document(
    name: str, decoder: Any, options: dict[str, Any], seed: int | None
) -> None:
    own = {} if name == "beam" else {"rng": rng_for(SEED if seed is None else seed, "talk")}
    expected = decoder(TABLE, **options, **own)
    result = decode(TABLE, name, Options(**options, seed=seed), document="talk")
    one = expected if isinstance(expected, SearchResult) else None
    paths = one.paths if one else [expected] if isinstance(expected, Path) else expected
    assert result.paths == tuple(paths)
    if one:
        assert result.posterior is not None
        assert one.posterior is not None
        assert np.array_equal(result.posterior.draws, one.posterior.draws)
        assert result.log_normaliser == one.posterior.log_normaliser


@settings(max_examples=60)
@given(
    name=st.sampled_from(list(DECODERS)), build=st.sampled_from(BUILDS), lengths=LENGTHS,
    seed=SEEDS, values=st.sampled_from([None, *DYADIC]), gap=st.sampled_from([None, 2]),
)  # fmt: skip
def test_the_comparison_with_the_best_known_path_is_right(
    name: str, build: Build, lengths: list[int], seed: int, values: Any, gap: int | None
) -> None:
    problem = build(lengths, seed, values)
    if not DECODERS[name].serves(problem.order):
        return
    optimum = exhaustive(problem)[0].score
    how = replace(SCALED, gap=gap)
    result = decode(problem, name, how, document="talk", utility=ExactMatch())
    assert result.baseline_score == path_score(problem, (0,) * len(lengths))
    assert max(result.score, result.baseline_score) <= result.best_score <= optimum
    assert (result.gap == 0) == (result.best_score == result.score)
    assert result.gap == 0 or result.gap == result.best_score - result.score
    assert result.optimal == (result.exact or (gap is not None and problem.order is not None))
    if result.optimal:
        assert result.best_score == optimum
    if result.exact:
        assert (result.score, result.gap, result.optimal) == (optimum, 0, True)


@pytest.mark.parametrize(
    ("problem", "name", "options", "exact"),
    [
        (PAIRS, "auto", {}, True),
        (SECOND, "auto", {}, True),
        (TABLE, "auto", {}, False),
        (TABLE, "auto", {"width": 81}, True),
        (TABLE, "exhaustive", {"gap": 2}, True),
        (PAIRS, "survivors", {"merge": "mean", "alpha": 1.0}, False),
        (UNARY, "smc", {"alpha": 1.0}, False),
        (TABLE, "beam", {"width": 81}, True),
        (TABLE, "beam", {"width": 80}, False),
        (TABLE, "beam", {"width": 81, "threshold": 9.0}, False),
        (HistoryTable([np.zeros(9)]), "beam", {"width": 1}, True),
        (SECOND, "beam", {"width": 9}, True),
        (SECOND, "beam", {"width": 8}, False),
        (SECOND, "sweeps", {"width": 9}, True),
        (SECOND, "random-beam", {"width": 999, "alpha": 1.0}, False),
        (BothSides([np.zeros(2)] * 2, 1.0), "sweeps", {"width": 999}, False),
    ],
)
def test_a_search_is_exact_by_the_order_or_a_beam_that_keeps_every_context(
    problem: DocumentProblem, name: str, options: dict[str, Any], exact: bool
) -> None:
    result = decode(problem, name, Options(**options))
    assert result.exact == exact
    assert result.optimal == exact
    compared = decode(problem, name, Options(**{"gap": 2, **options}))
    assert compared.optimal == (exact or problem.order is not None)
    assert compared.choices == result.choices


def test_on_unbounded_order_the_gap_is_to_the_best_known_path() -> None:
    result = decode(TABLE, "greedy")
    assert result.best_score == max(result.score, result.baseline_score)
    sought = decode(TABLE, "greedy", Options(gap=2))
    known = sweeps(TABLE, rng=rng_for(SEED, ""), width=2)
    assert sought.best_score == max(known.score, sought.score, sought.baseline_score)
    assert decode(TABLE, "greedy", Options(gap=81)).best_score == exhaustive(TABLE)[0].score
    trap = HistoryTable([np.array([1.0, 0, 0]), np.array([[0.0], [2], [9]])])
    lost = decode(trap, "greedy", Options(gap=3))
    assert (lost.score, lost.best_score, lost.gap, lost.optimal) == (1, 9, 8, False)
    first = decode(HistoryTable([np.array([0, 1.0]), np.array([[5.0], [0]])]), "greedy")
    assert (first.score, first.best_score, first.gap) == (1, 5, 4)


def test_a_gap_between_impossible_paths_is_zero_and_to_a_possible_one_infinite() -> None:
    impossible = HistoryTable([np.full(2, -np.inf), np.zeros((2, 2))])
    assert decode(impossible, "greedy").gap == 0
    result = decode(
        Pairwise([np.array([[1.0, 0]]), np.array([[-np.inf], [0]])]), "greedy", Options(gap=1)
    )
    assert (result.score, result.best_score, result.gap) == (-np.inf, 0, np.inf)
    assert decode(Unary([np.full(2, -np.inf)]), "ffbs", SCALED).log_normaliser is None
    assert SearchResult((Path((1, 0), -2.0), Path((0, 0), -3.0)), best_score=-1.5).gap == 0.5
    assert SearchResult((Path((0,), -math.inf),), best_score=-math.inf).gap == 0


# Many documents at once
def test_decoding_all_chooses_a_decoder_for_each() -> None:
    together = found_by("auto", [SECOND, Unary([]), TABLE])
    assert [result.decoder for result in together] == ["viterbi", "viterbi", "beam"]
    assert together[-1] == decode(TABLE, options=SCALED, document="talk 2", utility=ExactMatch())
    assert found_by("auto", []) == []


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_a_fault_names_sentence_candidate_and_among_many_problems_the_problem(
    name: str, order: int | None
) -> None:
    if DECODERS[name].serves(order):
        last = np.array([0, np.nan]) if order == 0 else np.array([[0, np.nan]])
        bad = HistoryTable([np.zeros(1), last], order)
        with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN") as caught:
            found_by(name, [UNARY, Unary([]), bad])
        assert caught.value.position == 2
