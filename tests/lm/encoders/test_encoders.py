"""What every sentence encoder makes of words, and the laws of the models that have one."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lm.composition import ENCODERS, load
from lm.encoders import Encoder, encoder_of
from lm.laws import check_composition
from lm.model import Config, DocumentLM, n_parameters
from lm.recurrences import LSTM
from lm.zoo import ZOO

V, K, H = 9, 3, 5
SENTENCES = [[3, 4, 5, 3], [], [6], [5, 4, 3, 3]]
every_encoder = pytest.mark.parametrize("name", ENCODERS)


def encoder(name: str, *, layers: int = 1) -> Encoder:
    torch.manual_seed(2)
    return encoder_of(name, nn.Embedding(V, K), LSTM(1, H, layers))


def padded(sentences: list[list[int]], columns: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Words and mask, padded at the beginning with a word that is in no sentence."""
    wide = max([columns, *map(len, sentences)])
    words = torch.tensor([[8] * (wide - len(s)) + s for s in sentences], dtype=torch.long)
    mask = torch.tensor([[False] * (wide - len(s)) + [True] * len(s) for s in sentences])
    return words.view(len(sentences), wide), mask.view(len(sentences), wide).bool()


@every_encoder
def test_padding_and_neighbours_change_no_vector(name: str) -> None:
    model = encoder(name, layers=2)
    together = model.encode(*padded(SENTENCES, columns=7))
    assert together.shape == (len(SENTENCES), model.width)
    for n, sentence in enumerate(SENTENCES):
        torch.testing.assert_close(model.encode(*padded([sentence]))[0], together[n])


@every_encoder
def test_a_sentence_without_words_has_a_vector_of_zeros(name: str) -> None:
    assert not encoder(name).encode(*padded(SENTENCES))[1].any()


@every_encoder
def test_sentences_of_equal_keys_have_vectors_of_equal_bits_and_others_have_other_vectors(
    name: str,
) -> None:
    """Sentences 0 and 3 have the same words in another order."""
    model = encoder(name)
    first, *_, last = model.encode(*padded(SENTENCES))
    keys = [model.sentence_key(np.array(SENTENCES[n], dtype=np.int32)) for n in (0, 3)]
    assert (keys[0] == keys[1]) == model.merges_sentences == (name in ("bag", "sum"))
    assert torch.equal(first, last) == model.merges_sentences


@every_encoder
def test_every_word_of_a_sentence_has_a_gradient(name: str) -> None:
    model = encoder(name)
    loss = model.encode(*padded(SENTENCES[:1])).square().sum()
    (gradient,) = torch.autograd.grad(loss, model.embedding.weight)
    if name != "cnn":  # of a convolution, only those in the windows of the maxima
        assert gradient.any(dim=1).tolist() == [word in SENTENCES[0] for word in range(V)]
    assert not gradient[8].any()


@every_encoder
def test_vectors_are_taken_from_the_embedding_that_the_encoder_is_given(name: str) -> None:
    """That of the words of the model, or of another language."""
    other = nn.Embedding(4 * V, K)
    assert encoder_of(name, other, LSTM(1, H, 1)).embedding is other
    model = DocumentLM(Config("dclm", V, K, H, encoder=name))
    assert model.context.get_submodule("encoder.embedding") is model.embedding


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("bag", 0), ("sum", 0), ("cnn", 3 * K * H + H), ("rnn", 4 * H * (K + H + 1))],
)
def test_encoders_have_as_many_parameters_of_their_own_as_they_say(
    name: str, parameters: int
) -> None:
    assert n_parameters(encoder(name)) - V * K == parameters


def test_a_recurrent_encoder_is_its_cell_run_over_the_words() -> None:
    model = encoder("rnn", layers=2)
    reader = model.get_submodule("reader")
    assert isinstance(reader, LSTM)
    state = reader.start(1)
    for word in SENTENCES[0]:
        state = reader.step(reader.project(model.embedding(torch.tensor([word]))), state)
    torch.testing.assert_close(model.encode(*padded(SENTENCES))[:1], reader.output(state))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dclm", {"encoder": "bag", "sentence_recurrence": "gru"}),
        ("dclm", {"encoder": "sum", "sentence_recurrence": "tanh"}),
        ("dclm", {"encoder": "rnn", "sentence_recurrence": "cifg"}),
        ("dclm-decoupled", {"encoder": "bag"}),
        ("dclm-decoupled", {"encoder": "rnn"}),
    ],
)
def test_models_obey_the_laws_with_every_encoder(name: str, options: dict[str, Any]) -> None:
    composition = ZOO[name]
    context = partial(load(composition.context), **options)
    check_composition(replace(composition, context=context))
