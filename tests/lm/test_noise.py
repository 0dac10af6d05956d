"""Noise of training: dropout of numbers, words and weights, and corrupted copies of sentences."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from lm.composition import RECURRENCES, load
from lm.corpus import Corpus, PackedBatch
from lm.model import Config, DocumentLM
from lm.reading import (
    DROPPED,
    REPLACED,
    SWAPPED,
    Copies,
    Corruption,
    Noise,
    dropped_weights,
    word_factors,
)
from lm.recurrences import Recurrence
from lm.sentences import Positions
from lm.vocabulary import START

V, WORDS = 9, 20_000


def rate(found: float, expected: float, of: int) -> bool:
    """Whether a count is within four standard deviations of a binomial's mean."""
    return abs(found - expected * of) < 4 * math.sqrt(expected * (1 - expected) * of)


def positions() -> Positions:
    """300 sentences of 0 to 6 words."""
    rng = np.random.default_rng(0)
    text = Corpus.of([[rng.integers(3, V, n).tolist() for n in rng.integers(0, 7, 300)]])
    return PackedBatch.of(text, np.arange(300)).positions


def noise(seed: int = 0, *, dropout: float = 0.0, locked: float = 0.0, words: float = 0.0) -> Noise:
    generator = torch.Generator().manual_seed(seed)
    factors = word_factors(V, words, generator)
    return Noise(dropout, 0.0, generator, locked_dropout=locked, words=factors)


@pytest.mark.parametrize(
    ("dropout", "locked"), [(0.25, 0.0), (0.0, 0.25)], ids=["single", "locked"]
)
def test_dropout_keeps_the_expected_value_also_if_locked(dropout: float, locked: float) -> None:
    at, one = positions(), noise(dropout=dropout, locked=locked)
    ones = torch.ones(len(at.words), 64)
    for found in (one.inputs(ones, at), one.features(ones, at)):
        assert set(found.flatten().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
        rows = [found[at.context == n] for n in range(300)]
        alike = [bool((own == own[0]).all()) for own in rows if len(own) > 1]
        assert set(alike) == {locked > 0}
        means = torch.stack([own.mean(dim=0) for own in rows])
        assert abs(float(means.mean()) - 1) < 4 * math.sqrt(0.25 / 0.75 / means.numel())
        assert len({tuple(own[0].tolist()) for own in rows}) > 250  # of 300 sentences
    assert not torch.equal(one.inputs(ones, at), one.features(ones, at))


def test_word_dropout_drops_all_occurrences_of_a_word_and_never_the_start() -> None:
    at, dropped = positions(), set()
    for seed in range(40):
        found = noise(seed, words=0.5).inputs(torch.ones(len(at.words), 4), at)
        for word in range(V):
            values = set(found[at.words == word].flatten().tolist())
            assert len(values) <= 1
            assert values <= ({1.0} if word == START else {0.0, 2.0})
            dropped |= {word} if values == {0.0} else set()
    assert dropped == set(range(3, V))
    factors = word_factors(WORDS, 0.2, torch.Generator().manual_seed(3))
    assert factors is not None
    assert set(factors.tolist()) == {0.0, 1.0, 1.25}
    assert rate(float((factors == 0).sum()), 0.2, WORDS)


# Dropout of recurrent weights
SIZES = (5, 4, 3, 3, 1, 1)


@pytest.mark.parametrize("name", sorted(RECURRENCES))
def test_gradients_are_those_of_autograd_through_the_masked_matrices(name: str) -> None:
    torch.manual_seed(0)
    cells: Recurrence = load(RECURRENCES[name])(5, 7, 2)
    inputs, direction = torch.randn(sum(SIZES), 5), torch.randn(sum(SIZES), 7)
    whole = {n: p.detach().clone() for n, p in cells.named_parameters()}

    def loss(unroll: object) -> Tensor:
        states = unroll(cells, cells.project(inputs), cells.start(5), SIZES)  # type: ignore[operator]
        return (cells.output(states) * direction).sum()

    with dropped_weights(cells, 0.4, torch.Generator().manual_seed(1)):
        masks = {
            n: torch.where(p == 0, 0.0, 1 / 0.6)
            for n, p in cells.named_parameters()
            if "recurrent." in n
        }
        torch.autograd.backward(loss(type(cells).unroll))
    assert len(masks) == 2
    assert all(0.2 < float((mask == 0).float().mean()) < 0.6 for mask in masks.values())
    leaves = {n: p.clone().requires_grad_() for n, p in whole.items()}
    masked = {n: p * masks.get(n, torch.ones(())) for n, p in leaves.items()}

    class Unrolled(torch.nn.Module):
        """The unrolling by steps, without any gradient written out."""

        def __init__(self) -> None:
            super().__init__()
            self.cells = cells

        def forward(self) -> Tensor:
            return loss(Recurrence.unroll)

    truth = functional_call(Unrolled(), {f"cells.{n}": p for n, p in masked.items()}, ())
    gradients = torch.autograd.grad(truth, list(leaves.values()))
    for (n, leaf), expected in zip(leaves.items(), gradients, strict=True):
        ours = cells.get_parameter(n)
        assert torch.equal(ours.detach(), leaf.detach()), f"{n} is not what it was"
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, expected, rtol=1e-4, atol=1e-5)


