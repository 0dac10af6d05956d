"""Moves inside a path: sums of scores against a scorer that goes every path from its beginning."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.lists import kbest
from support.unbounded import LISTS, OTHERS, UNBOUNDED, every_model

from decoders.batching import conditional_scores
from decoders.search import Options, decode
from lm.backend import Backend
from lm.checkpoint import SavedModel
from lm.engine import ScoringEngine
from lm.rows import Rows
from lm.scoring import ScoreError, after
from lm.trie import Candidates
from rerank.cache import Cache
from rerank.errors import RerankError
from rerank.notices import Notices
from rerank.scorers import following
from rerank.scorers.contextual import ContextualProblem
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.moves import rescored

PATH = [3, 1, 0, 2, 1]
Paths = NDArray[np.intp]
Request = tuple[ContextualProblem, Paths, int, int]


def problems(scorer: LanguageModel, *lists: Sequence[Sequence[str]]) -> list[ContextualProblem]:
    found = []
    for scored in scorer.score([(str(n), kbest(own)) for n, own in enumerate(lists)]):
        assert isinstance(scored.problem, ContextualProblem)
        found.append(scored.problem)
    return found


def chance(
    rng: np.random.Generator, lists: Sequence[Sequence[str]], n: int, same: int = 0
) -> Paths:
    """Paths (n, T), of which the first `same` sentences are alike."""
    lengths = [len(candidates) for candidates in lists]
    paths = rng.integers(0, lengths, (n, len(lengths))).astype(np.intp)
    paths[:, :same] = paths[0, :same]
    return paths


def walked(
    saved: SavedModel,
    lists: Sequence[Sequence[str]],
    paths: Paths,
    machine: Backend | None = None,
) -> NDArray[np.float64]:
    """Scores (n, T) along each path, by a scorer that remembers nothing and has no moves."""
    found = []
    for path in paths.tolist():
        (problem,) = problems(LanguageModel("lm", saved, machine), lists)
        scores = conditional_scores(problem, path)
        found.append([float(row[k]) for row, k in zip(scores, path, strict=True)])
    return np.array(found)


def sums(scores: NDArray[np.float64], t: int, horizon: int) -> NDArray[np.float64]:
    """Sums (n,) of scores (n, T) from a sentence over a horizon, added in the order of the text."""
    return np.cumsum(scores[:, t : t + horizon + 1], axis=1)[:, -1]


@every_model
@pytest.mark.parametrize("same", [0, 2, 5], ids=["other-beginnings", "one-beginning", "one-path"])
def test_sums_are_those_along_each_path_from_any_sentence_over_any_horizon(
    name: str, saved: dict[str, SavedModel], same: int
) -> None:
    rng = np.random.default_rng(same)
    (problem,) = problems(LanguageModel("lm", saved[name]), LISTS)
    paths = chance(rng, LISTS, 12, same)
    scores = walked(saved[name], LISTS, paths)
    for t in range(len(LISTS)):
        for horizon in range(4):
            some = rng.integers(0, len(paths), 5)
            found = problem.rescore(paths[some], t, horizon)
            np.testing.assert_allclose(found, sums(scores[some], t, horizon), atol=4e-4)


@every_model
def test_moves_of_many_documents_and_models_together_are_those_of_each_alone(
    name: str, saved: dict[str, SavedModel]
) -> None:
    rng = np.random.default_rng(1)
    other = next(n for n in UNBOUNDED if n != name)
    one, two = LanguageModel("a", saved[name]), LanguageModel("b", saved[other])
    documents = [LISTS, OTHERS, LISTS[2:], [["no one"]]]
    requests: list[Request] = []
    for n, lists in enumerate(documents):
        for scorer in (one, two):
            (problem,) = problems(scorer, lists)
            requests.append((problem, chance(rng, lists, 3), min(n, len(lists) - 1), n))
    found = ContextualProblem.rescore_together(requests)
    for n, (_, paths, t, horizon) in enumerate(requests):
        scores = walked(saved[(name, other)[n % 2]], documents[n // 2], paths)
        np.testing.assert_allclose(found[n], sums(scores, t, horizon), atol=4e-4)


@every_model
def test_moves_from_the_cache_of_a_search_sum_to_the_same(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    """Beginnings whose scores were remembered, and whose contexts nobody has, among others."""
    cache = Cache(tmp_path, Notices(), 10**9)
    (cold,) = problems(LanguageModel("lm", saved[name], cache=cache), LISTS)
    known = decode(cold, "beam", Options(width=3)).paths[0].choices
    cold.keep()
    rng = np.random.default_rng(2)
    for t in range(len(LISTS)):
        (warm,) = problems(LanguageModel("lm", saved[name], cache=cache), LISTS)
        paths = np.concatenate([[known], chance(rng, LISTS, 3)]).astype(np.intp)
        paths[:2, :t] = known[:t]
        expected = sums(walked(saved[name], LISTS, paths), t, 2)
        np.testing.assert_allclose(warm.rescore(paths, t, 2), expected, atol=4e-4)


@every_model
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_where_bits_matter_the_sums_are_of_the_same_bits_as_a_search_sees(
    name: str, saved: dict[str, SavedModel], warm: bool, tmp_path: Path
) -> None:
    machine = Backend(deterministic=True)
    cache = Cache(tmp_path, Notices(), 10**9)
    if warm:
        (cold,) = problems(LanguageModel("lm", saved[name], machine, cache), LISTS)
        decode(cold, "beam", Options(width=2))
        cold.keep()
    paths = chance(np.random.default_rng(3), LISTS, 4, same=1)
    requests: list[Request] = []
    for t in range(len(LISTS)):
        (problem,) = problems(LanguageModel("lm", saved[name], machine, cache), LISTS)
        requests.append((problem, paths, t, 2))
    scores = walked(saved[name], LISTS, paths, machine)
    for t, (found, (problem, *_)) in enumerate(zip(rescored(requests), requests, strict=True)):
        expected = sums(scores, t, 2)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(problem.rescore(paths, t, 2), expected)


@every_model
def test_a_second_move_at_a_sentence_begins_where_the_first_did(
    name: str, saved: dict[str, SavedModel]
) -> None:
    """Then nothing before is read again: the list's scores and the context are at hand."""
    scorer = LanguageModel("lm", saved[name])
    (problem,) = problems(scorer, LISTS)
    last = len(LISTS) - 1
    paths = np.tile(chance(np.random.default_rng(4), LISTS, 1), (4, 1))
    paths[:, last] = range(4)
    first = problem.rescore(paths, last, 0)
    spent = scorer.work.nodes
    assert spent > 0
    np.testing.assert_array_equal(problem.rescore(paths, last, 0), first)
    assert scorer.work.nodes == spent


