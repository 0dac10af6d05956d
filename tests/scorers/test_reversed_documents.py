"""Features of reversed documents against those of a forward source, given reversed lists."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from support.lists import kbest
from support.models import save_models
from support.words import WORDS

from decoders.batching import path_score
from decoders.reversal import own_scores, reversed_problem
from lm.checkpoint import SavedModel, load_model
from rerank.cache import Cache
from rerank.errors import RerankError
from rerank.notices import Notices
from rerank.scorers import FeatureSource, ScoredDocument
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.pmi import PmiForm
from rerank.scorers.reversed_documents import ReversedDocuments

LISTS = [
    ["the lamp is lit", "it", "unheard a"],
    [],
    ["it gives light", "", "no"],
    ["one", "unheard unheard"],
]
PATH = (2, 0, 1)
BAGS = ["rlm-bow-ef-1", "rlm-bow-lf-2"]  # of orders 1 and 2, a pass for each context
Models = Mapping[str, SavedModel]
FORMS: Mapping[str, Callable[[LanguageModel], FeatureSource]] = {"lm": lambda m: m, "pmi": PmiForm}


@pytest.fixture(scope="module")
def saved(saved: Mapping[str, SavedModel], tmp_path_factory: pytest.TempPathFactory) -> Models:
    """With members of families."""
    folders = {name: tmp_path_factory.mktemp(name) for name in BAGS}
    save_models(folders, WORDS, 6, 8, oov_rate=0.25)
    return {**saved, **{name: load_model(folder) for name, folder in folders.items()}}


def scored(source: FeatureSource, lists: Sequence[Sequence[str]]) -> ScoredDocument:
    return source.score([("evening", kbest(lists))])[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["rnnlm", "codclm", "ccdclm", "rlm-bow-ef-1", "rlm-bow-lf-2"])
def test_scores_are_those_of_the_reversed_document_in_the_order_of_the_text(
    name: str, form: str, saved: Models
) -> None:
    forward = FORMS[form](LanguageModel("lm", saved[name]))
    turned = ReversedDocuments(FORMS[form](LanguageModel("lm", saved[name])))
    facts = ("name", "columns", "order", "error", "runs_on", "digest")
    assert all(getattr(turned, fact) == getattr(forward, fact) for fact in facts)
    assert (turned.given_later, forward.given_later) == (True, False)
    truth, found = scored(forward, LISTS[::-1]), scored(turned, LISTS)
    assert found.problem.lengths == (3, 3, 2)
    ours = own_scores(found.problem, PATH)
    for one, other in zip(ours, own_scores(truth.problem, PATH[::-1])[::-1], strict=True):
        np.testing.assert_array_equal(one, other)
    score = path_score(found.problem, PATH)
    assert score == pytest.approx(path_score(truth.problem, PATH[::-1]), abs=1e-4)
    rows = [5, 6, 7, 2, 3, 4, 0, 1]  # of the reversed lists, in the order of the text
    np.testing.assert_array_equal(found.columns, truth.columns[rows])


def test_the_cache_does_not_mistake_one_order_for_the_other(saved: Models, tmp_path: Path) -> None:
    cache, lists = Cache(tmp_path, Notices(), 1 << 20), kbest(LISTS)
    turned = ReversedDocuments(LanguageModel("lm", saved["ccdclm"], cache=cache))
    assert not turned.remembers(lists)
    found = scored(turned, LISTS)
    first = own_scores(found.problem, PATH)
    found.keep()
    again = ReversedDocuments(LanguageModel("lm", saved["ccdclm"], cache=cache))
    assert again.remembers(lists)
    assert not LanguageModel("lm", saved["ccdclm"], cache=cache).remembers(lists)
    for one, other in zip(own_scores(scored(again, LISTS).problem, PATH), first, strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.seconds == 0
    assert again.report().endswith("; documents read from the last sentence to the first")


def test_a_copy_for_measuring_is_reversed_too(saved: Models) -> None:
    turned = ReversedDocuments(LanguageModel("lm", saved["codclm"]))
    assert turned.forgetful().given_later
    assert turned.passes(10) == 1.0
    turned.finish("lists", Notices())
    assert turned.details() == ""
    one = scored(turned.forgetful(), LISTS)
    assert path_score(one.problem, PATH) == path_score(scored(turned, LISTS).problem, PATH)
    assert "trie nodes" in turned.details()
    assert turned.seconds > 0


def test_pairs_that_take_a_pass_each_are_scored_lazily(saved: Models) -> None:
    turned = ReversedDocuments(LanguageModel("lm", saved["rlm-bow-ef-1"]))
    assert (turned.order, turned.passes(10)) == (1, 10)
    turned.lazily()
    assert turned.order is None
    problem = scored(turned, LISTS).problem
    assert (problem.causal, reversed_problem(problem).causal) == (False, True)


def test_a_faulty_score_says_that_sentences_are_counted_from_the_last(tmp_path: Path) -> None:
    save_models({"codclm": tmp_path}, WORDS, 6, 8, oov_rate=0.0, reverse_documents=True)
    broken = load_model(tmp_path)
    with torch.no_grad():
        broken.model.embedding.weight[broken.vocabulary.ids[b"lit"]] = torch.nan
    turned = ReversedDocuments(LanguageModel("lm", broken))
    with pytest.raises(RerankError) as raised:
        scored(turned, [["it"], ["she is lit", "it"], ["one"]])
    expected = "scorer 'lm', document 'evening', its sentences counted from the last: sentence 0, "
    assert str(raised.value).startswith(expected)
