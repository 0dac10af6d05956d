"""Normalisers against log-sum-exp in float64 of the same logits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm.backend import Backend
from lm.normalisers import log_sums, pair_log_sums

NODES, WORDS, CONTEXTS = 40, 500, 12


def as_features(*logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Rows of features for each matrix, and a weight that makes exactly these logits of them."""
    weight = torch.cat(logits).T
    eye = torch.eye(weight.shape[1])
    return *torch.split(eye, [len(x) for x in logits]), weight


def normal(rows: int, spread: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, WORDS, generator=generator) * spread


@pytest.mark.parametrize("spread", [1.0, 5.0, 25.0, 50.0])
@pytest.mark.parametrize("offset", [0.0, 200.0, -200.0])
def test_log_sums_are_those_of_float64_wherever_the_logits_lie(
    spread: float, offset: float
) -> None:
    logits = normal(NODES, spread, 1) + offset
    features, weight = as_features(logits)
    ours = log_sums(features, weight, Backend())
    truth = torch.logsumexp(logits.double(), dim=1)
    assert float((ours.double() - truth).abs().max()) <= 1e-6 * float(logits.abs().max())


@pytest.mark.parametrize("spread", [1.0, 5.0, 10.0, 25.0, 50.0])
@pytest.mark.parametrize("alike", [True, False], ids=["near-duplicates", "independent"])
def test_the_product_of_exponentials_is_direct_evaluation_for_peaked_logits(
    spread: float, alike: bool
) -> None:
    a = normal(NODES, spread, 2)
    b = normal(1, spread, 3) + normal(CONTEXTS, 0.1, 4) if alike else normal(CONTEXTS, spread, 5)
    mean = b.mean(dim=0)
    a, b = a + mean, b - mean
    of_a, of_b, weight = as_features(a, b)
    log_z, weak = pair_log_sums([(of_a, of_b)], weight, Backend())[0]
    truth = torch.logsumexp(a.double()[:, None] + b.double()[None], dim=2)
    error = (log_z.double() - truth).abs().max()
    assert float(error) <= 1e-6 * float(a.abs().max() + b.abs().max())
    assert not (weak.any() and (alike or spread <= 5))


@pytest.mark.parametrize("nodes", [1, 2, 30])
@pytest.mark.parametrize("spread", [1.0, 20.0])
def test_columns_that_are_equal_in_all_features_count(nodes: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(6)
    weight = torch.randn(WORDS, 9, generator=generator) * spread
    features, contexts = torch.randn(nodes, 9, generator=generator), torch.zeros(CONTEXTS, 9)
    features[:, 4:] = features[0, 4:].clone()
    contexts[:, 4:8] = torch.randn(CONTEXTS, 4, generator=generator)
    log_z, _ = pair_log_sums([(features, contexts)], weight, Backend())[0]
    both = features.double()[:, None] + contexts.double()
    logits = both @ weight.double().T
    error = (log_z.double() - torch.logsumexp(logits, dim=2)).abs().max()
    assert float(error) <= 1e-6 * float(logits.abs().max())


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 10.0, 40.0]), st.floats(-90, 90))
@settings(max_examples=25)
def test_no_offset_of_a_node_or_a_context_deceives_the_guard(
    seed: int, spread: float, offset: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(7, 60, generator=generator) * spread
    b = torch.randn(5, 60, generator=generator) * spread
    a[2:4] += offset
    b[1:3] -= offset
    of_a, of_b, weight = as_features(a, b)
    log_z, _ = pair_log_sums([(of_a, of_b)], weight, Backend())[0]
    truth = torch.logsumexp(a.double()[:, None] + b.double()[None], dim=2)
    largest = float(a.abs().max() + b.abs().max())
    assert float((log_z.double() - truth).abs().max()) <= 1e-6 * max(1.0, largest)
