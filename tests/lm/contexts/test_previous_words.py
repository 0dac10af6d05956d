"""Attention over the previous sentence's words, against its equation written out."""

import pytest
import torch

from lm.composition import Composition
from lm.contexts.previous_words import PreviousWords
from lm.fusions import Fusion, Input, Output
from lm.laws import check_composition
from lm.tiny_models import read_by_words, tiny_model

ATTENTION = Composition(PreviousWords, Output, "", "")


@pytest.mark.parametrize(("fusion", "order"), [(Output, 1), (Input, None)])
@pytest.mark.parametrize(("recurrence", "layers"), [("lstm", 1), ("cifg", 2)])
def test_attention_obeys_the_laws_where_its_values_are_added_and_where_they_are_inputs(
    fusion: type[Fusion], order: int | None, recurrence: str, layers: int
) -> None:
    composition = Composition(PreviousWords, fusion, "", "")
    assert tiny_model(composition).order == order
    check_composition(composition, recurrence=recurrence, layers=layers)


@torch.no_grad()
def test_values_are_weighted_means_of_the_states_of_the_previous_words() -> None:
    model = tiny_model(ATTENTION)
    context = model.context
    assert isinstance(context, PreviousWords)
    before = read_by_words(model, [3, 5, 4], context.start(1))
    kept = context.advance(context.start(1), context.summary(before))
    queries = torch.randn(4, 8)
    found = context.word_values(context.prepared(kept), torch.zeros(4, dtype=torch.long), queries)
    states = before.hidden[1:]  # the state after <s> is of no word
    for value, query in zip(found, queries, strict=True):
        terms = [
            context.weight.weight[0]
            @ torch.tanh(context.query.weight @ query + context.memory.weight @ state)
            for state in states
        ]
        shares = torch.softmax(torch.stack(terms), dim=0)
        torch.testing.assert_close(value, shares @ states)


@pytest.mark.parametrize("document", [[], [[]]], ids=["no-sentence", "empty-sentence"])
@torch.no_grad()
def test_without_words_to_attend_to_the_value_is_zero(document: list[list[int]]) -> None:
    model = tiny_model(ATTENTION)
    context, kept = model.context, model.context.start(1)
    for sentence in document:
        kept = context.advance(kept, context.summary(read_by_words(model, sentence, kept)))
    both = kept.cat([kept, context.summary(read_by_words(model, [3, 4], kept))])  # padded
    for contexts in (kept, both):
        ready, rows = context.prepared(contexts), torch.zeros(2, dtype=torch.long)
        value = context.word_values(ready, rows, torch.randn(2, 8))
        assert not value.any()
