"""Scores of variants in several contexts, against each of them scored alone."""

import numpy as np
import pytest
from support.models import OF_TEXT_ALONE

from lm import contrast
from lm.composition import Composition
from lm.contexts.bag import BagOfWords
from lm.contrast import context_key, scores_in_contexts
from lm.engine import ScoringEngine
from lm.fusions import Output
from lm.scoring import after
from lm.tiny_models import DOCUMENT, context_after, tiny_model
from lm.trie import Candidates
from lm.zoo import ZOO

BAG = Composition(BagOfWords, Output, "", "")
VARIANTS = [[[3, 4], [3, 5]], [[6], [7, 8], [], [6]], [[9, 0, 9], [9, 9]], [[4], [5]]]
TEXTS = [DOCUMENT[:2], (), DOCUMENT[1:4], DOCUMENT[:2]]
CONTEXTS = [[text, (), TEXTS[(i + 2) % 4]] for i, text in enumerate(TEXTS)]


@pytest.mark.parametrize("together", [1, 3, 128])
@pytest.mark.parametrize("name", [*OF_TEXT_ALONE, "bag"])
def test_scores_are_those_of_each_item_in_each_context_alone(
    name: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contrast, "TOGETHER", together)
    model = tiny_model({**ZOO, "bag": BAG}[name])
    engine = ScoringEngine.of(model)
    found = [*scores_in_contexts(engine, VARIANTS, CONTEXTS)]
    assert [scores.shape for scores in found] == [(3, 2), (3, 4), (3, 2), (3, 2)]
    for scores, variants, contexts in zip(found, VARIANTS, CONTEXTS, strict=True):
        for row, text in zip(scores, contexts, strict=True):
            for score, words in zip(row, variants, strict=True):
                request = Candidates.of([[words]]), context_after(model, [*text])
                ((alone, _),) = after(engine, [request])
                assert score == pytest.approx(alone[0, 0], abs=2e-5)


@pytest.mark.parametrize("name", OF_TEXT_ALONE)
def test_contexts_that_a_model_cannot_tell_apart_give_equal_bits(name: str) -> None:
    model = tiny_model(ZOO[name])
    contexts = [[DOCUMENT[:3], DOCUMENT[1:3], (), DOCUMENT[:3]]]
    (scores,) = scores_in_contexts(ScoringEngine.of(model), [[[3, 4], [5]]], contexts)
    assert np.array_equal(scores[0], scores[3])
    assert np.array_equal(scores[0], scores[1]) == (model.order in (0, 1, 2))
    assert np.array_equal(scores[0], scores[2]) == (model.order == 0)


def test_equal_words_score_equal_to_the_last_bit() -> None:
    (scores,) = scores_in_contexts(
        ScoringEngine.of(tiny_model(ZOO["ccdclm"])), [[[3, 0, 4], [3, 0, 4], [3]]], [CONTEXTS[0]]
    )
    assert np.array_equal(scores[:, 0], scores[:, 1])
    assert not np.array_equal(scores[:, 0], scores[:, 2])


def test_keys_say_which_texts_leave_equal_contexts() -> None:
    one, other = [[3, 4], [5, 6]], [[7, 8], [6, 5]]
    bag, last, carried = (tiny_model(c) for c in (BAG, ZOO["codclm"], ZOO["drnnlm"]))
    assert context_key(bag, one) == context_key(bag, other) != context_key(bag, one[:1])
    assert context_key(last, one) != context_key(last, other)
    assert context_key(last, one) == context_key(last, [[9], *one])
    assert context_key(carried, one) != context_key(carried, [[9], *one])
    assert context_key(carried, one) == context_key(carried, [list(s) for s in one])
    empty = tiny_model(ZOO["rnnlm"])
    assert context_key(empty, one) == context_key(empty, ())


def test_no_item_gives_no_scores() -> None:
    assert [*scores_in_contexts(ScoringEngine.of(tiny_model(BAG)), [], [])] == []
