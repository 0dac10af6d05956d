"""Histories of a document: scored once, cached, and recomputed, against a fresh scorer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.lists import kbest
from support.unbounded import LISTS, OTHERS, UNBOUNDED, every_mean, every_model

from decoders.batching import conditional_scores, path_score
from decoders.problem import UnsuitedDecoder
from decoders.search import Options, decode, decode_all
from lm.backend import Backend
from lm.checkpoint import SavedModel
from rerank.cache import Cache
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.contextual import ContextualProblem
from rerank.scorers.histories import Histories
from rerank.scorers.language_model import LanguageModel


def scored(scorer: LanguageModel, *lists: Sequence[Sequence[str]]) -> list[ScoredDocument]:
    return scorer.score([(str(n), kbest(own)) for n, own in enumerate(lists)])


def truth(
    saved: SavedModel, lists: Sequence[Sequence[str]], path: Sequence[int]
) -> NDArray[np.float64]:
    """Scores along a path by a scorer that remembers nothing."""
    (fresh,) = scored(LanguageModel("lm", saved), lists)
    return np.concatenate(conditional_scores(fresh.problem, path))


def searched(scorer: LanguageModel, lists: Sequence[Sequence[str]], width: int) -> tuple[int, ...]:
    """The path of a beam, what it scored kept."""
    (found,) = scored(scorer, lists)
    path = decode(found.problem, "beam", Options(width=width)).paths[0]
    found.keep()
    return path.choices


@every_model
def test_a_search_from_the_cache_finds_the_same_and_computes_nothing(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    first, again = (LanguageModel("lm", saved[name], cache=cache) for _ in range(2))
    path = searched(first, LISTS, 3)
    assert searched(again, LISTS, 3) == path
    assert first.work.nodes > 0 == again.work.nodes
    assert (first.remembered, again.remembered) == (0, 1)
    assert (first.unknown.oov, first.unknown.words) == (again.unknown.oov, again.unknown.words)
    assert cache.saved == 1


@every_model
@pytest.mark.parametrize("width", [1, 2, 4])
def test_contexts_of_remembered_histories_are_made_up_for_when_needed(
    name: str, saved: dict[str, SavedModel], width: int, tmp_path: Path
) -> None:
    """Any path that leaves the remembered ones scores as if nothing had been remembered."""
    cache = Cache(tmp_path, Notices(), 10**9)
    known = searched(LanguageModel("lm", saved[name], cache=cache), LISTS, width)
    for t in range(len(LISTS)):
        path = (*known[:t], (known[t] + 1) % 4, *([3] * (len(LISTS) - t - 1)))
        (found,) = scored(LanguageModel("lm", saved[name], cache=cache), LISTS)
        ours = np.concatenate(conditional_scores(found.problem, path))
        np.testing.assert_allclose(ours, truth(saved[name], LISTS, path), atol=2e-4)


@every_model
def test_made_up_contexts_have_the_same_bits_where_bits_matter(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    cache, machine = Cache(tmp_path, Notices(), 10**9), Backend(deterministic=True)
    known = searched(LanguageModel("lm", saved[name], machine, cache), LISTS, 2)
    for t in range(len(LISTS)):
        path = (*known[:t], (known[t] + 1) % 4, *([3] * (len(LISTS) - t - 1)))
        (found,) = scored(LanguageModel("lm", saved[name], machine, cache), LISTS)
        (fresh,) = scored(LanguageModel("lm", saved[name], machine), LISTS)
        for ours, theirs in zip(
            conditional_scores(found.problem, path),
            conditional_scores(fresh.problem, path),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


@every_model
def test_the_first_sentence_is_scored_once_for_search_and_first_path(
    name: str, saved: dict[str, SavedModel]
) -> None:
    scorer = LanguageModel("lm", saved[name])
    (found,) = scored(scorer, [["the lamp is lit", "it"]])
    decode(found.problem, "beam", Options(width=2))
    assert scorer.work.nodes == 6  # <s>, the, lamp, is, lit; it


@every_model
def test_a_wider_search_from_the_cache_of_a_narrow_one_is_that_without_cache(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    for width in (1, 2, 8):
        ours = searched(LanguageModel("lm", saved[name], cache=cache), LISTS, width)
        assert ours == searched(LanguageModel("lm", saved[name]), LISTS, width)


@every_model
def test_fewer_candidates_are_found_in_the_cache_of_more_and_leave_it_whole(
    name: str, saved: dict[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    model = saved[name]
    path = searched(LanguageModel("lm", model, cache=cache), LISTS, 2)
    fewer = [candidates[:2] for candidates in LISTS]
    short = LanguageModel("lm", model, cache=cache)
    assert searched(short, fewer, 4) == searched(LanguageModel("lm", model), fewer, 4)
    assert short.work.nodes > 0  # of histories that the wider lists did not come to
    whole = LanguageModel("lm", model, cache=cache)
    assert searched(whole, LISTS, 2) == path
    assert whole.work.nodes == 0
    twice = LanguageModel("lm", model, cache=cache)
    assert searched(twice, fewer, 4) == searched(short, fewer, 4)
    assert twice.work.nodes == 0


@every_model
def test_histories_of_one_text_are_scored_once(name: str, saved: dict[str, SavedModel]) -> None:
    twice = [[*candidates, candidates[0], candidates[0]] for candidates in OTHERS]
    scorer = LanguageModel("lm", saved[name])
    (found,) = scored(scorer, twice)
    problem = found.problem
    _, successors = problem.extend(problem.initial(), 0)
    states = problem.select(successors, np.zeros(4, np.intp), np.array([0, 1, 2, 3]))
    before = scorer.work.nodes
    scores, _ = problem.extend(states, 1)
    np.testing.assert_array_equal(scores[0], scores[2])
    np.testing.assert_array_equal(scores[0], scores[3])
    spent, before = scorer.work.nodes - before, scorer.work.nodes
    problem.extend(problem.select(successors, np.zeros(1, np.intp), np.array([3])), 1)
    assert scorer.work.nodes == before
    assert spent == 2 * len(
        {text[:n] for text in map(tuple, map(str.split, twice[1])) for n in range(len(text) + 1)}
    )


@every_model
@pytest.mark.parametrize("deterministic", [False, True])
def test_documents_searched_together_are_found_as_each_alone(
    name: str, saved: dict[str, SavedModel], deterministic: bool
) -> None:
    machine = Backend(deterministic=deterministic)
    documents = [LISTS, OTHERS, LISTS[2:], [["no one"]]]
    together = [
        found.problem for found in scored(LanguageModel("lm", saved[name], machine), *documents)
    ]
    for found, lists in zip(decode_all(together, "beam", Options(width=3)), documents, strict=True):
        (alone,) = scored(LanguageModel("lm", saved[name], machine), lists)
        expected = decode(alone.problem, "beam", Options(width=3))
        assert found.paths[0].choices == expected.paths[0].choices
        tolerance = 0 if deterministic else 1e-4
        assert found.paths[0].score == pytest.approx(expected.paths[0].score, abs=tolerance)
        assert found.baseline_score == pytest.approx(
            path_score(alone.problem, [0] * len(lists)), abs=1e-4
        )


@every_model
def test_two_models_in_one_batch_keep_their_scores_apart(
    name: str, saved: dict[str, SavedModel]
) -> None:
    other = next(n for n in UNBOUNDED if n != name)
    scorers = [LanguageModel("a", saved[name]), LanguageModel("b", saved[other])]
    problems = [scored(scorer, lists)[0].problem for lists in (LISTS, OTHERS) for scorer in scorers]
    for n, (problem, found) in enumerate(
        zip(problems, decode_all(problems, "beam", Options(width=2)), strict=True)
    ):
        (alone,) = scored(LanguageModel("c", saved[(name, other)[n % 2]]), (LISTS, OTHERS)[n // 2])
        assert (
            found.paths[0].choices
            == decode(alone.problem, "beam", Options(width=2)).paths[0].choices
        )
        assert problem.order is None


# Means of histories, and histories at hand


def contextual(saved: SavedModel, lists: Sequence[Sequence[str]]) -> ContextualProblem:
    (found,) = scored(LanguageModel("lm", saved), lists)
    assert isinstance(found.problem, ContextualProblem)
    return found.problem


def beam_of_three(problem: ContextualProblem) -> Histories:
    """Histories before sentence 1."""
    _, successors = problem.extend(problem.initial(), 0)
    return problem.select(successors, np.zeros(3, np.intp), np.arange(3))


@every_mean
@pytest.mark.parametrize("remembered", [False, True])
def test_a_mean_of_one_history_is_that_history(
    name: str, saved: dict[str, SavedModel], remembered: bool
) -> None:
    """Its state, that is, whatever it is called: scores after it are those of `select`."""
    problem = contextual(saved[name], LISTS)
    histories = beam_of_three(problem)
    _, successors = problem.extend(histories, 1)
    if remembered:
        _, successors = problem.extend(histories, 1)
        assert successors.summary is None
    parents, choices = np.array([2, 0, 1, 2]), np.arange(4)
    shares = np.zeros((3, 4))
    shares[parents, choices] = 1.0
    mean = problem.average(successors, shares)
    taken = problem.select(successors, parents, choices)
    torch.testing.assert_close(problem.contexts(mean).tensors, problem.contexts(taken).tensors)
    ours, _ = problem.extend(mean, 2)
    theirs, _ = problem.extend(taken, 2)
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


@every_mean
def test_a_mean_weighs_the_contexts_of_all_histories(
    name: str, saved: dict[str, SavedModel]
) -> None:
    problem = contextual(saved[name], LISTS)
    _, successors = problem.extend(beam_of_three(problem), 1)
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 4).T
    means = problem.contexts(problem.average(successors, shares)).tensors
    for choice in range(4):
        pairs = problem.select(successors, np.arange(3), np.full(3, choice))
        for mean, contexts in zip(means, problem.contexts(pairs).tensors, strict=True):
            expected = torch.from_numpy(shares[:, choice]).float() @ contexts
            torch.testing.assert_close(mean[choice], expected)


@pytest.mark.parametrize("name", ["adclm", "dam"])
def test_memories_to_attend_to_have_no_mean(name: str, saved: dict[str, SavedModel]) -> None:
    problem = contextual(saved[name], LISTS)
    _, successors = problem.extend(beam_of_three(problem), 1)
    with pytest.raises(UnsuitedDecoder, match="no mean"):
        problem.average(successors, np.full((3, 4), 1 / 3))


@every_mean
def test_a_mean_is_known_by_its_context(name: str, saved: dict[str, SavedModel]) -> None:
    problem = contextual(saved[name], LISTS)
    _, successors = problem.extend(beam_of_three(problem), 1)
    shares = np.full((3, 4), 1 / 3)
    one, again = (problem.average(successors, shares) for _ in range(2))
    other = problem.average(successors, np.eye(3, 4) + np.eye(3, 4, -3) + np.eye(3, 4, 3))
    assert one.keys == again.keys
    assert not {*one.keys} & {*other.keys}
    assert one.origin is None
    assert (one.t, len({*one.keys})) == (2, 4)


@every_mean
def test_the_average_of_survivors_is_scored_again_as_the_path_it_is(
    name: str, saved: dict[str, SavedModel]
) -> None:
    problem = contextual(saved[name], LISTS)
    path = decode(problem, "survivors", Options(merge="mean", alpha=0.5)).paths[0]
    expected = truth(saved[name], LISTS, path.choices)
    chosen = np.cumsum([0, *map(len, LISTS)])[:-1] + path.choices
    assert path.score == pytest.approx(expected[chosen].sum(), abs=1e-3)


@every_model
def test_histories_before_are_not_held_when_all_contexts_are_known(
    name: str, saved: dict[str, SavedModel]
) -> None:
    problem = contextual(saved[name], LISTS)
    histories = beam_of_three(problem)
    assert histories.origin is None
    _, successors = problem.extend(histories, 1)
    _, again = problem.extend(histories, 1)  # remembered, so that contexts are not at hand
    assert problem.select(successors, np.arange(3), np.arange(3)).origin is None
    following = problem.select(again, np.arange(3), np.arange(3))
    assert following.origin is not None
    problem.contexts(following)
    assert following.origin is None


def test_contexts_at_hand_are_found_again_by_the_text_of_a_history(
    saved: dict[str, SavedModel],
) -> None:
    scorer = LanguageModel("lm", saved["ccdclm"])
    (found,) = scored(scorer, LISTS)
    problem = found.problem
    assert isinstance(problem, ContextualProblem)
    first = problem.followed(problem.initial(), np.zeros(2, np.intp), np.arange(2))
    contexts = problem.contexts(first)
    problem.note(first)
    spent = scorer.work.nodes
    again = problem.followed(problem.initial(), np.zeros(3, np.intp), np.array([1, 0, 2]))
    assert problem._recall(again, np.arange(3)).tolist() == [2]
    found_again = problem.contexts(again, np.arange(2)).tensors[0]
    torch.testing.assert_close(found_again, contexts.tensors[0][[1, 0]])
    assert scorer.work.nodes == spent
    problem.contexts(again)
    assert scorer.work.nodes == spent + 2  # <s> it
