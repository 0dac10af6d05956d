"""The peephole LSTM's parameters, and the cell that it extends."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm.model import n_parameters
from lm.recurrences import LSTM
from lm.recurrences.peephole import Peephole


@given(d=st.integers(1, 9), H=st.integers(1, 9))
@settings(max_examples=20)
def test_peepholes_are_three_numbers_a_unit(d: int, H: int) -> None:
    assert n_parameters(Peephole(d, H, 1)) == 4 * H * (d + H) + 7 * H
    assert n_parameters(Peephole(d, H, 2)) == n_parameters(LSTM(d, H, 2)) + 6 * H


def test_without_peepholes_the_cell_is_the_lstm() -> None:
    torch.manual_seed(1)
    ours, plain = Peephole(3, 4, 2), LSTM(3, 4, 2)
    plain.load_state_dict({n: p for n, p in ours.state_dict().items() if "peephole" not in n})
    state = tuple(map(torch.randn_like, ours.start(2)))
    x = torch.randn(2, 3)
    found, expected = (cell.step(cell.project(x), state) for cell in (ours, plain))
    torch.testing.assert_close(found, expected)
    ours.peephole[0].data.fill_(0.1)
    assert not torch.equal(ours.step(ours.project(x), state)[0], expected[0])
