"""Decoding by name: options, what is proved and what is known, many documents at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.arrays import Chain, HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.beam import beam
from decoders.exhaustive import exhaustive
from decoders.greedy import greedy
from decoders.laws import ExactMatch
from decoders.marginals import marginals
from decoders.numerics import rng_for
from decoders.problem import (
    Answer,
    DocumentProblem,
    Floats,
    Indices,
    Path,
    ScoreError,
    UnsuitedDecoder,
)
from decoders.result import SearchResult
from decoders.search import (
    SEED,
    Options,
    ScaleMissing,
    decode,
    decode_all,
)
from decoders.smc import smc
from decoders.survivors import survivors
from decoders.sweeps import sweeps
from decoders.table import ANY, AUTO_WIDTH, DECODERS
from decoders.viterbi import viterbi

RNG = np.random.default_rng(11)
UNARY = Unary([RNG.normal(size=5) for _ in range(6)])
PAIRWISE = Pairwise([RNG.normal(size=(1 if t == 0 else 5, 5)) for t in range(6)])
SECOND = HistoryTable([RNG.normal(size=(3,) * min(t + 1, 3)) for t in range(5)], order=2)
TABLE = HistoryTable([RNG.normal(size=(3,) * (t + 1)) for t in range(5)])
SCALED = Options(scale=0.8)


def found_by(name: str, problems: Sequence[DocumentProblem]) -> list[SearchResult]:
    """What a decoder finds with a scale and a utility at hand."""
    utilities = [ExactMatch()] * len(problems)
    documents = [f"talk {d}" for d in range(len(problems))]
    return decode_all(problems, name, SCALED, documents=documents, utilities=utilities)


def test_decoding_by_name_is_calling_the_decoder() -> None:
    assert decode(PAIRWISE, "greedy").paths == (greedy(PAIRWISE),)
    assert decode(SECOND, "viterbi").paths == tuple(viterbi(SECOND))
    assert decode(PAIRWISE, "viterbi", Options(n_best=3)).paths == tuple(
        viterbi(PAIRWISE, n_best=3)
    )
    assert decode(TABLE, "beam", Options(width=3, threshold=1.5, n_best=2)).paths == tuple(
        beam(TABLE, width=3, threshold=1.5, n_best=2)
    )
    assert decode(TABLE, "exhaustive", Options(n_best=4)).paths == tuple(
        exhaustive(TABLE, n_best=4)
    )


def test_decoders_that_draw_take_their_numbers_from_seed_and_document() -> None:
    options = Options(particles=5, temper=0.5, ess_threshold=1.0, resampling="residual", alpha=2.0)
    for seed in (None, 1, 7):
        found = decode(TABLE, "smc", dataclasses.replace(options, seed=seed), document="talk")
        expected = smc(
            TABLE,
            alpha=2.0,
            rng=rng_for(SEED if seed is None else seed, "talk"),
            particles=5,
            temper=0.5,
            ess_threshold=1.0,
            resampling="residual",
        )
        assert found.paths == expected.paths
        assert found.posterior is not None
        assert expected.posterior is not None
        assert np.array_equal(found.posterior.draws, expected.posterior.draws)
    found = decode(TABLE, "survivors", Options(merge="sample", alpha=1.0, seed=3), document="a")
    assert found.paths[0] == survivors(TABLE, rng=rng_for(3, "a"), merge="sample", alpha=1.0)
    found = decode(TABLE, "sweeps", Options(width=1, block=2, horizon=1, gibbs=2, alpha=1.0))
    assert found.paths[0] == sweeps(
        TABLE, rng=rng_for(SEED, ""), width=1, block=2, horizon=1, gibbs=2, alpha=1.0
    )


def test_the_scale_stands_in_where_alpha_is_not_given() -> None:
    for options, alpha in ((Options(scale=0.4), 0.4), (Options(scale=0.4, alpha=2.0), 2.0)):
        posterior = decode(PAIRWISE, "ffbs", options).posterior
        assert posterior is not None
        assert posterior.log_normaliser == marginals(PAIRWISE, alpha)[1]


def test_the_result_names_the_decoder_and_whether_it_is_exact() -> None:
    found = decode(PAIRWISE)
    assert (found.decoder, found.exact, found.optimal) == ("viterbi", True, True)
    assert decode(SECOND).exact
    assert decode(TABLE).decoder == "beam"
    assert not decode(TABLE).exact
    assert decode(UNARY, "greedy").exact
    assert not decode(PAIRWISE, "greedy").exact
    assert decode(TABLE, "exhaustive").exact
    assert decode(PAIRWISE, "survivors").exact
    assert not decode(PAIRWISE, "survivors", Options(merge="mean", alpha=1.0)).exact
    assert not found_by("smc", [UNARY])[0].exact


def test_a_beam_that_keeps_every_context_is_exact() -> None:
    assert decode(TABLE, "beam", Options(width=3**4)).exact
    assert decode(TABLE, options=Options(width=3**4)).exact
    assert not decode(TABLE, "beam", Options(width=3**4 - 1)).exact
    assert not decode(TABLE, "beam", Options(width=3**4, threshold=9.0)).exact
    assert decode(HistoryTable([np.zeros(9)]), "beam", Options(width=1)).exact
    assert decode(SECOND, "beam", Options(width=9)).exact
    assert not decode(SECOND, "beam", Options(width=8)).exact
    assert decode(SECOND, "sweeps", Options(width=9)).exact
    assert not decode(SECOND, "random-beam", Options(width=999, alpha=1.0)).exact


@pytest.mark.parametrize("problem", [PAIRWISE, SECOND], ids=["order 1", "order 2"])
@pytest.mark.parametrize("name", DECODERS)
def test_on_finite_orders_the_gap_is_to_the_optimum(name: str, problem: DocumentProblem) -> None:
    (found,) = found_by(name, [problem])
    first = (0,) * len(problem.lengths)
    best = exhaustive(problem)[0].score
    assert found.optimal
    assert found.best_score == best
    assert found.gap == best - found.paths[0].score >= 0
    assert found.baseline_score == path_score(problem, first)


def test_on_unbounded_order_the_gap_is_to_the_best_known_path() -> None:
    found = decode(TABLE, "greedy")
    assert (found.optimal, found.exact) == (False, False)
    assert found.best_score == max(found.paths[0].score, found.baseline_score)
    sought = decode(TABLE, "greedy", Options(gap=2))
    known = sweeps(TABLE, rng=rng_for(SEED, ""), width=2)
    assert sought.best_score == max(known.score, sought.paths[0].score, sought.baseline_score)
    assert not sought.optimal
    assert decode(TABLE, "greedy", Options(gap=81)).best_score == exhaustive(TABLE)[0].score
    trap = HistoryTable([np.array([1.0, 0, 0]), np.array([[0.0], [2], [9]])])
    lost = decode(trap, "greedy", Options(gap=3))
    assert (lost.paths[0].score, lost.best_score, lost.gap) == (1, 9, 8)
    first = decode(HistoryTable([np.array([0, 1.0]), np.array([[5.0], [0]])]), "greedy")
    assert (first.paths[0].score, first.best_score, first.gap) == (1, 5, 4)
    assert decode(TABLE, "exhaustive", Options(gap=2)).optimal


def test_a_gap_between_impossible_paths_is_none() -> None:
    impossible = HistoryTable([np.full(2, -np.inf), np.zeros((2, 2))])
    assert decode(impossible, "greedy").gap == 0
    trap = Pairwise([np.array([[1.0, 0]]), np.array([[-np.inf], [0]])])
    found = decode(trap, "greedy")
    assert (found.paths[0].score, found.best_score, found.gap) == (-np.inf, 0, np.inf)


def test_lists_may_be_longer_than_the_beam_is_wide() -> None:
    assert len(decode(TABLE, "beam", Options(n_best=AUTO_WIDTH + 1)).paths) == AUTO_WIDTH + 1
    assert len(decode(TABLE, "beam", Options(width=2, n_best=5)).paths) == 5
    with pytest.raises(ValueError, match="n_best 9, width 8"):
        decode(TABLE, "random-beam", Options(n_best=9, width=8, alpha=1.0))


VALUES: dict[str, object] = {
    "width": 4,
    "threshold": 2.0,
    "merge": "max",
    "particles": 3,
    "resampling": "residual",
    "ess_threshold": 0.5,
    "temper": 0.5,
    "samples": 4,
    "lag": 1,
    "block": 1,
    "horizon": 1,
    "gibbs": 0,
    "alpha": 1.0,
    "seed": 3,
    "utility": "bleu",
    "word_reward": 0.5,
    "spread": 2.0,
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("option", VALUES)
def test_an_option_is_used_or_refused_except_those_that_all_accept(name: str, option: str) -> None:
    options = dataclasses.replace(SCALED, **{option: VALUES[option]})  # type: ignore[arg-type]
    assert options.given() == {option: VALUES[option]}
    if DECODERS[name].takes(option) or option in ("alpha", "seed"):
        assert decode(SECOND, name, options, utility=ExactMatch()).paths
        return
    with pytest.raises(
        UnsuitedDecoder, match=f"^{name} does not use {option}; it is for "
    ) as caught:
        decode(SECOND, name, options, utility=ExactMatch())
    assert name not in str(caught.value).partition("for ")[2].split(", ")


@pytest.mark.parametrize(
    ("name", "option"),
    [("ffbs", "particles"), ("ffbs", "lag"), ("mbr", "particles"), ("mbr", "lag")],
)
def test_what_only_a_particle_filter_uses_is_refused_where_all_paths_are_summed(
    name: str, option: str
) -> None:
    options = dataclasses.replace(SCALED, **{option: VALUES[option]})  # type: ignore[arg-type]
    for problem in (UNARY, PAIRWISE):
        with pytest.raises(UnsuitedDecoder, match=f"^{name} uses {option} above order 1"):
            decode(problem, name, options, utility=ExactMatch())
    assert decode(SECOND, name, options, utility=ExactMatch()).paths


def test_values_cover_every_option_that_decoders_take() -> None:
    assert VALUES.keys() == {f.name for f in dataclasses.fields(Options)} - {
        "n_best",
        "scale",
        "gap",
    }


def test_auto_lets_a_width_pass_and_nothing_else() -> None:
    assert decode(PAIRWISE, "auto", Options(width=3)).decoder == "viterbi"
    with pytest.raises(UnsuitedDecoder, match="viterbi does not use width"):
        decode(PAIRWISE, "viterbi", Options(width=3))
    with pytest.raises(UnsuitedDecoder, match="viterbi does not use lag"):
        decode(PAIRWISE, "auto", Options(lag=3))
    assert decode(PAIRWISE, "auto", Options(seed=3, alpha=1.0)).decoder == "viterbi"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, Options()) for name in ("random-beam", "smc", "ffbs")),
        ("survivors", Options(merge="sample")),
        ("survivors", Options(merge="mean")),
        ("sweeps", Options(gibbs=1)),
    ],
)
def test_a_decoder_that_samples_refuses_without_a_scale(name: str, options: Options) -> None:
    with pytest.raises(ScaleMissing, match=f"^{name} works with p .* needs alpha$"):
        decode(UNARY, name, options, utility=ExactMatch())


def test_mbr_has_a_scale_of_its_own_and_uses_none_that_was_fitted_by_likelihood() -> None:
    found, fitted, given = (
        decode(UNARY, "mbr", options, utility=ExactMatch()).log_normaliser
        for options in (Options(), Options(scale=0.7), Options(alpha=0.7))
    )
    assert found == fitted != given
    with pytest.raises(UnsuitedDecoder, match="alpha is the scale itself; leave out spread"):
        decode(UNARY, "mbr", Options(alpha=0.7, spread=1.0), utility=ExactMatch())


def test_mbr_refuses_without_a_utility() -> None:
    with pytest.raises(ValueError, match="mbr needs a utility"):
        decode(UNARY, "mbr", SCALED)


def test_other_peoples_decoders_join_by_a_row() -> None:
    row = dataclasses.replace(DECODERS["greedy"], name="mine", exact_to=ANY)
    found = decode(TABLE, "mine", table={**DECODERS, "mine": row})
    assert (found.decoder, found.exact, found.paths) == ("mine", True, (greedy(TABLE),))
    row = dataclasses.replace(DECODERS["beam"], name="mine")
    with pytest.raises(UnsuitedDecoder, match=r"it is for beam, .*, mine$"):
        decode(TABLE, "greedy", Options(width=2), table={**DECODERS, "mine": row})


def plain(problem: DocumentProblem, *, n_best: int) -> list[Path]:
    """Somebody's decoder that knows nothing of steps."""
    return exhaustive(problem, n_best=n_best)


