"""Features in given contexts against log-probabilities taken one by one."""

from collections.abc import Mapping

import numpy as np
import pytest
from support.contexts import one_by_one
from support.lists import kbest
from support.models import OF_TEXT_ALONE

from lm.checkpoint import SavedModel
from rerank.scorers import FeatureSource
from rerank.scorers.features import DocumentFeatures, FeatureSpace, prepare
from rerank.scorers.fixed_contexts import after_texts, have_contexts, without_context
from rerank.scorers.language_model import LanguageModel
from rerank.scorers.pmi import PmiForm
from rerank.scorers.reversed_documents import ReversedDocuments

LISTS = [["the lamp is lit", "it", "unheard a"], [], ["it gives light", "", "no"], ["one", "she"]]
TEXTS = ["it gives a lamp", "of a sentence without candidates", "she is lit", "the light"]
PRESENT = [own for own in LISTS if own]
IN_ORDER = [name for name in OF_TEXT_ALONE if name not in ("rnnslm", "hrnnlm-lin-dual")]


def features_of(*scorers: FeatureSource) -> DocumentFeatures:
    lists = kbest(LISTS)
    space = FeatureSpace.of(lists.labels, scorers, total=False)
    (found,) = prepare([("evening", lists)], scorers, space, {})
    return found


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", IN_ORDER)
def test_features_are_those_of_candidates_after_the_texts_and_alone(
    name: str, lazy: bool, saved: Mapping[str, SavedModel]
) -> None:
    model = LanguageModel("lm", saved[name])
    document = features_of(model)
    if lazy:
        model.lazily()
    texts = [text.encode() for text in TEXTS]
    present = [text for text, own in zip(TEXTS, LISTS, strict=True) if own]
    given, null = one_by_one(saved[name], PRESENT, present)
    after = after_texts(document, [model], kbest(LISTS), texts)
    alone = without_context(document, [model], kbest(LISTS))
    np.testing.assert_allclose(after[:, 1], np.concatenate(given), atol=4e-4)
    np.testing.assert_allclose(alone[:, 1], np.concatenate(null), atol=4e-4)
    np.testing.assert_array_equal(after[:, 2], [0, 0, 1, 0, 0, 0, 0, 0])  # unknown words
    np.testing.assert_array_equal(after[:, 0], document.static[:, 0])


def test_of_several_scorers_each_has_its_own_column(saved: Mapping[str, SavedModel]) -> None:
    plain, other = LanguageModel("a", saved["rnnlm"]), LanguageModel("b", saved["drnnlm"])
    pmi = PmiForm(LanguageModel("c", saved["codclm"]))
    scorers = [plain, pmi, other]
    assert have_contexts(scorers)
    assert not have_contexts([plain])
    document, lists = features_of(*scorers), kbest(LISTS)
    texts = [text.encode() for text in TEXTS]
    columns = [after_texts(features_of(one), [one], lists, texts)[:, 1:] for one in scorers]
    together = after_texts(document, scorers, lists, texts)[:, 1:]
    np.testing.assert_allclose(together, np.column_stack(columns), atol=1e-5)
    alone = without_context(document, scorers, lists)
    np.testing.assert_array_equal(alone[:, document.space.contextual[1]], 0)


def test_a_source_that_reads_documents_backwards_has_the_later_texts_as_context(
    saved: Mapping[str, SavedModel],
) -> None:
    model = LanguageModel("lm", saved["codclm"])
    turned = ReversedDocuments(model)
    lists, texts = kbest(LISTS), [text.encode() for text in TEXTS]
    document = features_of(turned)
    after = after_texts(document, [turned], lists, texts)
    present = [text for text, own in zip(TEXTS, LISTS, strict=True) if own]
    given, null = one_by_one(saved["codclm"], PRESENT[::-1], present[::-1])
    np.testing.assert_allclose(after[:, 1], np.concatenate(given[::-1]), atol=4e-4)
    alone = without_context(document, [turned], lists)
    np.testing.assert_allclose(alone[:, 1], np.concatenate(null[::-1]), atol=4e-4)


class OfSentences(FeatureSource):
    """Order 1, and no null scores of its own: `FeatureSource` makes documents of one sentence."""

    order = 1

    def __init__(self, model: LanguageModel) -> None:
        super().__init__("lm")
        self.score = model.score  # type: ignore[method-assign]
        self.columns = model.columns

    def score(self, documents):  # type: ignore[no-untyped-def]
        """Replaced by that of a model."""
        raise NotImplementedError


def test_without_scores_of_its_own_a_source_gets_documents_of_one_sentence(
    saved: Mapping[str, SavedModel],
) -> None:
    model = LanguageModel("lm", saved["codclm"])
    document, source = features_of(model), OfSentences(model)
    found = without_context(document, [source], kbest(LISTS))
    np.testing.assert_allclose(found, without_context(document, [model], kbest(LISTS)), atol=2e-4)
