"""Models that are given the next sentence: scores along paths against those of whole documents."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.lists import kbest, kbest_without_candidates
from support.models import corpus_of_texts, save_models, scores_of_sentences
from support.unbounded import LISTS, OTHERS
from support.words import WORDS

from decoders.problem import UnsuitedDecoder
from decoders.reversal import own_scores, reversed_problem
from lm.backend import Backend
from lm.checkpoint import SavedModel, load_model
from lm.document_cache import WithDocumentCache
from lm.evaluation import perplexity
from rerank.errors import RerankError
from rerank.scorers.acausal import AcausalProblem
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.reversed_documents import ReversedDocuments

KINDS: dict[str, dict[str, Any]] = {  # options of models
    "plain": {"encoder": "cnn"},
    "bags-input": {"encoder": "bag", "fusion": "input", "recurrence": "gru"},
    "backward": {"encoder": "rnn", "backward": True},
}
every_kind = pytest.mark.parametrize("kind", KINDS)
Paths = NDArray[np.intp]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SavedModel]:
    found = {}
    for kind, options in KINDS.items():
        folder = tmp_path_factory.mktemp("models") / kind
        save_models({"dclm-right-target": folder}, WORDS, 6, 8, oov_rate=0.25, **options)
        found[kind] = load_model(folder)
    return found


def problems(scorer: LanguageModel, *lists: Sequence[Sequence[str]]) -> list[AcausalProblem]:
    found = []
    for scored in scorer.score([(str(n), kbest(own)) for n, own in enumerate(lists)]):
        assert isinstance(scored.problem, AcausalProblem)
        found.append(scored.problem)
    return found


def along(lists: Sequence[Sequence[str]], path: Sequence[int]) -> list[str]:
    return [own[k] for own, k in zip(lists, path, strict=True)]


def chance(
    rng: np.random.Generator, lists: Sequence[Sequence[str]], n: int, same: int = 0
) -> Paths:
    """Paths (n, T), of which the first `same` sentences are alike."""
    lengths = [len(candidates) for candidates in lists]
    paths = rng.integers(0, lengths, (n, len(lengths))).astype(np.intp)
    paths[:, :same] = paths[0, :same]
    return paths


def truth(saved: SavedModel, lists: Sequence[Sequence[str]], paths: Paths) -> NDArray[np.float64]:
    """Scores (n, T) along each path."""
    return np.array([scores_of_sentences(saved, along(lists, path)) for path in paths.tolist()])


def sums(scores: NDArray[np.float64], t: int, horizon: int) -> NDArray[np.float64]:
    """Sums (n,) of what changes with sentence t within a horizon: with that of the one before."""
    return np.asarray(scores[:, max(0, t - 1) : t + horizon + 1].sum(axis=1))


@every_kind
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("same", [0, 2, 5], ids=["other-beginnings", "one-beginning", "one-path"])
def test_sums_are_those_of_the_documents_along_each_path(
    kind: str, deterministic: bool, same: int, saved: Mapping[str, SavedModel]
) -> None:
    rng = np.random.default_rng(same)
    scorer = LanguageModel("lm", saved[kind], Backend(deterministic=deterministic))
    (problem,) = problems(scorer, LISTS)
    paths = chance(rng, LISTS, 8, same)
    scores = truth(saved[kind], LISTS, paths)
    for t in range(len(LISTS)):
        for horizon in range(4):
            some = rng.integers(0, len(paths), 5)
            found = problem.rescore(paths[some], t, horizon)
            np.testing.assert_allclose(found, sums(scores[some], t, horizon), atol=4e-4)


@every_kind
def test_every_candidate_of_a_sentence_is_read_in_the_path_of_a_move(
    kind: str, saved: Mapping[str, SavedModel]
) -> None:
    """As sweeps ask for it: one block of one or of two sentences anew, all others as they are."""
    (problem,) = problems(LanguageModel("lm", saved[kind]), LISTS)
    path = [3, 1, 0, 2, 1]
    for t in range(len(LISTS)):
        for block in (1, 2):
            lengths = [len(own) for own in LISTS[t : t + block]]
            combinations = np.indices(lengths).reshape(len(lengths), -1).T
            paths = np.tile(np.array(path), (len(combinations), 1))
            paths[:, t : t + len(lengths)] = combinations
            expected = sums(truth(saved[kind], LISTS, paths), t, block + 1)
            np.testing.assert_allclose(problem.rescore(paths, t, block + 1), expected, atol=4e-4)


@every_kind
def test_candidates_within_a_path_have_the_scores_of_documents_that_contain_them(
    kind: str, saved: Mapping[str, SavedModel]
) -> None:
    (problem,) = problems(LanguageModel("lm", saved[kind]), LISTS)
    path = [3, 1, 0, 2, 1]
    for t, row in enumerate(own_scores(problem, path)):
        paths = np.tile(np.array(path), (len(LISTS[t]), 1))
        paths[:, t] = np.arange(len(LISTS[t]))
        expected = truth(saved[kind], LISTS, paths)[:, t]
        assert np.ptp(expected) > 0.1
        np.testing.assert_allclose(row, expected, atol=1e-4)


def test_of_reversed_documents_the_next_sentence_is_the_one_before(
    saved: Mapping[str, SavedModel],
) -> None:
    source = ReversedDocuments(LanguageModel("lm", saved["plain"]))
    (scored,) = source.score([("x", kbest(LISTS))])
    (turned,) = problems(LanguageModel("lm", saved["plain"]), LISTS[::-1])
    assert (source.causal, scored.problem.causal) == (False, False)
    path = [3, 1, 0, 2, 1]
    rows = own_scores(turned, path[::-1])[::-1]
    for ours, theirs in zip(own_scores(scored.problem, path), rows, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    paths = chance(np.random.default_rng(0), LISTS, 6, same=2)
    paths[:, 3:] = paths[0, 3:]
    scores = truth(saved["plain"], LISTS[::-1], paths[:, ::-1])[:, ::-1]
    found = scored.problem.rescore(paths, 2, 5)
    np.testing.assert_allclose(np.diff(found), np.diff(scores.sum(axis=1)), atol=4e-4)


@pytest.mark.parametrize("deterministic", [False, True])
def test_documents_and_models_together_have_the_sums_of_each_alone(
    deterministic: bool, saved: Mapping[str, SavedModel]
) -> None:
    """To the last bit where the backend is deterministic."""
    rng = np.random.default_rng(1)
    machine = Backend(deterministic=deterministic)
    scorers = [LanguageModel(kind, saved[kind], machine) for kind in ("plain", "backward")]
    documents = [LISTS, OTHERS, LISTS[2:], [["no one"]]]

    def requests() -> Iterator[tuple[AcausalProblem, int, int]]:
        for n, lists in enumerate(documents):
            for scorer in scorers:
                yield problems(scorer, lists)[0], min(n, len(lists) - 1), n

    paths = [chance(rng, lists, 3) for lists in documents for _ in scorers]
    asked = [(one, p, t, h) for (one, t, h), p in zip(requests(), paths, strict=True)]
    found = AcausalProblem.rescore_together(asked)
    for n, ((problem, t, horizon), own) in enumerate(zip(requests(), paths, strict=True)):
        alone = problem.rescore(own, t, horizon)
        if deterministic:
            np.testing.assert_array_equal(found[n], alone)
        np.testing.assert_allclose(found[n], alone, atol=1e-4)


def test_what_was_read_is_not_read_again(saved: Mapping[str, SavedModel]) -> None:
    scorer = LanguageModel("lm", saved["plain"])
    (problem,) = problems(scorer, LISTS)
    paths = chance(np.random.default_rng(4), LISTS, 4)
    first = problem.rescore(paths, 2, 1)
    spent = scorer.work.nodes
    assert spent > 0
    np.testing.assert_array_equal(problem.rescore(paths, 2, 1), first)
    assert scorer.work.nodes == spent
    assert scorer.forgetful().work.nodes == 0


def test_a_document_cache_joins_the_model(saved: Mapping[str, SavedModel]) -> None:
    one = saved["plain"]
    (problem,) = problems(LanguageModel("lm", one, document_cache=0.3), LISTS)
    paths = chance(np.random.default_rng(5), LISTS, 4)
    model = WithDocumentCache(one.model, 0.3)
    expected = [
        -perplexity(model, corpus_of_texts(one, along(LISTS, p))).nats for p in paths.tolist()
    ]
    np.testing.assert_allclose(problem.rescore(paths, 0, 5), expected, atol=4e-4)
    plain = [
        -perplexity(one.model, corpus_of_texts(one, along(LISTS, p))).nats for p in paths.tolist()
    ]
    assert np.abs(np.array(plain) - expected).min() > 0.1


def test_a_document_without_candidates_has_the_empty_path(saved: Mapping[str, SavedModel]) -> None:
    scorer = LanguageModel("lm", saved["plain"])
    (scored,) = scorer.score([("x", kbest_without_candidates(2))])
    assert own_scores(scored.problem, []) == []
    assert scored.problem.rescore(np.zeros((1, 0), dtype=np.intp), 0, 0).tolist() == [0.0]


def test_histories_cannot_be_extended(saved: Mapping[str, SavedModel]) -> None:
    (problem,) = problems(LanguageModel("lm", saved["plain"]), LISTS)
    assert (problem.order, problem.causal, problem.causal_part()) == (None, False, None)
    assert not reversed_problem(problem).causal
    for ask in (problem.initial, lambda: problem.extend(None, 0)):
        with pytest.raises(UnsuitedDecoder, match="search by sweeps"):
            ask()


def test_a_model_that_returns_nan_is_named_with_the_place(
    saved: Mapping[str, SavedModel], tmp_path: Path
) -> None:
    save_models({"dclm-right-target": tmp_path / "lm"}, WORDS, 6, 8, oov_rate=0.25)
    broken = load_model(tmp_path / "lm")
    with torch.no_grad():
        broken.model.get_parameter("head.bias").fill_(torch.nan)
    problem = problems(LanguageModel("lm", broken), OTHERS, LISTS)[1]
    with pytest.raises(RerankError, match=r"scorer 'lm', document '1': sentence 1, candidate 0"):
        problem.rescore(np.array([[3, 1, 0, 2, 1]]), 2, 0)


@pytest.mark.parametrize("path", [[0, 4, 0, 0, 0], [0, 0]], ids=["no-candidate", "too-short"])
def test_a_path_of_another_document_is_refused(
    saved: Mapping[str, SavedModel], path: list[int]
) -> None:
    (problem,) = problems(LanguageModel("lm", saved["plain"]), LISTS)
    for ask in (lambda: problem.rescore(np.array([path]), 1, 1), lambda: own_scores(problem, path)):
        with pytest.raises(ValueError, match=r"no candidate 4|expected 5 choices, found 2"):
            ask()