def test_other_peoples_decoders_need_not_work_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decoders.exhaustive.plain", plain, raising=False)
    row = dataclasses.replace(
        DECODERS["exhaustive"], name="mine", target="decoders.exhaustive:plain"
    )
    found = decode_all([TABLE, UNARY], "mine", Options(n_best=2), table={"mine": row})
    assert [f.paths for f in found] == [tuple(exhaustive(p, n_best=2)) for p in (TABLE, UNARY)]


@pytest.mark.parametrize("name", ["auto", *DECODERS])
def test_decoding_all_is_decoding_each(name: str) -> None:
    problems: list[DocumentProblem] = [SECOND, UNARY, Unary([]), PAIRWISE, SECOND]
    problems += [] if name == "viterbi" else [TABLE]
    together = found_by(name, problems)
    for d, (problem, found) in enumerate(zip(problems, together, strict=True)):
        options = Options() if name == "auto" else SCALED
        one = decode(problem, name, options, document=f"talk {d}", utility=ExactMatch())
        assert found == one
        assert (found.posterior is None) == (one.posterior is None)
        if found.posterior is not None and one.posterior is not None:
            assert np.array_equal(found.posterior.draws, one.posterior.draws)
            assert np.array_equal(found.posterior.weights, one.posterior.weights)
            assert found.posterior.log_normaliser == one.posterior.log_normaliser
    backwards = decode_all(
        problems[::-1],
        name,
        SCALED,
        documents=[f"talk {d}" for d in range(len(problems))][::-1],
        utilities=[ExactMatch()] * len(problems),
    )
    assert backwards[::-1] == together
    assert found_by(name, []) == []


