"""`--lm NAME=hf:DIR` against a forward pass in float64 for each candidate and its whole context."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import causal
from support.lists import kbest

from decoders.batching import conditional_scores, path_score
from decoders.search import decode
from lm.backend import Backend
from lm.causal.folder import CausalModel, open_causal_model
from rerank.cache import Cache
from rerank.errors import RerankError
from rerank.notices import Notices
from rerank.scorers.causal_lm import CausalLM
from rerank.scorers.causal_options import CausalOptions
from rerank.scorers.causal_problem import CausalProblem
from rerank.scorers.pmi import PmiForm

LISTS = [
    ["the lamp is lit", "it", "the lamp"],
    [],
    ["it gives light", "", "it gives"],
    ["she is old", "she is", "no", "she is old"],
    ["he reads", "he"],
]
PRESENT = [own for own in LISTS if own]
PATHS = ((2, 0, 1, 1), (0, 1, 0, 0), (1, 2, 3, 1))
WINDOWS: list[dict[str, Any]] = [
    {"sentences": 0},
    {"sentences": 1},
    {"sentences": 2},
    {"tokens": 9},
    {},
    {"sentences": 2, "tokens": 9},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return open_causal_model(causal.save(tmp_path_factory.mktemp("models") / "gpt"))


def scorer(model: CausalModel, cache: Cache | None = None, **window: Any) -> CausalLM:
    options = replace(CausalOptions(Path("gpt")), **window)
    return CausalLM("gpt", model, options, Backend(), cache)


def problem_of(source: CausalLM, lists: Sequence[Sequence[str]] = LISTS) -> Any:
    return source.score([("evening", kbest(lists))])[0].problem


def expected(model: CausalModel, path: Sequence[int], t: int, **window: Any) -> list[float]:
    """Scores of sentence t: the text of the window is put together and tokenised here."""
    options = replace(CausalOptions(Path("gpt")), **window)
    space = options.join == "space"

    def tokens(text: str, first: bool) -> list[int]:
        if space and not text:
            return []
        (own,) = model.encode([("" if first or not space else " ") + text + "\n" * (not space)])
        return own

    longest = max(len(tokens(text, first)) for text in PRESENT[t] for first in (True, False))
    most = model.positions - longest
    if options.tokens is not None:
        most = min(most, options.tokens)
    sentences = [PRESENT[s][k] for s, k in enumerate(path[:t])]
    if options.sentences is not None:
        sentences = sentences[max(0, t - options.sentences) :]
    sizes = [max(len(tokens(s, True)), len(tokens(s, False))) for s in sentences]
    while sum(sizes) > most:
        del sentences[0], sizes[0]
    context = [model.begin]
    for text in sentences:
        context += tokens(text, len(context) == 1)
    first = len(context) == 1
    return [causal.obvious(model, context, tokens(text, first)) for text in PRESENT[t]]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("join", ["newline", "space"])
def test_scores_are_those_of_the_obvious_loop(
    model: CausalModel, window: dict[str, Any], join: str
) -> None:
    source = scorer(model, **window, join=join)
    source.check()
    problem = problem_of(source)
    assert (problem.order, source.order) == (source.options.order,) * 2
    for path in PATHS:
        found = conditional_scores(problem, path)
        for t, own in enumerate(found):
            given = expected(model, path, t, **window, join=join)
            np.testing.assert_allclose(own, given, atol=1e-4)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_moves_inside_paths_are_sums_of_these_scores(
    model: CausalModel, window: dict[str, Any]
) -> None:
    problem = problem_of(scorer(model, **window))
    paths = np.array(PATHS)
    for t, horizon in ((0, 3), (1, 1), (2, 0), (3, 5)):
        expected_sums = [
            sum(
                expected(model, path, s, **window)[path[s]]
                for s in range(t, min(4, t + horizon + 1))
            )
            for path in PATHS
        ]
        np.testing.assert_allclose(problem.rescore(paths, t, horizon), expected_sums, atol=4e-4)


@pytest.mark.parametrize("sentences", [1, 2])
def test_viterbi_is_exact_with_a_window_of_sentences(model: CausalModel, sentences: int) -> None:
    problem = problem_of(scorer(model, sentences=sentences))
    best = max(path_score(problem, path) for path in product(*(range(len(own)) for own in PRESENT)))
    found = decode(problem, "viterbi")
    assert found.score == pytest.approx(best, abs=1e-4)


def test_documents_are_scored_in_one_batch_as_alone(model: CausalModel) -> None:
    source = scorer(model, sentences=1)
    both = source.score([("a", kbest(LISTS)), ("b", kbest(LISTS[2:]))])
    for lists, one in ((LISTS, both[0]), (LISTS[2:], both[1])):
        alone = problem_of(scorer(model, sentences=1), lists)
        for t in range(len(alone.lengths)):
            np.testing.assert_allclose(one.problem.pairwise(t), alone.pairwise(t), atol=1e-5)
    histories = [("a", kbest(LISTS)), ("b", kbest(LISTS[2:]))]
    first, second = (one.problem for one in scorer(model).score(histories))
    answers = CausalProblem.extend_together([(first, first.initial(), 0), (second, [()], 0)])
    for problem, (scores, _) in zip((first, second), answers, strict=True):
        np.testing.assert_allclose(scores, problem.extend([()], 0)[0], atol=1e-5)


def test_contexts_beyond_the_positions_lose_whole_sentences_and_are_counted(
    tmp_path: Path,
) -> None:
    small = open_causal_model(causal.save(tmp_path / "small", positions=12))
    source = scorer(small)
    problem = problem_of(source)
    path = PATHS[1]
    for t, own in enumerate(conditional_scores(problem, path)):
        np.testing.assert_allclose(own, expected(small, path, t), atol=1e-4)
    notices = Notices()
    source.finish("dev.kbest", notices)
    (notice,) = notices
    assert notice.kind.startswith("context longer than the 12 positions of gpt")
    assert notice.count > 0
    narrow, none = scorer(small, tokens=1), Notices()
    conditional_scores(problem_of(narrow), path)
    narrow.finish("dev.kbest", none)
    assert none.lines() == []


def test_a_candidate_longer_than_the_positions_is_an_error(tmp_path: Path) -> None:
    small = open_causal_model(causal.save(tmp_path / "small", positions=20))
    with pytest.raises(RerankError, match=r"document 'evening', sentence 1 .* positions for 20"):
        problem_of(scorer(small, sentences=0), [["it"], ["it gives light " * 9]])


@pytest.mark.parametrize("window", [{"sentences": 0}, {"sentences": 1}, {}], ids=str)
def test_cached_scores_are_equal_and_nothing_is_read(
    model: CausalModel, tmp_path: Path, window: dict[str, Any]
) -> None:
    cache = Cache(tmp_path / "cache", Notices(), 1 << 30)
    source = scorer(model, cache, **window)
    (found,) = source.score([("evening", kbest(LISTS))])
    first = conditional_scores(found.problem, PATHS[0])
    found.keep()
    again = scorer(model, cache, **window)
    assert again.remembers(kbest(LISTS))
    second = conditional_scores(problem_of(again), PATHS[0])
    assert (again.work.nodes, again.remembered) == (0, 1)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    shorter = [own[:2] for own in LISTS]
    fewer = conditional_scores(problem_of(scorer(model, cache, **window), shorter), (1, 0, 1, 1))
    np.testing.assert_allclose(fewer[0], first[0][:2], atol=1e-5)
    others: list[dict[str, Any]] = [{"join": "space"}, {"tokens": 5}, {"detokenize": "en"}]
    for other in others:
        assert not scorer(model, cache, **{**window, **other}).remembers(kbest(LISTS))


def test_digests_name_model_window_and_joiner(model: CausalModel) -> None:
    windows: list[dict[str, Any]] = [
        {},
        {"sentences": 1},
        {"tokens": 1},
        {"join": "space"},
        {"detokenize": "en"},
    ]
    assert len({scorer(model, **window).digest for window in windows}) == len(windows)


@pytest.mark.parametrize("window", [{"sentences": 1}, {}], ids=str)
def test_the_pmi_form_is_what_the_context_adds(model: CausalModel, window: dict[str, Any]) -> None:
    form = PmiForm(scorer(model, **window))
    (found,) = form.score([("evening", kbest(LISTS))])
    null = np.concatenate([expected(model, PATHS[0], t, sentences=0) for t in range(4)])
    np.testing.assert_allclose(found.columns[:, 0], null, atol=1e-4)
    pmi = np.concatenate(conditional_scores(found.problem, PATHS[0]))
    given = np.concatenate([expected(model, PATHS[0], t, **window) for t in range(4)])
    np.testing.assert_allclose(pmi, given - null, atol=2e-4)
    assert pmi[:3].tolist() == [0, 0, 0]


def test_order_one_is_scored_lazily_if_asked_for(model: CausalModel) -> None:
    source = scorer(model, sentences=1)
    source.lazily()
    problem = problem_of(source)
    assert source.order is problem.order is None
    for t, own in enumerate(conditional_scores(problem, PATHS[0])):
        given = expected(model, PATHS[0], t, sentences=1)
        np.testing.assert_allclose(own, given, atol=1e-4)


def test_a_copy_for_measuring_time_does_not_count(model: CausalModel) -> None:
    source = scorer(model)
    conditional_scores(problem_of(source.forgetful()), PATHS[0])
    assert (source.work.nodes, source.seconds, source.details()) == (0, 0, "")
    assert source.report() == "gpt: nothing to score"
    conditional_scores(problem_of(source), PATHS[0])
    assert "tokens scored in" in source.report()
    assert "tokens read" in source.details()


def test_detokenised_texts_are_what_the_model_reads(model: CausalModel) -> None:
    tokenised = [["he reads &quot; light &quot; ."], ["she is old ."]]
    plain = [['he reads "light".'], ["she is old."]]
    found = problem_of(scorer(model, detokenize="en"), tokenised).extend([()], 0)[0]
    np.testing.assert_allclose(found, problem_of(scorer(model), plain).extend([()], 0)[0])


def test_a_tokenizer_without_newlines_is_refused(
    model: CausalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CausalModel, "encode", lambda self, texts: [[5] for _ in texts])
    with pytest.raises(ValueError, match=r"no newline, .*; add ,join=space"):
        scorer(model).check()
