"""Tiny models read word by word as the product reads many sentences at once."""

import pytest
import torch
from support.models import OF_TEXT_ALONE

from lm.evaluation import perplexity
from lm.tiny_models import DOCUMENT, corpus_of, entered, last_score, side_of, tiny_model
from lm.zoo import ZOO


@pytest.mark.parametrize("name", [name for name in OF_TEXT_ALONE if name != "rnnslm"])
def test_scores_of_sentences_after_each_other_are_the_document_that_is_read_at_once(
    name: str,
) -> None:
    model = tiny_model(ZOO[name])
    scores = [last_score(model, DOCUMENT[: t + 1]) for t in range(len(DOCUMENT))]
    found = perplexity(model, corpus_of(DOCUMENT))
    assert sum(scores) == pytest.approx(-found.nats, rel=1e-5)


def test_the_same_composition_is_the_same_model() -> None:
    one, other = (tiny_model(ZOO["ccdclm"]).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_each_sentence_has_side_information_of_its_own() -> None:
    model = tiny_model(ZOO["dclm-bilingual"])
    context = model.context.start(1)
    values = [model.context.value(entered(model, context, t)) for t in range(3)]
    assert not torch.equal(values[0], values[1])
    replaced = entered(model, context, 0, other="source")
    assert not torch.equal(values[0], model.context.value(replaced))


def test_made_up_side_information_has_a_row_for_each_sentence() -> None:
    side = side_of(tiny_model(ZOO["dclm-rst"]), range(8))
    numbers = side["parents"].sentences
    assert len(numbers) == 9
    assert side_of(tiny_model(ZOO["rnnlm"]), range(8)) == {}
