"""Averages of weights against the closed form of Shamir & Zhang 2013."""

import pytest
import torch

from lm.model import Config, DocumentLM
from lm.training.averaging import WeightAverage


def model_of(seed: int) -> DocumentLM:
    return DocumentLM.seeded(Config("codclm", 12, 4, 5), seed)


def coefficients(eta: int, updates: int) -> torch.Tensor:
    """Share of each update's weights: proportional to s (s + 1) … (s + η − 1)."""
    s = torch.arange(1, updates + 1, dtype=torch.float64)
    rising = torch.ones_like(s)
    for k in range(eta):
        rising *= s + k
    return rising / rising.sum()


@pytest.mark.parametrize("eta", [0, 1, 4])
@pytest.mark.parametrize("updates", [1, 2, 7])
def test_the_average_has_the_closed_form_of_polynomial_decay(eta: int, updates: int) -> None:
    average = WeightAverage(model_of(99), 1 / (eta + 1))
    models = [model_of(seed) for seed in range(updates)]
    for t, model in enumerate(models, start=1):
        average.add(model, t)
    shares = coefficients(eta, updates)
    for name, found in average.model.named_parameters():
        stack = torch.stack([m.get_parameter(name).detach().double() for m in models])
        expected = torch.einsum("s,s...->...", shares, stack)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-7)


def test_the_average_keeps_tied_weights_tied_and_leaves_the_model_alone() -> None:
    model = model_of(0)
    average = WeightAverage(model, 0.5)
    average.add(model_of(1), 1)
    assert average.model.head.weight() is average.model.embedding.weight
    assert torch.equal(average.model.embedding.weight, model_of(1).embedding.weight)
    assert torch.equal(model.embedding.weight, model_of(0).embedding.weight)


def test_sparse_tables_are_shared_with_the_model() -> None:
    model = model_of(0)
    model.head.sparse = True  # type: ignore[assignment]  # a mark of the class, else
    average = WeightAverage(model, 0.5)
    assert average.model.head.bias is model.head.bias
    assert average.model.recurrence.bias[0] is not model.recurrence.bias[0]
    bias = model.head.bias.detach().clone()
    average.add(model, 3)
    assert torch.equal(model.head.bias, bias)
