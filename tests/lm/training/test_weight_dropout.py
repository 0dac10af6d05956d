"""Dropout of recurrent weights against autograd through the masked matrix."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from lm.composition import RECURRENCES, load
from lm.model import Config, DocumentLM
from lm.recurrences import Recurrence
from lm.training.weight_dropout import dropped_weights

LENGTHS = [6, 4, 4, 2, 1]
SIZES = tuple(sum(length > n for length in LENGTHS) for n in range(6))


class Unrolled(nn.Module):
    """A recurrence whose call is the unrolling by steps, without any gradient written out."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.cells = recurrence

    def forward(self, inputs: Tensor) -> Tensor:
        start = self.cells.start(len(LENGTHS))
        states = Recurrence.unroll(self.cells, self.cells.project(inputs), start, SIZES)
        return self.cells.output(states)


@pytest.mark.parametrize("name", sorted(RECURRENCES))
@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_those_of_autograd_through_the_masked_matrices(
    name: str, layers: int
) -> None:
    torch.manual_seed(0)
    cells = load(RECURRENCES[name])(5, 7, layers)
    inputs, direction = torch.randn(sum(SIZES), 5), torch.randn(sum(SIZES), 7)
    whole = {f"cells.{n}": p.detach().clone() for n, p in cells.named_parameters()}

    with dropped_weights(cells, 0.4, torch.Generator().manual_seed(1)):
        masks = {
            n: torch.where(p == 0, 0.0, 1 / 0.6)
            for n, p in Unrolled(cells).named_parameters()
            if ".recurrent." in n
        }
        states = cells.unroll(cells.project(inputs), cells.start(len(LENGTHS)), SIZES)
        torch.autograd.backward((cells.output(states) * direction).sum())

    assert len(masks) == layers
    assert all(0.2 < float((mask == 0).float().mean()) < 0.6 for mask in masks.values())
    leaves = {n: p.clone().requires_grad_() for n, p in whole.items()}
    masked = {n: p * masks[n] if n in masks else p for n, p in leaves.items()}
    loss = (functional_call(Unrolled(cells), masked, (inputs,)) * direction).sum()
    for (n, leaf), truth in zip(
        leaves.items(), torch.autograd.grad(loss, list(leaves.values())), strict=True
    ):
        ours = cells.get_parameter(n.removeprefix("cells."))
        assert torch.equal(ours.detach(), leaf.detach()), f"{n} is not what it was"
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, truth, rtol=1e-4, atol=1e-5)


def test_matrices_keep_their_expected_value() -> None:
    torch.manual_seed(0)
    cells = load(RECURRENCES["lstm"])(4, 64, 1)
    (matrix,) = cells.recurrent
    whole = matrix.detach().clone()
    with dropped_weights(cells, 0.25, torch.Generator().manual_seed(1)):
        ratio = matrix.detach() / whole
    assert {round(value, 4) for value in ratio.flatten().tolist()} == {0.0, 1.3333}
    assert abs(float(ratio.mean()) - 1) < 4 * math.sqrt(0.25 / 0.75 / ratio.numel())


def fail_inside(cells: Recurrence) -> None:
    with dropped_weights(cells, 0.25, torch.Generator().manual_seed(1)):
        raise RuntimeError("in the update")


def test_matrices_are_whole_again_after_an_error() -> None:
    cells = load(RECURRENCES["lstm"])(4, 8, 1)
    whole = cells.recurrent[0].detach().clone()
    with pytest.raises(RuntimeError, match="in the update"):
        fail_inside(cells)
    assert torch.equal(cells.recurrent[0].detach(), whole)


def test_every_recurrence_of_a_model_has_its_mask_and_nothing_else_has() -> None:
    model = DocumentLM.seeded(Config("hrnnlm", 12, 16, 16), 1)
    whole = {n: p.detach().clone() for n, p in model.named_parameters()}
    with dropped_weights(model, 0.5, torch.Generator().manual_seed(1)):
        changed = {n for n, p in model.named_parameters() if not torch.equal(p, whole[n])}
    assert changed == {"recurrence.recurrent.0", "context.upper.recurrent.0"}


def test_a_rate_of_zero_draws_nothing() -> None:
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    with dropped_weights(load(RECURRENCES["lstm"])(4, 4, 1), 0.0, generator):
        pass
    assert torch.equal(generator.get_state(), before)
