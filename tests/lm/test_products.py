"""Products with rounded rows are those without, and shapes are few."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lm.objective import sampled_nll
from lm.products import ROWS, linear, padded, rounded


@pytest.mark.parametrize("rows", [0, 1, ROWS - 1, ROWS, ROWS + 1])
def test_padding_adds_zeros_up_to_a_multiple(rows: int) -> None:
    x = torch.randn(rows, 3)
    found = padded(x)
    assert len(found) % ROWS == 0
    assert len(found) - rows < ROWS
    assert torch.equal(found[:rows], x)
    assert not found[rows:].any()


@pytest.mark.parametrize("half", [False, True])
def test_values_and_gradients_are_those_of_the_plain_product(half: bool) -> None:
    torch.manual_seed(0)
    parts = torch.randn(77, 8), torch.randn(5, 8), torch.randn(5)
    direction, found = torch.randn(77, 5), []
    products: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = [linear, F.linear]
    for product in products:
        own = x, weight, bias = [part.clone().requires_grad_() for part in parts]
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = product(x, weight, bias)
        assert y.dtype == (torch.bfloat16 if half else torch.float32)
        gradients = torch.autograd.grad((y.float() * direction).sum(), own)
        found.append([y.float().detach(), *gradients])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_products_in_float32_are_left_as_they_are() -> None:
    x, weight = torch.randn(77, 8), torch.randn(5, 8)
    assert linear(x, weight).shape == (77, 5)
    assert torch.equal(linear(x, weight), F.linear(x, weight))
    assert rounded(77, x) == 77
    assert rounded(77, x.bfloat16()) == ROWS


def test_the_sampled_loss_in_half_precision_is_near_that_in_single_precision() -> None:
    """Of 37 positions and 50 negatives, both of which are rounded up in half precision."""
    torch.manual_seed(0)
    features, weight = torch.randn(37, 16).bfloat16(), torch.randn(50, 16).bfloat16()
    shifts, positive = torch.randn(50), torch.randn(37)
    hits = torch.full((37,), -1)
    hits[3], direction = 7, torch.rand(37)
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        own = [features.to(dtype), weight.float(), shifts.clone(), positive.clone()]
        own = [tensor.requires_grad_() for tensor in own]
        nll = sampled_nll(own[0], own[1], own[2], own[3], hits)
        gradients = torch.autograd.grad((nll * direction).sum(), own)
        found.append([nll.detach(), *(gradient.float() for gradient in gradients)])
    for single, half in zip(*found, strict=True):
        assert single.shape == half.shape
        torch.testing.assert_close(half, single, rtol=0.03, atol=0.03)
