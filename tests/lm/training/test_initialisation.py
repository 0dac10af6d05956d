"""Initial weights of a whole model."""

from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from lm.model import Config, DocumentLM
from lm.training.initialisation import INITIALISATIONS

V, K, H = 40, 6, 5


def model_of(name: str = "codclm", recurrence: str = "cifg", tied: bool = False) -> DocumentLM:
    return DocumentLM.seeded(Config(name, V, K, H, recurrence, 2, tied=tied), 1)


def fills(tensor: Tensor, bound: float) -> bool:
    """Whether the largest of many numbers is just below the bound."""
    return 0.7 * bound < float(tensor.detach().abs().max()) <= bound


@pytest.mark.parametrize("recurrence", ["cifg", "lstm"])
def test_glorot_bounds_follow_the_shapes_of_single_matrices_and_vectors(recurrence: str) -> None:
    model = model_of(recurrence=recurrence)
    INITIALISATIONS["glorot"](model, 3)
    cells = model.recurrence
    for gate in torch.split(cells.lower[0], H):
        assert fills(gate, (6 / (H + K)) ** 0.5)
    recurrent = cells.get_parameter("recurrent.1")
    assert fills(recurrent, (6 / (H + H)) ** 0.5)
    assert fills(torch.cat([*cells.bias]), (6 / H) ** 0.5)  # each a vector of H
    assert fills(model.embedding.weight, (6 / K) ** 0.5)  # each row a vector of K
    of_hidden, of_context = torch.split(model.head.weight(), H, dim=1)
    assert fills(of_hidden, (6 / (V + H)) ** 0.5)
    assert fills(of_context, (6 / (V + H)) ** 0.5)
    assert fills(model.head.bias, (6 / V) ** 0.5)
    assert fills(model.context.get_parameter("first"), (6 / H) ** 0.5)


def test_glorot_weights_are_spread_evenly() -> None:
    """The variance of U(±b) is b² / 3; of 240 numbers its standard error is 6 %."""
    model = model_of()
    INITIALISATIONS["glorot"](model, 3)
    weight = model.embedding.weight.detach()
    found = float(weight.var())
    assert found == pytest.approx(6 / K / 3, rel=0.2)
    assert abs(float(weight.mean())) < 0.2


def test_glorot_weights_are_a_function_of_the_seed_alone() -> None:
    found = []
    for seed in (3, 3, 4):
        model = model_of()
        with torch.no_grad():
            model.embedding.weight.fill_(float(seed))
        torch.rand(seed)
        INITIALISATIONS["glorot"](model, seed)
        found.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_tied_embeddings_stay_tied_and_are_drawn_once() -> None:
    model = model_of(tied=True)
    INITIALISATIONS["glorot"](model, 3)
    assert model.head.weight() is model.embedding.weight
    assert fills(model.embedding.weight, (6 / K) ** 0.5)


def test_own_weights_are_those_of_the_parts() -> None:
    model = model_of()
    INITIALISATIONS["own"](model, 3)
    for name, tensor in model_of().state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


class Hashed(nn.Linear):
    """A layer that is marked as sparse."""

    sparse: ClassVar[bool] = True


def test_sparse_parameters_keep_their_values() -> None:
    model = nn.Sequential(Hashed(2, 3), nn.Linear(3, 1))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    INITIALISATIONS["glorot"](model, 3)
    assert [bool(parameter.any()) for parameter in model.parameters()] == [False] * 2 + [True] * 2
