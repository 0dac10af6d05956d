"""The gated unit's parameters."""

from lm.model import n_parameters
from lm.recurrences.gru import GRU


def test_a_gated_unit_has_three_gates_of_two_matrices_and_a_bias() -> None:
    d, H = 7, 5
    assert n_parameters(GRU(d, H, 2)) == 3 * H * (d + H + 1) + 3 * H * (2 * H + 1)
