"""The composed model: word by word and all at once are the same recurrence."""

import numpy as np
import pytest
import torch
from support.models import config_of

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.laws import check_unroll
from lm.model import Config, DocumentLM, n_parameters
from lm.tiny_models import read_by_words, tiny_model
from lm.zoo import ZOO

SENTENCES = [[3, 4, 5], [], [8, 3, 9, 4, 0], [9, 7], [6]]
every_model = pytest.mark.parametrize("name", sorted(ZOO))


def packed(chosen: list[int]) -> PackedBatch:
    tokens = np.array([w for s in SENTENCES for w in s], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in SENTENCES])])
    return PackedBatch.of(Corpus(tokens, offsets, np.array([0, len(SENTENCES)])), np.array(chosen))


@every_model
def test_two_lstm_layers_unrolled_equal_their_single_steps(name: str) -> None:
    check_unroll(tiny_model(ZOO[name], layers=2))


def test_an_empty_sentence_hands_on_the_state_after_its_start() -> None:
    torch.manual_seed(1)
    model = DocumentLM(Config("codclm", 10, 3, 4))
    batch = packed([1])
    sentences = model.unroll(batch, model.context.start(1))
    assert torch.equal(model.context.summary(sentences).tensors[0], sentences.hidden)


def test_the_sentence_level_reads_words_as_a_bag() -> None:
    torch.manual_seed(2)
    model = DocumentLM(Config("hrnnlm", 10, 3, 4))
    start = model.context.start(1)
    a, b = (
        model.context.summary(read_by_words(model, words, start)).tensors[0][0]
        for words in ([3, 7, 9], [9, 7, 3])
    )
    torch.testing.assert_close(a, b)
    bag = model.embedding(torch.tensor([3, 7, 9])).sum(dim=0)
    torch.testing.assert_close(a, bag)


@every_model
def test_contexts_are_trained_through_but_for_the_hierarchical_models_which_are_data(
    name: str,
) -> None:
    torch.manual_seed(3)
    model = DocumentLM(config_of(name, 10, 3, 4))
    start = model.context.start(1)
    summary = model.context.summary(model.unroll(packed([0]), start))
    value = model.context.value(model.context.advance(start, summary))
    weights = list(model.parameters())
    trained = value.requires_grad and any(
        gradient is not None and bool(gradient.any())
        for gradient in torch.autograd.grad(value.sum(), weights, allow_unused=True)
    )
    carried = "clstm-given-topic-carried"  # whose state is carried beside the value
    ends = ("rnnlm", "rlm", "hrnnlm", "rnnlm-lin", "hrnnlm-lin", "clstm-given-topic", carried)
    assert trained == (name not in ends)


@every_model
def test_a_seed_decides_the_weights_and_leaves_the_global_generator_alone(name: str) -> None:
    config = config_of(name, 10, 3, 4, recurrence="cifg", layers=2)
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    one, two, other = (DocumentLM.seeded(config, seed).state_dict() for seed in (7, 7, 8))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


def test_tied_weights_are_counted_once() -> None:
    tied = n_parameters(DocumentLM(Config("rnnlm", 10, 3, 4, tied=True)))
    untied = n_parameters(DocumentLM(Config("rnnlm", 10, 3, 4, tied=False)))
    assert untied - tied == 10 * 4 - 3 * 4


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_model_without_memory_has_the_shapes_of_one_with_memory(name: str, tied: bool) -> None:
    config = config_of(name, 10, 3, 4, layers=2, tied=tied)
    found = DocumentLM.without_memory(config).state_dict()
    expected = DocumentLM(config).state_dict()
    assert {n: (t.shape, t.dtype) for n, t in found.items()} == {
        n: (t.shape, t.dtype) for n, t in expected.items()
    }
    assert {tensor.device.type for tensor in found.values()} == {"meta"}


def test_the_largest_model_without_memory_takes_none() -> None:
    """6e14 numbers, as the formula of a tied LSTM counts them."""
    v, k, h, layers = (1 << 31) - 1, 1 << 16, 1 << 16, 64
    model = DocumentLM.without_memory(Config("rnnlm", v, k, h, layers=layers))
    widths = [k, *[h] * (layers - 1)]
    assert n_parameters(model) == v * k + v + k * h + sum(4 * h * (d + h + 1) for d in widths)
