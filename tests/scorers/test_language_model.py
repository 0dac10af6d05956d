"""A language model as a scorer, against `lm.scoring.after` walked along explicit paths."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.lists import kbest, kbest_without_candidates
from support.models import OF_TEXT_ALONE

from decoders.batching import conditional_scores
from decoders.problem import DocumentProblem
from lm.backend import Backend
from lm.checkpoint import SavedModel, load_model
from lm.engine import ScoringEngine
from lm.model import Config, DocumentLM
from lm.scoring import after
from lm.tiny_models import read_by_words
from lm.trie import Candidates
from lm.vocabulary import UNKNOWN, Vocabulary
from lm.zoo import ZOO
from rerank.errors import RerankError
from rerank.notices import Notices
from rerank.scorers.language_model import LanguageModel

ORDERS = {name: ZOO[name].order for name in ZOO}  # checked in `tests/lm/test_zoo.py`
WORDS = ["the", "lamp", "is", "lit", "it", "burns", "unheard", "<unk>", "</s>"]
Lists = Sequence[Sequence[str]]
every_model = pytest.mark.parametrize("name", OF_TEXT_ALONE)

sentence = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
documents = st.lists(st.lists(sentence, max_size=4), min_size=1, max_size=4).filter(any)


def problem_of(saved: SavedModel, lists: Lists) -> DocumentProblem:
    return LanguageModel("lm", saved).score([("evening", kbest(lists))])[0].problem


def ids(vocabulary: Vocabulary, text: str) -> list[int]:
    return vocabulary.encode(text.encode().split())


def walked(saved: SavedModel, lists: Lists, path: Sequence[int]) -> list[NDArray[np.float64]]:
    """Scores of each sentence's candidates after a path, one candidate at a time."""
    model, scorer = saved.model, ScoringEngine.of(saved.model)
    context = model.context.start(1)
    seen = []
    for candidates, choice in zip(lists, path, strict=True):
        alone = [
            after(scorer, [(Candidates.of([[ids(saved.vocabulary, text)]]), context)])[0]
            for text in candidates
        ]
        seen.append(np.array([float(score[0, 0]) for score, _ in alone]))
        context = model.context.advance(context, alone[choice][1]).detach()
    return seen


@every_model
def test_the_problem_has_the_order_of_the_model(name: str, saved: dict[str, SavedModel]) -> None:
    problem = problem_of(saved[name], [["the lamp"], ["it", "the"]])
    assert problem.order == LanguageModel("lm", saved[name]).order == ORDERS[name]
    assert tuple(problem.lengths) == (1, 2)


@every_model
@given(lists=documents, data=st.data())
@settings(max_examples=12)
def test_scores_along_any_path_are_those_of_the_candidates_one_by_one(
    name: str, saved: dict[str, SavedModel], lists: Lists, data: st.DataObject
) -> None:
    """A sentence without candidates hands on the context that it received."""
    present = [candidates for candidates in lists if candidates]
    path = [data.draw(st.integers(0, len(candidates) - 1)) for candidates in present]
    problem = problem_of(saved[name], lists)
    expected = walked(saved[name], present, path)
    for scores, truth in zip(conditional_scores(problem, path), expected, strict=True):
        np.testing.assert_allclose(scores, truth, atol=2e-4)


@every_model
def test_many_states_are_extended_as_each_of_them_alone(
    name: str, saved: dict[str, SavedModel]
) -> None:
    lists = [["the lamp is lit", "it", "a a"], ["it gives light", "no"], ["one", "she is"]]
    problem = problem_of(saved[name], lists)
    _, successors = problem.extend(problem.initial(), 0)
    states = problem.select(successors, np.zeros(2, np.intp), np.array([2, 0]))
    scores, successors = problem.extend(states, 1)
    np.testing.assert_allclose(
        scores, [walked(saved[name], lists[:2], (first, 0))[1] for first in (2, 0)], atol=2e-4
    )
    states = problem.select(successors, np.array([1, 0, 1]), np.array([0, 1, 1]))
    scores, _ = problem.extend(states, 2)
    paths = [(0, 0, 0), (2, 1, 0), (0, 1, 0)]
    np.testing.assert_allclose(
        scores, [walked(saved[name], lists, path)[2] for path in paths], atol=2e-4
    )


@every_model
def test_an_empty_candidate_costs_the_end_of_its_sentence(
    name: str, saved: dict[str, SavedModel]
) -> None:
    model = saved[name].model
    context = model.context.start(1)
    with torch.no_grad():
        features = model.features(read_by_words(model, [], context), context)
        expected = -float(model.head.nll(features, torch.tensor([2]))[0])
    (scores,) = conditional_scores(problem_of(saved[name], [[""]]), (0,))
    assert scores[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["rnnslm", "hrnnlm-lin"])
