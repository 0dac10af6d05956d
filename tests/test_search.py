"""The table of decoders, the automatic choice, and decoding by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from decoders.beam import beam, beam_steps
from decoders.exhaustive import HistoryTable, exhaustive
from decoders.greedy import greedy, greedy_steps
from decoders.problem import (
    Answer,
    DocumentProblem,
    Indices,
    Pairwise,
    Path,
    ScoreError,
    Unary,
    UnsuitedDecoder,
)
from decoders.search import ANY, AUTO_WIDTH, DECODERS, NONE, choose, decode, decode_all
from decoders.viterbi import viterbi

RNG = np.random.default_rng(11)
UNARY = Unary([RNG.normal(size=5) for _ in range(6)])
PAIRWISE = Pairwise([RNG.normal(size=(1 if t == 0 else 5, 5)) for t in range(6)])
TABLE = HistoryTable([RNG.normal(size=(3,) * (t + 1)) for t in range(5)])


def test_every_row_names_a_function_that_exists() -> None:
    loaded = [row.load() for row in DECODERS.values()]
    assert loaded == [greedy_steps, viterbi, beam_steps, exhaustive]


@pytest.mark.parametrize(
    ("order", "name"), [(0, "viterbi"), (1, "viterbi"), (2, "beam"), (None, "beam")]
)
def test_auto_is_viterbi_where_it_is_exact_and_beam_elsewhere(order: int | None, name: str) -> None:
    assert choose(order).name == name


def test_auto_is_beam_where_several_paths_are_wanted() -> None:
    assert choose(1, n_best=2).name == "beam"


def test_rows_say_where_they_serve_and_where_they_are_exact() -> None:
    orders = (0, 1, 2, None)
    serves = {name: [row.serves(o) for o in orders] for name, row in DECODERS.items()}
    exact = {name: [row.exact(o) for o in orders] for name, row in DECODERS.items()}
    assert serves["viterbi"] == exact["viterbi"] == [True, True, False, False]
    assert serves["beam"] == serves["greedy"] == exact["exhaustive"] == [True] * 4
    assert exact["beam"] == exact["greedy"] == [True, False, False, False]
    assert DECODERS["viterbi"].orders == "up to 1"
    assert DECODERS["beam"].orders == "any"


def test_a_row_may_be_exact_nowhere() -> None:
    row = dataclasses.replace(DECODERS["beam"], highest_order=0, exact_to=NONE)
    assert not row.exact(0)
    assert row.orders == "up to 0"


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"'vitrebi'; did you mean viterbi.*auto, greedy"):
        choose(0, "vitrebi")


def test_a_decoder_that_does_not_serve_names_those_that_do() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"all earlier .*fit: greedy, beam, exhaustive$"):
        choose(None, "viterbi")
    with pytest.raises(UnsuitedDecoder, match="order 2; decoders that fit: greedy, beam, exh"):
        choose(2, "viterbi")
    with pytest.raises(UnsuitedDecoder, match=r"lists of several paths.*fit: beam, exhaustive$"):
        choose(0, "viterbi", n_best=2)


def test_decoding_by_name_is_calling_the_decoder() -> None:
    assert decode(PAIRWISE, "greedy").paths == (greedy(PAIRWISE),)
    assert decode(PAIRWISE, "viterbi").paths == (viterbi(PAIRWISE),)
    assert decode(PAIRWISE, "beam", width=3, n_best=2).paths == tuple(
        beam(PAIRWISE, width=3, n_best=2)
    )
    assert decode(TABLE, "exhaustive", n_best=4).paths == tuple(exhaustive(TABLE, n_best=4))


def test_the_result_names_the_decoder_and_whether_it_is_exact() -> None:
    found = decode(PAIRWISE)
    assert (found.decoder, found.exact) == ("viterbi", True)
    assert decode(TABLE).decoder == "beam"
    assert not decode(TABLE).exact
    assert decode(UNARY, "greedy").exact
    assert not decode(PAIRWISE, "greedy").exact
    assert decode(TABLE, "exhaustive").exact


def test_a_beam_that_keeps_every_prefix_is_exact() -> None:
    assert decode(TABLE, width=3**4).exact
    assert not decode(TABLE, width=3**4 - 1).exact
    assert decode(HistoryTable([np.zeros(9)]), width=1).exact


def test_auto_widens_the_beam_to_the_list_that_is_wanted() -> None:
    assert len(decode(TABLE, n_best=AUTO_WIDTH + 1).paths) == AUTO_WIDTH + 1
    with pytest.raises(ValueError, match="n_best 9, width 8"):
        decode(TABLE, "beam", n_best=9)


def test_other_peoples_decoders_join_by_a_row() -> None:
    row = dataclasses.replace(DECODERS["greedy"], name="mine", exact_to=ANY)
    found = decode(TABLE, "mine", table={**DECODERS, "mine": row})
    assert (found.decoder, found.exact, found.paths) == ("mine", True, (greedy(TABLE),))


def plain(problem: DocumentProblem, *, n_best: int) -> list[Path]:
    """Somebody's decoder that knows nothing of steps."""
    return exhaustive(problem, n_best=n_best)


def test_other_peoples_decoders_need_not_work_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decoders.exhaustive.plain", plain, raising=False)
    row = dataclasses.replace(
        DECODERS["exhaustive"], name="mine", target="decoders.exhaustive:plain"
    )
    found = decode_all([TABLE, UNARY], "mine", n_best=2, table={"mine": row})
    assert [f.paths for f in found] == [tuple(exhaustive(p, n_best=2)) for p in (TABLE, UNARY)]


@pytest.mark.parametrize("name", ["auto", "greedy", "beam", "exhaustive"])
def test_decoding_all_is_decoding_each(name: str) -> None:
    problems = [TABLE, UNARY, Unary([]), PAIRWISE, TABLE]
    assert decode_all(problems, name) == [decode(problem, name) for problem in problems]
    assert decode_all([], name) == []


def test_problems_decoded_together_may_differ_in_decoder_and_in_what_is_proved() -> None:
    short = HistoryTable([np.zeros(9)])
    found = decode_all([TABLE, PAIRWISE, short])
    assert [f.decoder for f in found] == ["beam", "viterbi", "beam"]
    assert [f.exact for f in found] == [False, True, True]


def test_documents_searched_by_a_beam_are_scored_together() -> None:
    calls = []

    class Noting(HistoryTable):
        @classmethod
        def extend_together(cls, requests: Sequence[tuple[Noting, Indices, int]]) -> list[Answer]:
            calls.append([t for _, _, t in requests])
            return super().extend_together(requests)

    decode_all([Noting(TABLE.tables), PAIRWISE, Noting(TABLE.tables[:3])])
    twice = [[0] * 4, [1] * 4, [2] * 4, [3] * 2, [4] * 2]  # beams, and first candidates
    assert calls == twice


@pytest.mark.parametrize("name", DECODERS)
def test_a_fault_among_many_problems_names_the_problem(name: str) -> None:
    bad = Unary([np.zeros(1), np.array([np.nan, 0])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 0 ") as caught:
        decode_all([UNARY, Unary([]), bad], name)
    assert caught.value.problem == 2


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_serves_empty_documents_and_refuses_nan(name: str) -> None:
    assert decode(Unary([]), name).paths[0].choices == ()
    with pytest.raises(ScoreError, match=r"^sentence 1, "):
        decode(Unary([np.zeros(1), np.array([np.nan, 0])]), name)
