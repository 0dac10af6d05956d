"""Every cell, two layers of it, against scalar code written from its paper."""

import pytest
import torch
from support.scalar.names import CELLS, stack

from lm.composition import RECURRENCES, load
from lm.recurrences import State


def by_layers(state: State, tensors: int) -> list[tuple[list[float], ...]]:
    """A state of one row as the scalar code holds it."""
    rows = [tensor[0].tolist() for tensor in state]
    return [tuple(rows[n : n + tensors]) for n in range(0, len(rows), tensors)]


@pytest.mark.parametrize("carried", [False, True], ids=["fresh", "carried"])
@pytest.mark.parametrize("name", RECURRENCES)
def test_two_layers_equal_a_scalar_computation(name: str, carried: bool) -> None:
    """From the first input on, and from a state that was carried over."""
    torch.manual_seed(0)
    cell = load(RECURRENCES[name])(3, 4, 2).double()
    for vector in (own for own in cell.parameters() if own.ndim == 1):  # some start at zero
        torch.nn.init.normal_(vector)
    state = cell.start(1)
    if carried:
        state = tuple(map(torch.randn_like, state))
    states = by_layers(state, cell.tensors) if carried else None
    scalar = stack(cell.state_dict(), name)
    for x in torch.randn(4, 1, 3, dtype=torch.double):
        state = cell.step(cell.project(x), state)
        states = scalar(x[0].tolist(), states)
        for found, expected in zip(by_layers(state, cell.tensors), states, strict=True):
            for own, true in zip(found, expected, strict=True):
                assert own == pytest.approx(true, rel=0, abs=1e-12)


def test_every_cell_has_scalar_code() -> None:
    assert RECURRENCES.keys() <= CELLS.keys()