def test_histories_of_equal_bags_are_scored_once(name: str, saved: dict[str, SavedModel]) -> None:
    """At unbounded order, too: the tries of sentence 1 stand after two of three histories."""
    scorer = LanguageModel("lm", saved[name])
    lists = [["the lamp", "lamp the", "it"], ["it", "a"]]
    problem = scorer.score([("evening", kbest(lists))])[0].problem
    _, successors = problem.extend(problem.initial(), 0)
    states = problem.select(successors, np.zeros(3, np.intp), np.arange(3))
    before = scorer.work.nodes
    scores, _ = problem.extend(states, 1)
    assert scorer.work.nodes - before == 2 * len(["<s>", "it", "a"])
    np.testing.assert_array_equal(scores[0], scores[1])
    assert abs(scores[0] - scores[2]).max() > 1e-3


def test_words_outside_the_vocabulary_are_counted_for_each_candidate_and_in_all(
    saved: dict[str, SavedModel],
) -> None:
    scorer = LanguageModel("lm", saved["rnnlm"])
    lists = [["the unheard lamp", "<unk> <s> </s>"], [], ["", "it is"]]
    columns = scorer.score([("evening", kbest(lists))])[0].columns
    np.testing.assert_array_equal(columns, [[1], [3], [0], [0]])
    assert scorer.columns == ("lmoov",)
    assert (scorer.unknown.oov, scorer.unknown.words) == (4, 8)
    scorer.score([("night", kbest([["unheard"]]))])
    assert (scorer.unknown.oov, scorer.unknown.words) == (5, 9)


def test_control_words_in_a_hypothesis_are_unknown_words(saved: dict[str, SavedModel]) -> None:
    assert ids(saved["rnnlm"].vocabulary, "<unk> <s> </s> unheard") == [UNKNOWN] * 4
    (scores,) = conditional_scores(
        problem_of(saved["rnnlm"], [["</s> is", "<s> is", "unheard is"]]), (0,)
    )
    assert scores[0] == scores[1] == scores[2]


@every_model
@pytest.mark.parametrize("lists", [[[]], [[], []]], ids=["one gap", "gaps"])
def test_a_document_of_gaps_has_one_path(
    name: str, lists: Lists, saved: dict[str, SavedModel]
) -> None:
    document = kbest_without_candidates(len(lists))
    scored = LanguageModel("lm", saved[name]).score([("gaps", document)])[0]
    assert conditional_scores(scored.problem, ()) == []
    assert scored.columns.shape == (0, 1)


@every_model
def test_a_model_that_returns_nan_is_named_with_the_document(
    name: str, model_folders: Mapping[str, Path]
) -> None:
    broken = load_model(model_folders[name])
    with torch.no_grad():
        broken.model.embedding.weight[5:7] = torch.nan
    told = re.escape("scorer 'lm', document 'evening'") + ".*NaN"
    with pytest.raises(RerankError, match=told) as fault:
        conditional_scores(problem_of(broken, [["it", "the lamp"], ["lit"]]), (1, 0))
    assert fault.value.exit_code == 1


# What a run asks of any scorer


def test_the_stated_error_is_that_of_the_precision(saved: dict[str, SavedModel]) -> None:
    """The largest of a sentence, measured by recipes/bench/errors.py."""
    found = [
        LanguageModel("lm", saved["rnnlm"], Backend(dtype=dtype))
        for dtype in ("float32", "bfloat16")
    ]
    assert [scorer.error for scorer in found] == [1.2e-4, 0.5]
    assert {(scorer.digest, scorer.runs_on) for scorer in found} == {(saved["rnnlm"].digest, "cpu")}


def test_a_model_of_other_words_is_told_with_the_share_that_it_does_not_know(
    saved: dict[str, SavedModel],
) -> None:
    """It did not know a quarter of its training text: more than twice that and 0.01 is told."""
    notices, scorer = Notices(), LanguageModel("lm", saved["rnnlm"])
    lists = [[*(f"w{i} " * (12 - i) for i in range(12)), "the lamp"], ["unheard lamp"] * 2]
    for unknown in (51, 52):
        assert notices.lines() == []
        scorer.score([("evening", kbest([[" ".join(lists[0])], lists[1]]))])
        scorer.unknown.oov, scorer.unknown.words = unknown, 100
        scorer.finish("dev.kbest", notices)
    scorer.finish("dev.kbest", notices)  # each run has its own counts
    (told,) = notices.lines()
    assert told.startswith("52 x word unknown to lm (52.0% of the list's words, 25.0% of its")
    assert "dev.kbest" in told
    assert f"most frequent: {', '.join(map(repr, [f'w{i}' for i in range(10)]))})" in told


class ShortOfMemory(Backend):
    """A backend that has room for the states of so many tokens at once."""

    def __init__(self, most: int, fault: Exception) -> None:
        super().__init__()
        self.most, self.fault, self.asked = most, fault, list[int]()

    def tokens(self, hidden: int) -> int:
        self.asked.append(super().tokens(hidden))
        if self.asked[-1] > self.most:
            raise self.fault
        return self.asked[-1]