@every_model
def test_the_beginnings_of_a_backward_pass_are_made_up_for_once(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    """As many short passes as sentences, not as pairs of them, with all lists remembered."""
    cache = Cache(tmp_path, Notices(), 10**9)
    lists = [["the lamp", "it"]] * 12
    (cold,) = problems(LanguageModel("lm", saved[name], cache=cache), lists)
    path = np.zeros((1, 12), dtype=np.intp)
    conditional_scores(cold, path[0].tolist())
    cold.keep()
    warm = LanguageModel("lm", saved[name], cache=cache)
    (problem,) = problems(warm, lists)
    for t in reversed(range(12)):
        problem.rescore(path, t, 0)
    assert warm.work.nodes == 11 * len(["<s>", "the", "lamp"])


@every_model
def test_ancestors_that_histories_share_are_made_up_for_once(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    lists = [["the lamp"], ["it burns"], ["a", "the", "it", "no"], ["she"]]
    (cold,) = problems(LanguageModel("lm", saved[name], cache=cache), lists)
    decode(cold, "beam", Options(width=4))
    cold.keep()
    warm = LanguageModel("lm", saved[name], cache=cache)
    (problem,) = problems(warm, lists)
    paths = np.array([[0, 0, k, 0] for k in range(4)])
    problem.rescore(paths, 3, 0)
    assert warm.work.nodes == 3 + 3 + 4 * 2  # <s> and words; of sentence 3 nothing, it is kept


def test_a_sweep_reads_a_candidate_for_each_history_behind_the_move(
    saved: dict[str, SavedModel],
) -> None:
    """And the move's own list once: not a list for each of its candidates."""
    scorer = LanguageModel("lm", saved["ccdclm"])
    lists = [["the lamp", "it"], ["a b c d e", "no"], ["she", "a light burns no one"]]
    (problem,) = problems(scorer, lists)
    paths = np.array([[0, 1, 0], [1, 1, 0]])
    problem.rescore(paths, 0, 2)
    own, behind = 4, 2 * (2 + 2)  # <s> the lamp, it; <s> no and <s> she, twice each
    assert scorer.work.nodes == own + behind


def test_histories_of_one_text_in_a_move_sum_alike(saved: dict[str, SavedModel]) -> None:
    lists = [["it", "it", "she"], *LISTS[1:3]]
    (problem,) = problems(LanguageModel("lm", saved["hrnnlm"]), lists)
    sums = problem.rescore(np.array([[0, 1, 2], [1, 1, 2], [2, 1, 2]]), 0, 2)
    assert sums[0] == pytest.approx(sums[1], abs=1e-5)
    assert sums[0] != pytest.approx(sums[2], abs=1e-3)


@pytest.mark.parametrize("path", [[0, 4, 0, 0, 0], [0, 0]], ids=["no-candidate", "too-short"])
def test_a_path_of_another_document_is_refused(
    saved: dict[str, SavedModel], path: list[int]
) -> None:
    (problem,) = problems(LanguageModel("lm", saved["ccdclm"]), LISTS)
    with pytest.raises(ValueError, match=r"no candidate 4|expected 5 choices, found 2"):
        problem.rescore(np.array([path]), 1, 1)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ScoreError("NaN", list=1, candidate=0), "document '1': sentence 2, candidate 0 .*: NaN"),
        (MemoryError("no room"), "document '0': no room; .*--top"),
    ],
    ids=["score", "memory"],
)
def test_a_fault_behind_a_move_is_told_with_its_place(
    saved: dict[str, SavedModel], fault: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = problems(LanguageModel("lm", saved["ccdclm"]), OTHERS, LISTS)

    def fail(engine: ScoringEngine, asked: Sequence[tuple[Candidates, Rows]]) -> object:
        if [lists.counts for lists, _ in asked] == [(1,), (1,)]:
            raise fault
        return after(engine, asked)

    monkeypatch.setattr(following, "after", fail)
    requests: list[Request] = [(one, np.array([[0, 1, 0]]), 1, 1), (two, np.array([PATH]), 1, 1)]
    with pytest.raises(RerankError, match=rf"scorer 'lm', {told}"):
        rescored(requests)


@pytest.mark.parametrize("deterministic", [False, True])
def test_sums_of_neighbouring_moves_add_up_to_the_sum_of_both(
    saved: dict[str, SavedModel], deterministic: bool
) -> None:
    machine = Backend(deterministic=deterministic)
    (problem,) = problems(LanguageModel("lm", saved["drnnlm"], machine), LISTS)
    paths = chance(np.random.default_rng(5), LISTS, 6)
    cuts = [0, 2, 3, 5]
    parts = [problem.rescore(paths, a, b - a - 1) for a, b in pairwise(cuts)]
    np.testing.assert_allclose(sum(parts), problem.rescore(paths, 0, 5), atol=4e-4)
