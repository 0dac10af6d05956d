"""The cells against torch's own LSTM, the laws of all, and the published parameter counts."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from lm.composition import RECURRENCES, load
from lm.model import n_parameters
from lm.recurrences import CIFG, CIFG2015, LSTM, Recurrence, select

KINDS = [load(part) for part in RECURRENCES.values()]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=list(RECURRENCES))


def test_in_a_batch_each_row_of_the_cell_of_2015_has_a_first_word_of_its_own() -> None:
    torch.manual_seed(6)
    cell = CIFG2015(3, 4, 2)
    fresh, x = cell.start(1), cell.project(torch.randn(1, 3))
    begun = cell.step(cell.project(torch.randn(1, 3)), fresh)
    both = tuple(torch.cat(rows) for rows in zip(fresh, begun, strict=True))
    together = cell.step(x.expand(2, -1), both)
    for row, state in enumerate((fresh, begun)):
        alone = cell.step(x, state)
        torch.testing.assert_close(select(together, torch.tensor([row])), alone)


@every_kind
def test_the_hidden_states_of_all_layers_are_those_that_feed_the_layer_above(
    kind: type[Recurrence],
) -> None:
    torch.manual_seed(9)
    cell = kind(3, 4, 2)
    state = cell.step(cell.project(torch.randn(2, 3)), cell.start(2))
    hidden = cell.hidden_states(state)
    assert hidden.shape == (2, 8)
    assert torch.equal(hidden[:, 4:], cell.output(state))
    below = cell.cell(
        1, F.linear(hidden[:, :4], cell.lower[1], cell.bias[1]), cell.start(2)[: cell.tensors]
    )
    torch.testing.assert_close(below[0], cell.output(state))


@every_kind
def test_a_vector_added_to_the_inputs_changes_the_projection_by_its_own(
    kind: type[Recurrence],
) -> None:
    torch.manual_seed(10)
    cell = kind(5, 4, 1)
    torch.nn.init.normal_(cell.bias[0])
    x, vector = torch.randn(2, 3), torch.randn(2, 3)
    torch.testing.assert_close(cell.project(x) + cell.project_sum(vector), cell.project(x + vector))


@given(st.integers(0, 999))
@settings(max_examples=25)
def test_input_and_forget_gates_of_a_cifg_add_up_to_one(seed: int) -> None:
    """Where the candidate g equals c, any mixture i g + (1 - i) c is c again."""
    generator = torch.Generator().manual_seed(seed)
    cell = CIFG(3, 4, 1)
    cell.bias[0].data[4:8] = 30.0  # g = tanh(30) = 1 in float32
    h, x = torch.randn(2, 4, generator=generator), torch.randn(2, 3, generator=generator)
    _, c = cell.step(cell.project(x), (h, torch.ones(2, 4)))
    torch.testing.assert_close(c, torch.ones(2, 4), atol=1e-6, rtol=0)


def test_the_lstm_equals_torchs_own() -> None:
    torch.manual_seed(1)
    ours, theirs = LSTM(3, 4, 2), torch.nn.LSTM(3, 4, 2)
    order = [0, 1, 3, 2]  # ours i, f, o, g; torch's i, f, g, o
    with torch.no_grad():
        for layer in range(2):
            for kind, source in (
                ("weight_ih", ours.lower[layer]),
                ("weight_hh", ours.recurrent[layer]),
                ("bias_ih", ours.bias[layer]),
            ):
                blocks = source.chunk(4)
                getattr(theirs, f"{kind}_l{layer}").copy_(torch.cat([blocks[b] for b in order]))
            getattr(theirs, f"bias_hh_l{layer}").zero_()
    x, state = torch.randn(6, 2, 3), ours.start(2)
    expected, (h, c) = theirs(x)
    for n in range(6):
        state = ours.step(ours.project(x[n]), state)
        torch.testing.assert_close(ours.output(state), expected[n])
    torch.testing.assert_close(torch.stack(state[0::2]), h)
    torch.testing.assert_close(torch.stack(state[1::2]), c)


@given(d=st.integers(1, 9), H=st.integers(1, 9))
@settings(max_examples=20)
def test_layers_have_the_published_numbers_of_parameters(d: int, H: int) -> None:
    cifg = {n: 3 * H * n + 5 * H * H + 3 * H for n in (d, H)}
    lstm = {n: 4 * H * (n + H) + 4 * H for n in (d, H)}
    assert n_parameters(CIFG(d, H, 1)) == n_parameters(CIFG2015(d, H, 1)) == cifg[d]
    assert n_parameters(CIFG(d, H, 2)) == cifg[d] + cifg[H]
    assert n_parameters(LSTM(d, H, 1)) == lstm[d]
    assert n_parameters(LSTM(d, H, 3)) == lstm[d] + 2 * lstm[H]


@every_kind
def test_projections_of_parts_of_an_input_add_up_to_that_of_the_whole(
    kind: type[Recurrence],
) -> None:
    torch.manual_seed(2)
    cell = kind(7, 4, 2)
    x = torch.randn(5, 7)
    torch.nn.init.normal_(cell.bias[0])
    both = cell.project(x[:, :3]) + cell.project(x[:, 3:], first=3)
    torch.testing.assert_close(both, cell.project(x))


@pytest.mark.parametrize("layers", [1, 2])
@every_kind
def test_unrolled_sentences_pass_through_the_states_of_their_own_steps(
    kind: type[Recurrence], layers: int
) -> None:
    torch.manual_seed(3)
    cell = kind(3, 4, layers)
    lengths = [5, 3, 3, 1]
    rows = [[row for row, length in enumerate(lengths) if length > n] for n in range(5)]
    x, start = torch.randn(sum(lengths), 3), tuple(map(torch.randn_like, cell.start(4)))
    ours = cell.unroll(cell.project(x), start, tuple(map(len, rows)))
    place = {
        (row, n): i for i, (n, row) in enumerate((n, r) for n, rs in enumerate(rows) for r in rs)
    }
    for row, length in enumerate(lengths):
        state = select(start, torch.tensor([row]))
        for n in range(length):
            here = torch.tensor([place[row, n]])
            state = cell.step(cell.project(x[here]), state)
            for a, b in zip(select(ours, here), state, strict=True):
                torch.testing.assert_close(a, b)


def test_weights_start_in_the_ranges_that_their_papers_name() -> None:
    torch.manual_seed(4)
    d, H = 60, 40
    cifg, lstm = CIFG(d, H, 2), LSTM(d, H, 2)
    glorot = {d: math.sqrt(6 / (d + H)), H: math.sqrt(6 / (H + H))}
    drawn = [(cifg.lower[0], glorot[d]), (cifg.lower[1], glorot[H]), (cifg.bias[0], (6 / H) ** 0.5)]
    drawn += [(cifg.recurrent[0], glorot[H]), (cifg.peephole[1], glorot[H])]
    drawn += [(lstm.lower[0], d**-0.5), (lstm.recurrent[1], H**-0.5)]
    for parameter, bound in drawn:
        assert 0.95 * bound < float(parameter.detach().abs().max()) <= bound
    expected = np.repeat([0.0, 1.0, 0.0, 0.0], H)  # forget gates start open
    np.testing.assert_array_equal(lstm.bias[1].detach(), expected)
