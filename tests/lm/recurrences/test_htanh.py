"""The clipped cell of Lin et al. against scalar arithmetic, and in the form that they print."""

import math
from operator import mul

import pytest
import torch
from torch.nn import functional as F

from lm.model import n_parameters
from lm.recurrences.htanh import HTanh, OneHotHTanh


def test_two_htanh_layers_equal_a_scalar_computation() -> None:
    """Lin et al. 2015, eqs. 4 and 6, with a bias: inputs are large enough that some units clip."""
    torch.manual_seed(0)
    cell = HTanh(3, 4, 2)
    for bias in cell.bias:
        torch.nn.init.normal_(bias)
    state, h, seen = cell.start(1), [[0.0] * 4] * 2, []
    for x in 2 * torch.randn(5, 1, 3):
        state = cell.step(cell.project(x), state)
        u = x[0].tolist()
        for layer in range(2):
            W, U, b = (p[layer].tolist() for p in (cell.lower, cell.recurrent, cell.bias))
            drives = [
                math.fsum([*map(mul, W[n], u), *map(mul, U[n], h[layer]), b[n]]) for n in range(4)
            ]
            h[layer] = u = [max(-1.0, min(1.0, z)) for z in drives]
        seen += h[0]
        torch.testing.assert_close(torch.cat(state), torch.tensor(h), atol=1e-6, rtol=1e-5)
    assert {1.0, -1.0} < set(seen)
    assert cell.output(state) is state[1]


@pytest.mark.parametrize("layers", [1, 2])
def test_words_and_other_inputs_enter_a_one_hot_layer_side_by_side(layers: int) -> None:
    """An embedding is what W makes of a 1-of-V word; only other inputs have a matrix."""
    torch.manual_seed(1)
    cell = OneHotHTanh(4 + 3, 4, layers)
    words, others, state = torch.randn(2, 4), torch.randn(2, 3), cell.start(2)
    assert cell.beside is not None
    before = [torch.full((2, 4), 0.1) @ matrix.T for matrix in cell.recurrent]
    h = F.hardtanh(words + others @ cell.beside.T + before[0])
    if layers == 2:
        h = F.hardtanh(h @ cell.lower[0].T + before[1])
    projected = cell.project(words) + cell.project(others, first=4)
    torch.testing.assert_close(cell.output(cell.step(projected, state)), h)
    assert n_parameters(cell) == 4 * 3 + 4 * 4 * (2 * layers - 1)
    assert n_parameters(OneHotHTanh(4, 4, layers)) == 4 * 4 * (2 * layers - 1)
    with pytest.raises(TypeError, match="no other inputs"):
        OneHotHTanh(4, 4).project(others, first=4)


def test_a_one_hot_layer_and_its_embedding_begin_within_one_over_the_vocabulary() -> None:
    cell, embedding = OneHotHTanh(4, 4), torch.nn.Embedding(50, 4)
    cell.initialise(embedding)
    for weight in (*cell.parameters(), embedding.weight):
        assert 0.01 < float(weight.detach().abs().max()) <= 0.02


def test_states_begin_as_in_the_paper_with_a_tenth_where_words_are_one_hot_vectors() -> None:
    """§4.3 says so of hs_0, and §5.2 lets the word level begin in the same way."""
    for cell, first in ((OneHotHTanh(4, 4, 2), 0.1), (HTanh(4, 4, 2), 0.0)):
        assert [*map(torch.Tensor.tolist, cell.start(3))] == [
            [[pytest.approx(first)] * 4] * 3 for _ in range(2)
        ]


def test_a_vector_added_to_one_hot_words_changes_their_projection_by_its_own() -> None:
    cell, (x, vector) = OneHotHTanh(4, 4), torch.randn(2, 3, 4)
    torch.testing.assert_close(cell.project(x) + cell.project_sum(vector), cell.project(x + vector))
