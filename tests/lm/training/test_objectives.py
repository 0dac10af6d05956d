"""Objectives by name: what each is, which models it trains, and what they learn."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.models import OF_TEXT_ALONE
from support.training import TRAIN, VALID, VOCABULARY, WORDS
from torch import nn

from lm.corpus import Corpus, encode
from lm.heads import Head, softmax
from lm.heads.class_softmax import ClassSoftmax
from lm.heads.self_normalised import SelfNormalised
from lm.model import Config, DocumentLM
from lm.nce import NoiseDistribution
from lm.training.objectives import OBJECTIVES
from lm.training.settings import Settings
from lm.training.trainer import Trainer

V = 40
COUNTS = torch.arange(V)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("negatives", [0, 5])
def test_the_likelihood_is_the_loss_of_the_head(negatives: int) -> None:
    head, features, targets = softmax(3, 0, nn.Embedding(V, 4), tied=False), *inputs()
    found = OBJECTIVES["likelihood"].create(head, COUNTS, negatives)(features, targets, seeded())
    expected = head.loss(features, targets, head.sampler(COUNTS, negatives), seeded())
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(6, 3, generator=seeded()), torch.tensor([0, 39, 7, 7, 1, 22])


@torch.no_grad()
def test_nce_begins_where_logits_of_zero_are_uniform_probabilities() -> None:
    """A softmax with biases of 0 has the loss of a self-normalised one with biases of −log V."""
    plain = softmax(3, 0, nn.Embedding(V, 4), tied=False)
    own = SelfNormalised(3, 0, nn.Embedding(V, 4), tied=False)
    own.weight().copy_(plain.weight())
    losses = [
        OBJECTIVES["nce"].create(head, COUNTS, 30)(*inputs(), seeded()) for head in (plain, own)
    ]
    torch.testing.assert_close(*losses)
    noise = NoiseDistribution.from_counts(COUNTS, 30)
    shift = own.bias.new_full((V,), -math.log(V))
    expected = noise.loss(inputs()[0], plain.weight(), shift, inputs()[1], seeded())
    torch.testing.assert_close(losses[0], expected)


def test_nce_is_refused_where_all_words_are_needed_or_no_noise_word_is_given() -> None:
    classes: Head = ClassSoftmax(3, 0, nn.Embedding(V, 4), tied=False)
    with pytest.raises(ValueError, match="expected a head that can be trained on a sample"):
        OBJECTIVES["nce"].create(classes, COUNTS, 5)
    with pytest.raises(ValueError, match="expected at least 1 noise word, found 0"):
        OBJECTIVES["nce"].create(softmax(3, 0, nn.Embedding(V, 4), tied=True), COUNTS, 0)


def model_of(name: str, head: str | None = None) -> DocumentLM:
    return DocumentLM.seeded(Config(name, len(VOCABULARY), 8, 8, head=head), 1)


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in OF_TEXT_ALONE if name != "dclm-auxiliary"),
        "rlm-bow-ef-1",
        "rlm-seqbow-att-lf-2",
    ],
)
def test_nce_trains_every_model_whose_head_can_do_with_a_sample(name: str) -> None:
    """Two updates, after which every parameter but those of unused contexts has moved."""
    model = model_of(name)
    settings = Settings(epochs=1, streams=2, segment=3, negatives=30, objective="nce")
    if not model.head.sampled:
        with pytest.raises(ValueError, match="expected a head that can be trained on a sample"):
            Trainer(model, TRAIN, VALID, settings=settings)
        return
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    updates = Trainer(model, TRAIN, VALID, settings=settings).run()
    for _ in range(2):
        next(updates)
    after = dict(model.named_parameters())
    assert [name for name, value in before.items() if torch.equal(value, after[name])] == []
    assert all(bool(value.isfinite().all()) for value in after.values())


def text(documents: int, seed: int) -> Corpus:
    """Documents of four sentences of one word, which is the same in all of them: one of four."""
    rng = np.random.default_rng(seed)
    lines = ([WORDS[rng.integers(4)]] * 4 + [b""] for _ in range(documents))
    return encode([line for document in lines for line in document], VOCABULARY)


def perplexity_after(settings: Settings, head: str | None) -> float:
    """Perplexity of the model of a run, normalised exactly."""
    model = model_of("codclm", head)
    for report in Trainer(model, text(40, 1), text(12, 2), settings=settings).run():
        if report:
            found = report.valid_perplexity
    return found


@pytest.mark.parametrize("head", [None, "unbiased"])
def test_nce_learns_what_the_likelihood_learns(head: str | None) -> None:
    """Normalised exactly: within 5 %, from 24 words at the beginning."""
    exact = Settings(
        epochs=20,
        streams=8,
        segment=4,
        learning_rate=0.05,
        dropout=0.0,
        context_dropout=0.0,
        negatives=0,
        validations=1,
    )
    expected = perplexity_after(exact, head)
    found = perplexity_after(replace(exact, objective="nce", negatives=50), head)
    assert found < 1.05 * expected < 2.1
