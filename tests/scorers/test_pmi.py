"""The PMI form against log-probabilities with and without context, taken one by one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.contexts import one_by_one
from support.lists import kbest, kbest_without_candidates

from decoders.batching import conditional_scores
from decoders.problem import DocumentProblem
from lm.backend import Backend
from lm.checkpoint import SavedModel
from rerank.cache import Cache
from rerank.notices import Notices
from rerank.scorers import ScoredDocument
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.pmi import PmiForm

MODELS = ("codclm", "ccdclm", "drnnlm", "hrnnlm")
every_model = pytest.mark.parametrize("name", MODELS)
LISTS = [
    ["the lamp is lit", "it", "unheard a"],
    [],
    ["it gives light", "", "no"],
    ["one", "she is lit"],
]
PATH = (2, 0, 1)
PRESENT = [own for own in LISTS if own]
CHOSEN = [own[k] for own, k in zip(PRESENT, PATH, strict=True)]


def scored(form: PmiForm, lists: Sequence[Sequence[str]] = LISTS) -> ScoredDocument:
    return form.score([("evening", kbest(lists))])[0]


def form_of(saved: SavedModel, cache: Cache | None = None) -> tuple[PmiForm, LanguageModel]:
    model = LanguageModel("lm", saved, cache=cache)
    return PmiForm(model), model


@every_model
def test_it_is_what_the_context_adds_and_the_null_score_is_the_rest(
    name: str, saved: Mapping[str, SavedModel]
) -> None:
    form, model = form_of(saved[name])
    assert (form.name, form.columns) == ("lmpmi", ("lmnull", "lmoov"))
    found = scored(form)
    assert found.problem.order == form.order == model.order  # the order is kept
    given, null = one_by_one(
        saved[name], PRESENT, [own[k] for own, k in zip(PRESENT, PATH, strict=True)]
    )
    pmi = conditional_scores(found.problem, PATH)
    np.testing.assert_array_equal(pmi[0], 0)  # exactly, as for every first sentence
    for ours, with_context, without in zip(pmi, given, null, strict=True):
        np.testing.assert_allclose(ours, with_context - without, atol=4e-4)
    np.testing.assert_allclose(found.columns[:, 0], np.concatenate(null), atol=2e-4)
    assert found.columns[:, 1].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert max(np.abs(one).max() for one in pmi[1:]) > 0.1


@every_model
def test_with_equal_weights_the_two_features_are_the_model(
    name: str, saved: Mapping[str, SavedModel]
) -> None:
    found = scored(form_of(saved[name])[0])
    plain = LanguageModel("lm", saved[name]).score([("evening", kbest(LISTS))])[0].problem
    nulls = np.split(found.columns[:, 0], np.cumsum(found.problem.lengths)[:-1])
    both = zip(conditional_scores(found.problem, PATH), nulls, strict=True)
    for (pmi, null), whole in zip(both, conditional_scores(plain, PATH), strict=True):
        np.testing.assert_allclose(pmi + null, whole, atol=1e-5)


@every_model
def test_every_way_to_ask_a_problem_gives_the_same(
    name: str, saved: Mapping[str, SavedModel]
) -> None:
    problem = scored(form_of(saved[name])[0]).problem
    _, successors = problem.extend(problem.initial(), 0)
    states = problem.select(successors, np.zeros(3, np.intp), np.arange(3))
    (together, _), (first, _) = type(problem).extend_together(
        [(problem, states, 1), (problem, problem.initial(), 0)]
    )
    np.testing.assert_array_equal(first, np.zeros((1, 3)))
    for k in range(3):
        alone = conditional_scores(problem, (k, 0, 0))[1]
        np.testing.assert_allclose(together[k], alone, atol=1e-4)
    paths = np.array([[0, 1, 1], [2, 0, 0], [2, 2, 1]])
    for t, horizon in ((0, 3), (1, 0), (1, 1), (2, 5)):
        truth = DocumentProblem.rescore(problem, paths, t, horizon)
        np.testing.assert_allclose(problem.rescore(paths, t, horizon), truth, atol=1e-3)
    if problem.order == 1:
        np.testing.assert_array_equal(problem.pairwise(1), together)
    weights = np.zeros((3, 3))
    weights[1] = 1.0
    _, successors = problem.extend(states, 1)
    mean, _ = problem.extend(problem.average(successors, weights), 2)
    for k in range(3):
        np.testing.assert_allclose(mean[k], conditional_scores(problem, (1, k, 0))[2], atol=1e-3)


@every_model
def test_a_warm_run_touches_no_network_and_null_scores_have_an_identity_of_their_own(
    name: str, saved: Mapping[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    plain = LanguageModel("lm", saved[name], cache=cache)
    (document,) = plain.score([("evening", kbest(LISTS))])
    conditional_scores(document.problem, PATH)
    document.keep()
    found, nodes = list[NDArray[np.float64]](), list[int]()
    for _ in range(2):
        form, model = form_of(saved[name], cache)
        assert form.remembers(kbest(LISTS)) == bool(found)
        document = scored(form)
        found.append(np.concatenate(conditional_scores(document.problem, PATH)))
        document.keep()
        nodes.append(model.work.nodes)
    words = {
        tuple(text.replace("unheard", "?").split()[:n])
        for own in LISTS
        for text in own
        for n in range(5)
    }
    assert nodes == [len(words), 0]  # one pass over the tries without context, and then none
    np.testing.assert_array_equal(found[0], found[1])


def test_shorter_lists_find_the_null_scores_of_longer_ones(
    saved: Mapping[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    whole = scored(form_of(saved["codclm"], cache)[0]).columns[:, 0]
    form, model = form_of(saved["codclm"], cache)
    short = scored(form, [own[:2] for own in LISTS]).columns[:, 0]
    assert model.work.nodes == 0
    np.testing.assert_array_equal(short, whole[[0, 1, 3, 4, 6, 7]])


def test_of_a_model_with_a_document_cache_it_holds_what_the_cache_adds(
    saved: Mapping[str, SavedModel], tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Notices(), 10**9)
    plain = LanguageModel("lm", saved["rnnlm"], cache=cache)
    (alone,) = plain.score([("evening", kbest(LISTS))])
    form = PmiForm(model := LanguageModel("lm", saved["rnnlm"], cache=cache, document_cache=0.2))
    found = scored(form)
    assert found.problem.order is None
    np.testing.assert_array_equal(
        found.columns[:, 0], np.concatenate([alone.problem.unary(t) for t in range(3)])
    )
    assert model.work.nodes == 8  # of sentence 0: <s> the lamp is lit it ? a
    pmi = conditional_scores(found.problem, PATH)
    assert [bool(one.any()) for one in pmi] == [False, True, True]


@every_model
def test_on_a_deterministic_backend_a_batch_changes_no_bit(
    name: str, saved: Mapping[str, SavedModel]
) -> None:
    def features(*documents: Sequence[Sequence[str]]) -> list[bytes]:
        """Of the last document."""
        form = PmiForm(LanguageModel("lm", saved[name], Backend(deterministic=True)))
        found = form.score([(str(n), kbest(one)) for n, one in enumerate(documents)])[-1]
        arrays = [found.columns, *conditional_scores(found.problem, PATH)]
        return [array.tobytes() for array in arrays]

    assert features(LISTS) == features([["no one"], ["it burns", "a lamp"]], LISTS)


def test_a_document_without_candidates_has_no_features(saved: Mapping[str, SavedModel]) -> None:
    for name in ("codclm", "ccdclm"):
        (found,) = form_of(saved[name])[0].score([("gaps", kbest_without_candidates(2))])
        assert found.columns.shape == (0, 2)
        assert conditional_scores(found.problem, ()) == []


def test_the_rest_is_the_models_own(saved: Mapping[str, SavedModel]) -> None:
    form, model = form_of(saved["codclm"])
    twin = form.forgetful()
    scored(form)
    assert (form.digest, form.passes(10.0)) == (model.digest, model.passes(10.0))
    assert (form.seconds, form.report()) == (model.seconds, model.report())
    assert form.details() == model.details() != ""
    assert form.error == 2 * model.error
    assert twin.name == "lmpmi"
    scored(twin)
    assert twin.seconds != form.seconds
    notices = Notices()
    form.finish("dev.kbest", notices)
    assert notices.lines() == []