@every_model
@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("std::bad_alloc"),
    ],
    ids=["python", "cuda", "cpu", "cublas", "c++"],
)
def test_a_model_that_is_short_of_memory_gives_the_same_scores_in_smaller_batches(
    saved: dict[str, SavedModel], name: str, fault: Exception
) -> None:
    lists = [["the lamp is lit", "a lamp"], ["it burns", "it is lit", ""]]
    path, notices = (1, 0), Notices()
    most = Backend().tokens(saved[name].model.config.hidden) // 4
    backend = ShortOfMemory(most, fault)
    scorer = LanguageModel("lm", saved[name], backend)
    (found,) = scorer.score([("evening", kbest(lists))])
    for ours, truth in zip(
        conditional_scores(found.problem, path), walked(saved[name], lists, path), strict=True
    ):
        np.testing.assert_allclose(ours, truth, atol=1e-5)
    assert backend.asked[:3] == [4 * most, 2 * most, most]
    assert set(backend.asked[3:]) <= {most}
    scorer.finish("dev.kbest", notices)
    assert len(notices.lines()) == 1
    backend.most = 0

    def another() -> None:
        (other,) = scorer.score([("night", kbest([["it burns", "a lamp"], ["lit", "burns"]]))])
        conditional_scores(other.problem, path)

    with pytest.raises(RerankError, match=r"scorer 'lm', document 'night'.*memory.*--top"):
        another()


def test_what_a_model_did_is_told_in_a_line(saved: dict[str, SavedModel]) -> None:
    scorer = LanguageModel("lm", saved["codclm"])
    assert scorer.report() == "lm: nothing to score"
    assert scorer.details() == ""
    scorer.remembered = 3
    work = scorer.work
    work.seconds, work.tokens, work.nodes = 1.26, 26_000, 10_000
    work.normalisers, work.recomputed = 10_000, 25
    assert scorer.seconds == 1.26
    assert scorer.report() == "lm: 3 documents from the cache, 26,000 tokens scored in 1.3 s"
    assert scorer.details() == (
        "lm: 10,000 trie nodes (2.60 tokens a node), 10,000 normalisers, 0.25% recomputed directly"
    )


def test_a_dear_model_of_order_1_can_score_what_a_search_asks_for(
    saved: dict[str, SavedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model of the zoo is dear; one that says so stands for it."""
    lists = [["the lamp is lit", "it burns"], ["it", "is lit", "the"], ["burns", "the lamp"]]
    cheap = LanguageModel("lm", saved["codclm"])
    cheap.lazily()
    assert cheap.order == 1
    monkeypatch.setattr(LanguageModel, "passes", lambda self, k: k)
    dear = LanguageModel("lm", saved["codclm"])
    group = dear._memory.group
    dear.lazily()
    assert dear.order is None
    assert dear._memory.group != group  # what is kept of it has another form
    (problem,) = (one.problem for one in dear.score([("evening", kbest(lists))]))
    for path in [(0, 0, 0), (1, 2, 1)]:
        truth = conditional_scores(problem_of(saved["codclm"], lists), path)
        for ours, theirs in zip(conditional_scores(problem, path), truth, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.parametrize(
    ("name", "passes"),
    [("rnnlm", 1), ("codclm", 1), ("dclm-decoupled", 1), ("dclm-two-sentence", 9), ("dclm", 1)],
)
def test_exact_search_takes_a_pass_for_all_previous_candidates_where_contexts_add_to_logits(
    name: str, passes: float, saved: dict[str, SavedModel]
) -> None:
    """The candidates of the sentence before that are as many passes, at order 2."""
    assert LanguageModel("lm", saved[name]).passes(9.0) == passes


@pytest.mark.parametrize(
    ("about", "told"),
    [
        (
            {"log_z": {"mean": -0.0163, "sd": 0.4436}},
            "lm: nothing to score; scores are not normalised: log Z -0.016 ± 0.444 a word on the "
            "validation text",
        ),
        ({}, "lm: nothing to score; scores are not normalised: log Z unknown"),
        ({"log_z": {"mean": 0.1}}, "unknown"),
        ({"log_z": {"mean": "\x1b[31m", "sd": 0.1}}, "unknown"),
        ({"log_z": {"mean": 10**400, "sd": 0.1}}, "unknown"),
        ({"log_z": {"mean": float("nan"), "sd": 0.1}}, "unknown"),
    ],
)
def test_a_model_that_is_not_normalised_says_so_with_its_error(
    about: Mapping[str, object], told: str, saved: dict[str, SavedModel]
) -> None:
    """A folder of strangers may state anything."""
    words = saved["rnnlm"].vocabulary
    model = DocumentLM(Config("codclm", len(words), 6, 8, head="self-normalised"))
    scorer = LanguageModel("lm", SavedModel(model, words, "", about))
    assert scorer.report().endswith(told)
