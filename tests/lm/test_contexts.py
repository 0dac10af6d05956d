"""Contexts, the fusions by which they enter, and encoders of their sentences.

Whole models are compared with scalar code in `test_against_scalar.py`; the laws of every context
(batches, keys, orders, gradients) are checked over the zoo in `test_zoo.py`.
"""

from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor

from lm.composition import FUSIONS, Composition, ContextWindow
from lm.contexts import STEPS, ThoughtVector, attention
from lm.contexts.attention import Attention, BagAttention, FinalStates, PreviousWords
from lm.contexts.bags import BagOfWords
from lm.contexts.document import SourceAndPrevious
from lm.corpus import Corpus, Segment
from lm.fusions import Fusion, Input, InputSum, Output
from lm.laws import check_composition, context_after, read_by_words, tiny_model
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.recurrences import few_rows
from lm.sentences import Rows
from lm.zoo import ZOO


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def composed(context: Any, fusion: Any = Output, **options: Any) -> DocumentLM:
    return tiny_model(Composition(context, fusion, "", ""), **options)


# Attention
@pytest.mark.parametrize("kind", [PreviousWords, FinalStates])
def test_attention_ignores_padding(kind: type[Attention], monkeypatch: pytest.MonkeyPatch) -> None:
    model = composed(kind, layers=2)
    documents = [[[3, 5]], [[4], [6, 7, 3]], [], [[5, 5], [], [8]]]
    contexts = Rows.cat([context_after(model, document) for document in documents])
    prepared = model.context.prepared(contexts)
    query = torch.randn(4, model.context.width, requires_grad=True)
    aligned = model.context.row_values(prepared, query)
    (gradient,) = torch.autograd.grad(aligned.square().sum(), query, retain_graph=True)
    assert gradient.isfinite().all()
    assert not aligned[2].any()  # nothing to attend to
    assert not gradient[2].any()
    order = torch.tensor([2, 0, 3, 1, 0])
    for entries in (1 << 20, 1):
        monkeypatch.setattr("lm.contexts.attention.MOST_ENTRIES", entries)
        result = model.context.word_values(prepared, order, query[order])
        torch.testing.assert_close(result, aligned[order])
    if kind is FinalStates:  # a single state is the value whatever the query
        torch.testing.assert_close(aligned[0], contexts.tensors[0][0, 0])


