"""Losses on samples of words, sampled softmax and NCE, against their definitions."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lm.heads import SelfNormalised, softmax
from lm.objective import NoiseDistribution, Proposal, contrast, exact_nll, sampled_nll
from lm.training.trainer import OBJECTIVES

V, R = 12, 3
TARGETS = torch.tensor([0, 3, 11, 7, 7])


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model() -> tuple[Tensor, Tensor, Tensor]:
    """Features (5, R), weight (V, R) and bias (V,)."""
    own = generator()
    features, weight = torch.randn(5, R, generator=own), torch.randn(V, R, generator=own)
    return features, weight, torch.randn(V, generator=own)


# Sampled softmax
def test_gradients_of_the_sampled_form_equal_those_of_autograd() -> None:
    torch.manual_seed(1)
    sizes = ((9, 4), (6, 4), (6,), (9,))
    inputs = [torch.randn(size, requires_grad=True) for size in sizes]
    features, weight, shifts, positive = inputs
    hits = torch.tensor([-1, 2, -1, 5, 0, -1, -1, 3, 3])  # negatives that are the target
    logits = torch.cat([features @ weight.T + shifts, positive[:, None]], dim=1)
    mask = torch.zeros_like(logits)
    mask[hits >= 0, hits[hits >= 0]] = -torch.inf
    expected = torch.logsumexp(logits + mask, dim=1) - positive
    ours, direction = sampled_nll(features, weight, shifts, positive, hits), torch.randn(9)
    torch.testing.assert_close(ours, expected)
    gradients = (torch.autograd.grad((own * direction).sum(), inputs) for own in (ours, expected))
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


def test_with_every_word_sampled_the_loss_is_exact_and_with_none_it_is_zero() -> None:
    """Then the target is the only word that is summed over: log 1, whatever its logit."""
    features, weight, bias = model()
    truth = torch.nn.functional.cross_entropy(features @ weight.T + bias, TARGETS, reduction="none")
    proposal = Proposal.from_counts(torch.arange(V), V)
    result = proposal.nll(features, weight, bias, TARGETS, generator())
    torch.testing.assert_close(result, truth)
    torch.testing.assert_close(exact_nll(features, weight, bias, TARGETS), truth)
    features.requires_grad_()
    none = Proposal(torch.full((V,), 1e-9)).nll(features, weight, bias, TARGETS, generator())
    assert none.tolist() == [0] * 5
    assert not torch.autograd.grad(none.sum(), features)[0].any()
    inclusion = Proposal.from_counts(torch.tensor([0, 1, 10, 100, 1000, 10_000]), 3).inclusion
    assert float(inclusion.sum()) == pytest.approx(3, abs=1e-4)
    assert (inclusion.diff() >= 0).all()
    assert float(inclusion[0]) > 0


# Noise-contrastive estimation
def noise_of(samples: int) -> NoiseDistribution:
    return NoiseDistribution.from_counts(torch.arange(V) ** 2, samples)


EXPECTED = (torch.arange(V, dtype=torch.float64) ** 2 + 1) / 518  # Σ v² + 1 = 518


@pytest.mark.parametrize("seed", range(2))
def test_the_loss_is_that_of_its_noise_words_one_by_one(seed: int) -> None:
    """Mnih & Teh 2012, §3: −log σ(Δ(w)) − Σ log σ(−Δ(v)), Δ = s − log k q."""
    features, weight, bias = model()
    noise = noise_of(3)
    assert float(noise.expected.max()) < 1  # no word is drawn more than once
    drawn = (torch.rand(V, generator=generator(seed)) < noise.expected).nonzero()[:, 0]
    deltas = (features @ weight.T + bias).double() - (3 * EXPECTED).log()
    softplus = torch.nn.functional.softplus
    truth = softplus(-deltas[range(5), TARGETS]) + softplus(deltas[:, drawn]).sum(dim=1)
    result = noise.loss(features, weight, bias, TARGETS, generator(seed))
    torch.testing.assert_close(result.double(), truth, rtol=1e-5, atol=1e-6)
    rare = NoiseDistribution(torch.full((V,), 1e-9))  # none is drawn
    deltas = (features @ weight.T + bias)[range(5), TARGETS] + math.log(1e9)
    result = rare.loss(features, weight, bias, TARGETS, generator(seed))
    torch.testing.assert_close(result, softplus(-deltas), rtol=1e-4, atol=0)


def test_words_are_expected_k_times_their_share_of_the_text() -> None:
    """Counts in 1,000 updates: k q within five standard errors, exactly where it is above 1."""
    noise, expected, updates = noise_of(20), 20 * EXPECTED, 1000
    torch.testing.assert_close(noise.expected.double(), expected, rtol=1e-6, atol=0)
    # scores are log k q: Δ = 0 of all words, and a noise word has the gradient times · σ(0)
    own, counts = generator(3), torch.zeros(V)
    features, weight = torch.ones(1, 1), torch.zeros(V, 1, requires_grad=True)
    for _ in range(updates):
        loss = noise.loss(features, weight, noise.expected.log(), torch.tensor([0]), own)
        counts += 2 * torch.autograd.grad(loss.sum(), weight)[0][:, 0]
    counts[0] += updates  # twice that of the target, σ(0) − 1
    error = (expected * (1 - expected).clamp(min=0) / updates).sqrt()
    assert bool(((counts.double() / updates - expected).abs() <= 5 * error + 1e-4 * expected).all())


def every_word(noise: NoiseDistribution, scores: Tensor, truth: Tensor) -> Tensor:
    """Gradient (V,) of Σ_w truth(w) · loss(w), with expected counts in place of samples."""
    scores = scores.clone().requires_grad_()
    shifts, zeros = scores - noise.expected.to(scores).log(), scores.new_zeros(V, 1)
    losses = contrast(zeros, zeros, shifts, shifts, noise.expected.to(scores))
    return torch.autograd.grad((losses * truth).sum(), scores)[0]


@pytest.mark.parametrize("samples", [1, 100, 10**8])
def test_the_expected_gradient_is_the_closed_form(samples: int) -> None:
    """(p̃ − p) · k q / (p̃ + k q): with many noise words that of maximum likelihood, p̃ − p."""
    own = generator(4)
    truth = torch.rand(V, generator=own).double().softmax(0)
    scores, noise = torch.randn(V, generator=own).double(), noise_of(samples)
    p, kq = scores.exp(), noise.expected.double()
    result = every_word(noise, scores, truth)
    torch.testing.assert_close(result, (p - truth) * kq / (p + kq), rtol=1e-5, atol=1e-6)
    assert float(every_word(noise, truth.log(), truth).abs().max()) < 1e-6
    if samples == 10**8:
        torch.testing.assert_close(result, p - truth, rtol=1e-4, atol=1e-5)


def test_large_scores_neither_overflow_nor_lose_their_gradient() -> None:
    shifts = torch.tensor([300.0, -300.0], requires_grad=True)
    positive = torch.tensor([-200.0, 200.0], requires_grad=True)
    result = contrast(torch.zeros(2, 1), torch.zeros(2, 1), shifts, positive, torch.ones(2))
    assert result.tolist() == [500.0, 300.0]
    gradients = torch.autograd.grad(result.sum(), [shifts, positive])
    assert [gradient.tolist() for gradient in gradients] == [[2.0, 0.0], [-1.0, 0.0]]


# Objectives by name
@torch.no_grad()
def test_nce_begins_where_logits_of_zero_are_uniform_probabilities() -> None:
    """A softmax with biases of 0 has the loss of a self-normalised one with biases of −log V."""
    plain: Any = softmax(R, 0, nn.Embedding(V, 4), tied=False)
    own = SelfNormalised(R, 0, nn.Embedding(V, 4), tied=False)
    features, counts = model()[0], torch.arange(V)
    own.weight().copy_(plain.weight())
    noise = NoiseDistribution.from_counts(counts, 30)
    bias = torch.full((V,), -math.log(V))
    expected = noise.loss(features, plain.weight(), bias, TARGETS, generator())
    for head in (plain, own):
        result = OBJECTIVES["nce"].create(head, counts, 30)(features, TARGETS, generator())
        torch.testing.assert_close(result, expected)
