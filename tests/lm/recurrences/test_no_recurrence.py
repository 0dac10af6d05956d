"""The word level without hidden states."""

import torch

from lm.model import n_parameters
from lm.recurrences.no_recurrence import NoRecurrence


def test_without_a_recurrence_states_have_rows_and_no_columns() -> None:
    cell = NoRecurrence(3, 4, 2)
    state = cell.step(cell.project(torch.randn(5, 3)), cell.start(5))
    assert [t.shape for t in (*state, cell.output(state), cell.hidden_states(state))] == [
        (5, 0)
    ] * 3
    (unrolled,) = cell.unroll(cell.project(torch.randn(9, 3)), state, (5, 4))
    assert unrolled.shape == (9, 0)
    assert (cell.width, n_parameters(cell)) == (0, 0)
