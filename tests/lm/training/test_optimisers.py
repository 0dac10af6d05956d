"""Updates of weights against their formulas, written out."""

from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from lm.training.optimisers import OPTIMISERS, clip, sparse_parameters

GRADIENTS = [torch.tensor([[0.5, -2.0]]), torch.tensor([[-1.0, 0.25]])]
RATE, DECAY = 0.1, 0.01


def adagrad(weight: Tensor) -> Tensor:
    """Duchi et al. 2011: θ ← θ − η g / √Σ g²."""
    squares = torch.zeros_like(weight)
    for g in GRADIENTS:
        squares = squares + g**2
        weight = weight - RATE * g / squares.sqrt()
    return weight


def sgd(weight: Tensor) -> Tensor:
    """Ji et al.'s program: θ ← θ − η g − λ θ with λ = η · decay."""
    for g in GRADIENTS:
        weight = weight - RATE * g - RATE * DECAY * weight
    return weight


def adadelta(weight: Tensor) -> Tensor:
    """Zeiler 2012, algorithm 1, times the rate."""
    squares, moves = torch.zeros_like(weight), torch.zeros_like(weight)
    for g in GRADIENTS:
        squares = 0.95 * squares + 0.05 * g**2
        move = (moves + 1e-6).sqrt() / (squares + 1e-6).sqrt() * g
        moves = 0.95 * moves + 0.05 * move**2
        weight = weight - RATE * move
    return weight


def adamw(weight: Tensor) -> Tensor:
    """Loshchilov & Hutter 2019, algorithm 2, with β = (0.9, 0.99)."""
    first, second = torch.zeros_like(weight), torch.zeros_like(weight)
    for t, g in enumerate(GRADIENTS, 1):
        first, second = 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g**2
        step = (first / (1 - 0.9**t)) / ((second / (1 - 0.99**t)).sqrt() + 1e-8)
        weight = weight - RATE * step - RATE * DECAY * weight
    return weight


@pytest.mark.parametrize("formula", [adagrad, sgd, adadelta, adamw])
def test_two_updates_follow_the_formula_of_the_optimiser(formula: object) -> None:
    name = formula.__name__  # type: ignore[attr-defined]
    weight = nn.Parameter(torch.tensor([[0.3, -0.7]]))
    start = weight.detach().clone()
    decay = DECAY if name in ("sgd", "adamw") else 0.0
    optimiser = OPTIMISERS[name].create([weight], RATE, decay)
    for gradient in GRADIENTS:
        weight.grad = gradient.clone()
        optimiser.step()
    expected = formula(start)  # type: ignore[operator]
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("name", "shrinks"), [("adamw", False), ("sgd", True)])
def test_vectors_shrink_as_in_the_recipes_origin(name: str, shrinks: bool) -> None:
    bias = nn.Parameter(torch.ones(2))
    bias.grad = torch.zeros(2)
    optimiser = OPTIMISERS[name].create([bias], RATE, DECAY)
    optimiser.step()
    assert bool((bias < 1).all()) == shrinks


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimisers_state_has_the_shapes_that_it_states(name: str) -> None:
    weight = nn.Parameter(torch.ones(2, 3))
    optimiser = OPTIMISERS[name].create([weight], RATE, 0.0)
    weight.grad = torch.ones(2, 3)
    optimiser.step()
    found = optimiser.state_dict()["state"].get(0, {})
    (group,) = (group for group in optimiser.param_groups if group["params"])
    expected = OPTIMISERS[name].state_shapes(weight, group)
    assert {n: (t.shape, t.dtype) for n, t in found.items()} == {
        n: (t.shape, t.dtype) for n, t in expected.items()
    }


class Hashed(nn.Module):
    """A sparse table beside a dense layer."""

    sparse: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(5, 1))
        self.layer = nn.Linear(1, 1)


def test_sparse_parameters_are_those_of_the_modules_that_say_so() -> None:
    model = nn.Sequential(Hashed(), nn.Embedding(2, 1), Hashed())
    found = sparse_parameters(model)
    assert [id(p) for p in found] == [id(model[0].table), id(model[2].table)]


def test_clipping_scales_all_gradients_by_their_common_norm() -> None:
    """Norm of (3, 0) and (0, 4) is 5."""
    one, two = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3))
    one.grad = torch.tensor([3.0, 0.0])
    two.grad = torch.tensor([0.0, 4.0, 0.0])
    unused = nn.Parameter(torch.zeros(1))
    clip([one, two, unused], 1.0)
    torch.testing.assert_close(one.grad, torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(two.grad, torch.tensor([0.0, 0.8, 0.0]))


@pytest.mark.parametrize("norm", [0.0, 5.1])
def test_a_norm_within_the_bound_or_no_bound_changes_nothing(norm: float) -> None:
    weight = nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    clip([weight], norm)
    assert weight.grad.tolist() == [3.0, 4.0]
