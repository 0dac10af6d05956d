"""Noise-contrastive estimation against its definition, by scalars and by expected counts."""

import math

import pytest
import torch
from torch import Tensor

from lm.nce import NoiseDistribution, contrast

V, R = 12, 3


def model() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features (5, R), weight (V, R), bias (V,) and targets (5,), two of which are the same."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(5, R, generator=generator)
    weight, bias = torch.randn(V, R, generator=generator), torch.randn(V, generator=generator)
    return features, weight, bias, torch.tensor([0, 3, 11, 7, 7])


def noise_of(samples: int) -> NoiseDistribution:
    return NoiseDistribution.from_counts(torch.arange(V) ** 2, samples)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def scalar_loss(scores: list[float], target: int, noise_words: list[int], k: int) -> float:
    """Loss of a target and its k noise words, one by one (Mnih & Teh 2012, §3), in float64."""
    total = sum(v * v + 1 for v in range(V))

    def delta(word: int) -> float:
        return scores[word] - math.log(k * (word * word + 1) / total)

    return -log_sigmoid(delta(target)) - sum(log_sigmoid(-delta(v)) for v in noise_words)


def drawn_by(seed: int, k: int) -> list[int]:
    """Words that an update draws where none is expected more than once."""
    chances = torch.rand(V, generator=torch.Generator().manual_seed(seed))
    return (chances < noise_of(k).expected).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_the_loss_is_that_of_its_noise_words_one_by_one(seed: int) -> None:
    features, weight, bias, targets = model()
    noise, words = noise_of(3), drawn_by(seed, 3)
    assert float(noise.expected.max()) < 1  # no word counts more than once
    scores = (features.double() @ weight.double().T + bias.double()).tolist()
    found = noise.loss(features, weight, bias, targets, torch.Generator().manual_seed(seed))
    for n, target in enumerate(targets.tolist()):
        expected = scalar_loss(scores[n], target, words, 3)
        assert float(found[n]) == pytest.approx(expected, rel=1e-5)


def test_the_loss_without_a_noise_word_is_that_of_the_target() -> None:
    """None is drawn, as one is expected in a billion updates."""
    features, weight, bias, targets = model()
    scores, noise = features @ weight.T + bias, NoiseDistribution(torch.full((V,), 1e-9))
    found = noise.loss(features, weight, bias, targets, torch.Generator().manual_seed(1))
    deltas = scores[torch.arange(5), targets] + math.log(1e9)
    torch.testing.assert_close(found, torch.nn.functional.softplus(-deltas), rtol=1e-4, atol=0)


def test_words_are_expected_k_times_their_share_of_the_text() -> None:
    """Counts in 1,000 updates: k q within five standard errors, exactly where it is above 1."""
    noise = noise_of(20)
    expected = 20 * (torch.arange(V, dtype=torch.float64) ** 2 + 1) / 518  # Σ v² + 1 = 518
    torch.testing.assert_close(noise.expected.double(), expected, rtol=1e-6, atol=0)
    often = expected > 1
    assert 0 < int(often.sum()) < V
    # scores are log k q: Δ = 0 of all words, and a noise word has the gradient times · σ(0)
    generator, counts, updates = torch.Generator().manual_seed(3), torch.zeros(V), 1000
    features, weight = torch.ones(1, 1), torch.zeros(V, 1, requires_grad=True)
    bias, target = noise.expected.log(), torch.tensor([0])
    for _ in range(updates):
        (gradient,) = torch.autograd.grad(
            noise.loss(features, weight, bias, target, generator).sum(), [weight]
        )
        counts += 2 * gradient[:, 0]
    counts[0] += updates  # twice that of the target, σ(0) − 1
    found = counts.double() / updates
    error = (expected * (1 - expected).clamp(min=0) / updates).sqrt()
    assert bool(((found - expected).abs() <= 5 * error + 1e-4 * expected).all())


def closed_form(scores: Tensor, expected: Tensor, truth: Tensor) -> Tensor:
    """Expected gradient (V,) of the scores where a word w is the target with probability truth."""
    p = scores.exp()
    return (p - truth) * expected / (p + expected)


def every_word(noise: NoiseDistribution, scores: Tensor, truth: Tensor) -> Tensor:
    """Gradient (V,) of Σ_w truth(w) · loss(w), with expected counts in place of samples."""
    scores = scores.clone().requires_grad_()
    shifts = scores - noise.expected.to(scores).log()
    features, weight = scores.new_zeros(V, 1), scores.new_zeros(V, 1)
    losses = contrast(features, weight, shifts, shifts, noise.expected.to(scores))
    (gradient,) = torch.autograd.grad((losses * truth).sum(), [scores])
    return gradient


@pytest.mark.parametrize("samples", [1, 3, 100])
def test_the_expected_gradient_is_the_closed_form(samples: int) -> None:
    """(p̃ − p) · k q / (p̃ + k q): zero where the unnormalised model is the truth."""
    generator = torch.Generator().manual_seed(4)
    truth = torch.rand(V, generator=generator).double().softmax(0)
    scores = torch.randn(V, generator=generator).double()
    noise = noise_of(samples)
    found = every_word(noise, scores, truth)
    expected = closed_form(scores, noise.expected.double(), truth)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)  # logits are float32
    assert float(every_word(noise, truth.log(), truth).abs().max()) < 1e-6


@pytest.mark.parametrize("log_z", [0.0, 1.5])
def test_with_many_noise_words_the_gradient_is_that_of_maximum_likelihood(log_z: float) -> None:
    """It is p̃ − p, with log Z taken as 0: of a normalised model that of the exact softmax."""
    generator = torch.Generator().manual_seed(5)
    truth = torch.rand(V, generator=generator).double().softmax(0)
    scores = torch.randn(V, generator=generator).double().log_softmax(0) + log_z
    softmax = scores.clone().requires_grad_()
    (exact,) = torch.autograd.grad(-(truth * softmax.log_softmax(0)).sum(), [softmax])
    for samples, error in ((1000, 0.1), (10**8, 1e-5)):
        found = every_word(noise_of(samples), scores, truth)
        distance = float((found - (scores.exp() - truth)).abs().max())
        assert distance < error * float(scores.exp().max())
        if not log_z:
            assert float((found - exact).abs().max()) == pytest.approx(distance)


def test_large_scores_neither_overflow_nor_lose_their_gradient() -> None:
    weight = torch.zeros(2, 1)
    shifts = torch.tensor([300.0, -300.0], requires_grad=True)
    positive = torch.tensor([-200.0, 200.0], requires_grad=True)
    found = contrast(torch.zeros(2, 1), weight, shifts, positive, torch.ones(2))
    assert found.tolist() == [500.0, 300.0]
    gradients = torch.autograd.grad(found.sum(), [shifts, positive])
    assert [gradient.tolist() for gradient in gradients] == [[2.0, 0.0], [-1.0, 0.0]]


def test_products_in_half_precision_leave_the_loss_in_float32() -> None:
    """Numbers that bfloat16 holds: what is lost is lost after the products, and nothing is."""
    features = torch.randint(-2, 3, (5, R)).float()
    weight = torch.randint(-2, 3, (V, R)).float()
    shifts, positive, times = torch.randn(V), torch.randn(5), torch.rand(V) + 1
    expected = contrast(features, weight, shifts, positive, times)
    with torch.autocast("cpu", torch.bfloat16):
        found = contrast(features.bfloat16(), weight, shifts, positive, times)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_without_noise_words_there_is_no_estimation() -> None:
    with pytest.raises(ValueError, match="expected at least 1 noise word, found 0"):
        NoiseDistribution.from_counts(torch.ones(V), 0)