def test_only_recurrent_matrices_are_masked_and_they_are_whole_again_after_an_error() -> None:
    model = DocumentLM.seeded(Config("hrnnlm", 12, 16, 64), 1)
    whole = {n: p.detach().clone() for n, p in model.named_parameters()}
    changed = {}

    def fail() -> None:
        with dropped_weights(model, 0.25, torch.Generator().manual_seed(1)):
            found = {n: p.detach() / whole[n] for n, p in model.named_parameters()}
            changed.update({n: r.clone() for n, r in found.items() if (r == 0).any()})
            raise RuntimeError("in the update")

    with pytest.raises(RuntimeError, match="in the update"):
        fail()
    assert {*changed} == {"recurrence.recurrent.0", "context.upper.recurrent.0"}
    for ratio in changed.values():
        assert {round(value, 4) for value in ratio.flatten().tolist()} == {0.0, 1.3333}
        assert rate(float((ratio == 0).sum()), 0.25, ratio.numel())
    assert all(torch.equal(p.detach(), whole[n]) for n, p in model.named_parameters())


# Corrupted copies
def counting(words: int, length: int) -> Corpus:
    """Sentences of `length` distinct words: 0, 1, 2, … through the text."""
    offsets = np.arange(0, words + 1, length)
    return Corpus(np.arange(words, dtype=np.int32), offsets, np.array([0, len(offsets) - 1]))


def copies(corpus: Corpus, share: float = 1.0, seed: int = 0) -> Copies:
    return Corruption(share, np.random.default_rng(seed)).copies(
        corpus, np.arange(corpus.n_sentences)
    )


def sentences(corpus: Corpus) -> list[list[int]]:
    return [words.tolist() for words in np.split(corpus.tokens, corpus.sentences[1:-1])]


@pytest.mark.parametrize("kind", ["DROPPED", "REPLACED", "SWAPPED"])
def test_words_are_corrupted_at_given_rates(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long sentence of distinct words, corrupted in one way only."""
    for other in {"DROPPED", "REPLACED", "SWAPPED"} - {kind}:
        monkeypatch.setattr(f"lm.reading.{other}", 0.0)
    found = np.array(sentences(copies(counting(WORDS, WORDS)).text)[1])
    if kind == "DROPPED":
        assert (np.diff(found) > 0).all()
        assert rate(WORDS - len(found), DROPPED, WORDS)
    elif kind == "REPLACED":
        assert rate(int((found != np.arange(WORDS)).sum()), REPLACED, WORDS)
    else:  # a word goes behind its right neighbour if that one does not go behind its own
        assert sorted(found.tolist()) == list(range(WORDS))
        assert set((found - np.arange(WORDS)).tolist()) == {-1, 0, 1}
        assert rate(int((np.diff(found) < 0).sum()), SWAPPED * (1 - SWAPPED), WORDS)
        text = counting(WORDS, 4)  # and never into another sentence
        own = sentences(copies(text).text)[text.n_sentences :]
        assert [sorted(sentence) for sentence in own] == sentences(text) != own
