"""Attention with its gradient written out, against autograd on the plain formula."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lm.attention import Memory

B, M, A, D = 4, 3, 5, 2
Way = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def leaves() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys, states, queries of two steps of 4 and 3 contexts, and the weight."""
    torch.manual_seed(0)
    shapes = ((B, M, A), (B, M, D), (B + 3, A), (A,))
    keys, states, queries, weight = (torch.randn(s, requires_grad=True) for s in shapes)
    return keys, states, queries, weight


def penalties() -> Tensor:
    """Row 1 has one state only."""
    found = torch.zeros(B, M)
    found[1, 1:] = -1e30
    return found


def plain(keys: Tensor, states: Tensor, queries: Tensor, weight: Tensor) -> Tensor:
    """Σ softmax(w · tanh(k + q)) f, step after step."""
    steps = []
    for own in torch.split(queries, [B, 3]):
        n = len(own)
        energies = torch.tanh(keys[:n] + own[:, None]) @ weight + penalties()[:n]
        steps.append((torch.softmax(energies, dim=1)[:, :, None] * states[:n]).sum(dim=1))
    return torch.cat(steps)


def ours(keys: Tensor, states: Tensor, queries: Tensor, weight: Tensor) -> Tensor:
    memory = Memory.of(keys, states, penalties(), weight)
    return torch.cat([memory.attend(own) for own in torch.split(queries, [B, 3])])


def taken(keys: Tensor, states: Tensor, queries: Tensor, weight: Tensor) -> Tensor:
    """Rows taken from the memory, and rows read as they are."""
    memory = Memory.of(keys, states, penalties(), weight)
    order = torch.tensor([3, 2, 0, 1])
    first = memory.take(order).attend(queries[order])
    return torch.cat([first[order.argsort()], memory.attend(queries[B:])])


@pytest.mark.parametrize("way", [ours, taken])
def test_values_and_gradients_are_those_of_the_plain_formula(way: Way) -> None:
    dice = torch.randn(B + 3, D, generator=torch.Generator().manual_seed(1))
    found, truth = leaves(), leaves()
    values, expected = way(*found), plain(*truth)
    torch.testing.assert_close(values, expected)
    gradients = torch.autograd.grad((values * dice).sum(), found)
    torch.testing.assert_close(gradients, torch.autograd.grad((expected * dice).sum(), truth))


def test_a_graph_may_be_gone_through_again_and_in_parts() -> None:
    """The sums of a pass that stopped at the queries are not those of the next pass."""
    found, truth = leaves(), leaves()
    values = ours(*found)
    torch.autograd.grad(values.square().sum(), found[2], retain_graph=True)
    expected = torch.autograd.grad(plain(*truth).sum(), truth)
    for _ in range(2):
        again = torch.autograd.grad(values.sum(), found, retain_graph=True)
        torch.testing.assert_close(again, expected)


def test_a_memory_that_is_used_otherwise_has_the_gradient_of_that_use_too() -> None:
    keys, states, queries, weight = leaves()
    memory = Memory.of(keys, states, penalties(), weight)
    alone = torch.autograd.grad((2 * memory.states).sum(), (keys, states), retain_graph=True)
    torch.testing.assert_close(alone, (torch.zeros(B, M, A), torch.full((B, M, D), 2.0)))
    both = memory.attend(queries[:B]).sum() + (2 * memory.states).sum()
    (found,) = torch.autograd.grad(both, (states,))
    (own,) = torch.autograd.grad(plain(keys, states, queries, weight)[:B].sum(), (states,))
    torch.testing.assert_close(found, own + 2)