@pytest.mark.parametrize("recurrence", ["cifg", "cifg-2015", "lstm"])
@pytest.mark.parametrize("model", ["adclm", "dam"])
def test_few_rows_that_attend_are_read_as_by_single_steps_with_the_same_gradients(
    model: str, recurrence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents of different lengths, some previous sentences empty; only Ji's cell is compiled."""
    documents = [[[3, 4, 5], [6], [], [7, 3]], [[], [4, 4]], [[5, 6, 7, 3, 4], [3, 5], [6, 7, 4]]]
    grid = np.array([[0, 4, 6], [1, 5, 7], [2, -1, 8], [3, -1, -1]])  # sentences of documents
    corpus, segment = Corpus.of(documents), Segment(grid, np.ones(3, dtype=np.bool_))
    lm = tiny_model(ZOO[model], recurrence=recurrence, layers=2)
    compiled = Mock(wraps=attention.unroll_attentive)
    monkeypatch.setattr(attention, "unroll_attentive", compiled)

    def loss_and_gradients(most: int) -> tuple[Tensor, ...]:
        monkeypatch.setattr(few_rows, "MOST", most)
        result = read(lm, corpus, segment, lm.context.start(3))
        loss = lm.head.exact_loss(result.features, result.targets).sum()
        return loss, *torch.autograd.grad(loss, [*lm.parameters()])

    truth = loss_and_gradients(0)
    assert not compiled.called
    torch.testing.assert_close(loss_and_gradients(1000), truth, atol=1e-5, rtol=1e-4)
    assert compiled.called == (recurrence != "lstm")


# Bags of words
@torch.no_grad()
def test_attention_over_bags_in_parts_is_attention_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = composed(ContextWindow(BagAttention, 3), InputSum)
    query, rows = torch.randn(7, 8), torch.zeros(7, dtype=torch.long)
    contexts = context_after(model, [[3, 4, 3], [], [5], [6, 4]])
    whole = model.context.word_values(model.context.prepared(contexts), rows, query)
    assert not torch.allclose(whole[0], whole[1])
    monkeypatch.setattr("lm.contexts.attention.MOST_ENTRIES", 1)
    parts = model.context.word_values(model.context.prepared(contexts), rows, query)
    torch.testing.assert_close(parts, whole)
    prepared = model.context.prepared(context_after(model, [[], [3, 4], []]))
    assert (prepared.energies == 0).tolist() == [[False, True, False]]
    result = model.context.word_values(prepared, rows, query)
    torch.testing.assert_close(result, prepared.states[0, 1].expand(7, -1))


# Sentence levels of Lin et al. 2015
def test_weights_of_lin_et_al_start_as_in_the_paper() -> None:
    """§4.3: hs_0 = 0.1, U(±1/V) for inputs, U(±1/H) for outputs, D = 0."""
    wide, hidden = 500, 40
    model = DocumentLM.seeded(Config("hrnnlm-lin", wide, hidden, hidden, hash_size=600), 1)
    state, bags = model.context.start(2).tensors
    assert torch.equal(state, torch.full((2, hidden), 0.1))
    assert bags.shape == (2, 0)
    for name, parameter in model.named_parameters():
        largest = float(parameter.detach().abs().max())
        bound = 1 / hidden if name.endswith("output") else 1 / wide
        expected = (
            largest == 0 if name.endswith("hashes.weight") else 0.9 * bound < largest <= bound
        )
        assert expected, name


# Source and next target sentences
@torch.no_grad()
def test_source_and_previous_sentence_are_each_what_they_are_alone() -> None:
    model = DocumentLM.seeded(Config("dclm-bilingual-decoupled", 9, 3, 4, source_words=8), 2)
    context = model.context
    assert isinstance(context, SourceAndPrevious)
    assert context.source_level is context.source.source_level
    both, source, previous = (one.start(1) for one in (context, context.source, context.previous))
    for source_words, words in (([3, 4], [5, 6]), ([5], [3]), ([4, 4], [7, 8, 3])):
        side = Rows.of(torch.tensor([source_words]) + 1)
        both = context.enter(both, context.encoded(side))
        source = context.source.enter(source, context.source.encoded(side))
        halves = [context.source.value(source), context.previous.value(previous)]
        assert torch.equal(context.value(both), torch.cat(halves, dim=1))
        summary = context.summary(read_by_words(model, words, both))
        both = context.advance(both, summary)
        previous = context.previous.advance(previous, summary)


# Laws of compositions that are not in the zoo
@pytest.mark.parametrize(
    ("context", "fusion", "order", "options"),
    [
        (BagOfWords, Input, 1, {}),
        (partial(BagOfWords, sentences=2), Output, 2, {}),
        (PreviousWords, Output, 1, {"recurrence": "lstm"}),
        (PreviousWords, Input, None, {"recurrence": "cifg", "layers": 2}),
        (ZOO["dclm-right-target"].context, FUSIONS["merge"], None, {"scale": 4.0}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_other_compositions_obey_the_laws_at_the_order_of_their_sentences(
    context: Any, fusion: type[Fusion], order: int | None, options: dict[str, Any]
) -> None:
    assert composed(context, fusion).order == order
    check_composition(Composition(context, fusion, "", ""), **options)


# Thought vectors
def test_thought_vectors_are_rounded_in_training_alone_with_the_gradient_of_exact_ones() -> None:
    vector, hidden = ThoughtVector(9, None), torch.randn(5, 9)
    exact = torch.tanh(hidden @ vector.projection.weight.T)
    assert vector.width == exact.shape[1] == 2
    assert torch.equal(vector.eval()(hidden), exact)
    rounded = vector.train()(hidden)
    torch.testing.assert_close(rounded, torch.round(exact * STEPS) / STEPS)
    assert 0 < float((rounded - exact).detach().abs().max()) <= 0.5 / STEPS + 1e-6
    gradients = [
        torch.autograd.grad(own.sum(), vector.projection.weight) for own in (rounded, exact)
    ]
    torch.testing.assert_close(*gradients)
    assert not vector(torch.zeros(2, 9)).any()  # no sentence leaves no thought