def test_problems_decoded_together_may_differ_in_decoder_and_in_what_is_proved() -> None:
    short = HistoryTable([np.zeros(9)])
    found = decode_all([TABLE, PAIRWISE, short])
    assert [f.decoder for f in found] == ["beam", "viterbi", "beam"]
    assert [f.exact for f in found] == [False, True, True]


class Noting(HistoryTable):
    """A table that notes what is asked for at once: the kind of request, and the sentences."""

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Noting, Indices, int]]) -> list[Answer]:
        CALLS.append(("extend", [t for _, _, t in requests]))
        return super().extend_together(requests)

    @classmethod
    def rescore_together(
        cls, requests: Sequence[tuple[Noting, Indices, int, int]]
    ) -> list[NDArray[np.float64]]:
        CALLS.append(("rescore", [t for _, _, t, _ in requests]))
        return super().rescore_together(requests)


CALLS: list[tuple[str, list[int]]] = []


def test_documents_searched_by_a_beam_are_scored_together() -> None:
    CALLS.clear()
    decode_all([Noting(TABLE.tables), PAIRWISE, Noting(TABLE.tables[:3])])
    twice = [[0] * 4, [1] * 4, [2] * 4, [3] * 2, [4] * 2]  # beams, and first candidates
    assert [("extend", sentences) for sentences in twice] == CALLS


