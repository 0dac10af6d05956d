"""The simple cell's parameters."""

from lm.model import n_parameters
from lm.recurrences.simple_rnn import SimpleRNN


def test_a_simple_cell_has_two_matrices_and_a_bias() -> None:
    d, H = 7, 5
    assert n_parameters(SimpleRNN(d, H, 2)) == H * (d + H + 1) + H * (2 * H + 1)
