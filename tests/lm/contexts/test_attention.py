"""Attention over kept states: its memory is prepared once, its rows are read in any order."""

import pytest
import torch

from lm.composition import Composition
from lm.contexts.attention import Attention
from lm.contexts.final_states import FinalStates
from lm.contexts.previous_words import PreviousWords
from lm.fusions import Output
from lm.model import DocumentLM
from lm.rows import Rows
from lm.tiny_models import context_after, tiny_model

KINDS = [PreviousWords, FinalStates]
DOCUMENTS = [[[3, 5]], [[4], [6, 7, 3]], [], [[5, 5], [], [8]]]


def model_of(kind: type[Attention]) -> tuple[DocumentLM, Rows]:
    """A model, and its contexts after documents of other lengths: padded rows."""
    model = tiny_model(Composition(kind, Output, "", ""), layers=2)
    return model, Rows.cat([context_after(model, document) for document in DOCUMENTS])


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_values_of_rows_are_those_of_positions_with_these_contexts(kind: type[Attention]) -> None:
    model, contexts = model_of(kind)
    prepared = model.context.prepared(contexts)
    query = torch.randn(4, model.context.width)
    aligned = model.context.row_values(prepared, query)
    order = torch.tensor([2, 0, 3, 1, 0])
    found = model.context.word_values(prepared, order, query[order])
    torch.testing.assert_close(found, aligned[order])
    assert not aligned[2].any()  # nothing to attend to


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_values_do_not_depend_on_how_many_are_computed_at_once(
    kind: type[Attention], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, contexts = model_of(kind)
    prepared, rows = model.context.prepared(contexts), torch.arange(4).repeat(3)
    query = torch.randn(12, model.context.width)
    whole = model.context.word_values(prepared, rows, query)
    monkeypatch.setattr("lm.contexts.attention.MOST_ENTRIES", 1)
    torch.testing.assert_close(model.context.word_values(prepared, rows, query), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_states_have_finite_gradients(kind: type[Attention]) -> None:
    model, contexts = model_of(kind)
    query = torch.randn(4, model.context.width, requires_grad=True)
    values = model.context.row_values(model.context.prepared(contexts), query)
    (gradient,) = torch.autograd.grad(values.square().sum(), query)
    assert gradient.isfinite().all()
    assert not gradient[2].any()