@pytest.mark.parametrize(
    "name", ["greedy", "beam", "survivors", "random-beam", "smc", "ffbs", "mbr", "sweeps"]
)
def test_every_round_is_one_call_of_each_kind(name: str) -> None:
    calls = []
    for copies in (1, 3):
        CALLS.clear()
        decode_all(
            [Noting(TABLE.tables) for _ in range(copies)],
            name,
            SCALED,
            utilities=[ExactMatch()] * copies,
        )
        calls.append(CALLS.copy())
    assert ("rescore" in {kind for kind, _ in calls[0]}) == (name in ("ffbs", "sweeps"))
    # three documents alike take as many calls as one, each for all of them
    assert [(kind, sorted(sentences * 3)) for kind, sentences in calls[0]] == [
        (kind, sorted(sentences)) for kind, sentences in calls[1]
    ]


class RightToLeft(Chain):
    """A candidate scores 1 where the next sentence takes the same."""

    lengths = (2, 2, 2)
    order = None
    causal = False

    def pairwise(self, t: int) -> Floats:
        raise AssertionError("sentence t depends on sentence t + 1")

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        return np.array((paths[:, 1:] == paths[:, :-1]).sum(axis=1), dtype=np.float64)


def test_sentences_that_depend_on_later_ones_are_swept() -> None:
    found = decode(RightToLeft())
    assert (found.decoder, found.exact, found.optimal) == ("sweeps", False, False)
    assert found.paths == (Path((0, 0, 0), 2.0),)
    assert found.baseline_score == found.score


@pytest.mark.parametrize("name", DECODERS)
def test_a_fault_among_many_problems_names_the_problem(name: str) -> None:
    bad = Unary([np.zeros(1), np.array([np.nan, 0])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 0 ") as caught:
        found_by(name, [UNARY, Unary([]), bad])
    assert caught.value.problem == 2


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_serves_empty_documents_and_refuses_nan(name: str) -> None:
    assert found_by(name, [Unary([])])[0].paths[0] == Path((), 0.0)
    with pytest.raises(ScoreError, match=r"^sentence 1, "):
        found_by(name, [Unary([np.zeros(1), np.array([np.nan, 0])])])
