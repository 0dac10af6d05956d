"""Updates of weights against their formulas, and what says when and with which rate."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lm.backend import fast_bfloat16
from lm.model import Config, DocumentLM
from lm.training.optimisers import INITIALISATIONS, OPTIMISERS, SCHEDULES, Position, WeightAverage
from lm.training.settings import STRONG, Settings

RATE, DECAY = 0.1, 0.01
GRADIENTS = torch.randn(3, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def adagrad(weight: Tensor) -> Tensor:
    """Duchi et al. 2011: θ ← θ − η g / √Σ g²."""
    for n, g in enumerate(GRADIENTS, 1):
        weight = weight - RATE * g / (GRADIENTS[:n] ** 2).sum(0).sqrt()
    return weight


def sgd(weight: Tensor) -> Tensor:
    """Ji et al.'s program: θ ← θ − η g − λ θ with λ = η · decay."""
    for g in GRADIENTS:
        weight = weight - RATE * g - RATE * DECAY * weight
    return weight


def adadelta(weight: Tensor) -> Tensor:
    """Zeiler 2012, algorithm 1, times the rate."""
    squares, moves = torch.zeros_like(weight), torch.zeros_like(weight)
    for g in GRADIENTS:
        squares = 0.95 * squares + 0.05 * g**2
        move = (moves + 1e-6).sqrt() / (squares + 1e-6).sqrt() * g
        moves = 0.95 * moves + 0.05 * move**2
        weight = weight - RATE * move
    return weight


def adamw(weight: Tensor) -> Tensor:
    """Loshchilov & Hutter 2019, algorithm 2, with β = (0.9, 0.99)."""
    first, second = torch.zeros_like(weight), torch.zeros_like(weight)
    for t, g in enumerate(GRADIENTS, 1):
        first, second = 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g**2
        step = (first / (1 - 0.9**t)) / ((second / (1 - 0.99**t)).sqrt() + 1e-8)
        weight = weight - RATE * step - RATE * DECAY * weight
    return weight


def orthogonal(matrix: Tensor) -> Tensor:
    """Newton–Schulz iterations as Jordan et al. 2024 print them, in float64."""
    x: Tensor = matrix / (matrix.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x


def by_muon(weight: Tensor) -> Tensor:
    """Nesterov's form of momentum; an update has the size of AdamW's, 0.2."""
    momentum = torch.zeros_like(weight)
    for g in GRADIENTS:
        momentum = 0.95 * momentum + 0.05 * g
        update = orthogonal(0.05 * g + 0.95 * momentum)
        weight = weight * (1 - RATE * DECAY) - RATE * 0.2 * 6**0.5 * update
    return weight


FORMULAS = {"adagrad": adagrad, "sgd": sgd, "adadelta": adadelta, "adamw": adamw, "muon": by_muon}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_follow_the_formula_of_the_optimiser(name: str) -> None:
    weight = nn.Parameter(torch.randn(4, 6, generator=torch.Generator().manual_seed(2)))
    unused = nn.Parameter(torch.ones(2, 3))
    expected = FORMULAS[name](weight.detach().double())
    decay = DECAY if name in ("sgd", "adamw", "muon") else 0.0
    optimiser = OPTIMISERS[name].create([weight, unused], RATE, decay)
    for gradient in GRADIENTS:
        weight.grad = gradient.float()
        optimiser.step()
    # where the hardware is fast with bfloat16, of 8 bits, it is used; the updates are of size 0.02
    rough = name == "muon" and fast_bfloat16(weight.device)
    torch.testing.assert_close(
        weight.detach().double(), expected, rtol=1e-5, atol=4e-3 if rough else 1e-6
    )
    assert bool((unused == 1).all())
    group = next(g for g in optimiser.param_groups if any(p is weight for p in g["params"]))
    shapes = OPTIMISERS[name].state_shapes(weight, group)
    state = optimiser.state_dict()["state"].get(0, {})
    truth = {n: (t.shape, t.dtype) for n, t in shapes.items()}
    assert {n: (t.shape, t.dtype) for n, t in state.items()} == truth


def test_muon_leaves_vectors_and_tables_of_words_to_adamw() -> None:
    words, ended = 12, []
    for name in ("muon", "adamw"):
        torch.manual_seed(1)
        own = [nn.Parameter(torch.randn(*s)) for s in ((5, 3), (words, 3), (7,), (words,))]
        optimiser = OPTIMISERS[name].create(own, RATE, DECAY, {words})
        for parameter in own:
            parameter.grad = torch.randn_like(parameter)
        optimiser.step()
        ended.append(own)
    assert [torch.equal(a, b) for a, b in zip(*ended, strict=True)] == [False, True, True, True]


# Tables of hashed features


@pytest.mark.parametrize("layout", [Tensor.to_sparse, Tensor.to_dense])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_tables_move_by_adagrad_or_by_their_gradient(name: str, layout: Any) -> None:
    """The t-th step of a gradient g of a loss divided by d is rate · g / √(1/d² + t g²)."""
    table, gradient = nn.Parameter(torch.zeros(5)), torch.tensor([0, 0.1, 0, 1e-7, 0])
    optimiser, expected = OPTIMISERS[name].sparse([table], 0.3, 10), torch.zeros(5)
    for t in (1, 2, 3):
        table.grad = layout(gradient)
        optimiser.step()
        expected -= 0.3 * gradient / (1 if name == "sgd" else (0.01 + t * gradient**2).sqrt())
    torch.testing.assert_close(table.detach(), expected, rtol=1e-4, atol=0)
    assert bool(optimiser.state_dict()["state"]) == (name != "sgd")
    usual = {"adamw": Settings().learning_rate, "muon": STRONG["learning_rate"], "adadelta": 1.0}
    if name in usual:  # at which tables have the rate 0.3
        assert OPTIMISERS[name].sparse_rate * float(usual[name]) == pytest.approx(0.3)


# Schedules, initialisations, averages, recipes
def test_rates_follow_their_schedules() -> None:
    """Annealed: 2 % of the updates up, then down to zero, by the budget that runs out first."""

    def rate(name: str, n: int, share: float, halvings: int = 0) -> float:
        return SCHEDULES[name](0.2, Position(n, 1000, share, halvings))

    result = [rate("annealed", n, n / 1000) for n in range(1000)]
    assert result.index(max(result)) == 20
    assert result[9] == pytest.approx(0.2 * 10 / 21 * (1 - 0.009))
    assert (result[500], result[-1]) == pytest.approx((0.1, 0.2 * 1e-3))
    assert rate("annealed", 500, 0.75) == pytest.approx(0.05)
    assert {rate("constant", n, n / 1000) for n in (0, 500, 999)} == {0.2}
    assert [rate("halving", 5, 0.005, n) for n in range(3)] == [0.2, 0.1, 0.05]


V, K, H = 40, 6, 5


def model_of(tied: bool = False, seed: int = 1) -> DocumentLM:
    return DocumentLM.seeded(Config("codclm", V, K, H, "cifg", 2, tied=tied), seed)


def test_glorot_bounds_follow_the_shapes_of_single_matrices_and_vectors() -> None:
    model = model_of()
    INITIALISATIONS["glorot"](model, 3)
    cells, output = model.recurrence, model.head.weight()
    for tensor, bound in (
        *((gate, 6 / (H + K)) for gate in torch.split(cells.lower[0], H)),
        (cells.get_parameter("recurrent.1"), 6 / (H + H)),
        (torch.cat([*cells.bias]), 6 / H),  # each a vector of H
        (model.embedding.weight, 6 / K),  # each row a vector of K
        *((own, 6 / (V + H)) for own in torch.split(output, H, dim=1)),
        *((model.head.bias, 6 / V), (model.context.get_parameter("first"), 6 / H)),
    ):
        assert 0.7 * bound**0.5 < float(tensor.detach().abs().max()) <= bound**0.5
    weight = model.embedding.weight.detach()  # the variance of U(±b) is b² / 3
    assert float(weight.var()) == pytest.approx(6 / K / 3, rel=0.2)
    assert abs(float(weight.mean())) < 0.2


def test_initial_weights_are_a_function_of_the_seed_and_stay_tied() -> None:
    result = list[Tensor]()
    for seed in (3, 3, 4):
        model = model_of(tied=True, seed=len(result))
        torch.rand(seed)
        INITIALISATIONS["glorot"](model, seed)
        result.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        assert model.head.weight() is model.embedding.weight
    assert [torch.equal(result[0], other) for other in result[1:]] == [True, False]
    own = model_of()
    INITIALISATIONS["own"](own, 3)
    assert all(torch.equal(own.state_dict()[n], t) for n, t in model_of().state_dict().items())


@pytest.mark.parametrize(("eta", "updates"), [(0, 7), (1, 2), (4, 7)])
def test_the_average_has_the_closed_form_of_polynomial_decay(eta: int, updates: int) -> None:
    """Shamir & Zhang 2013: shares proportional to s (s + 1) … (s + η − 1)."""
    average = WeightAverage(model_of(True, 99), 1 / (eta + 1))
    models = [model_of(True, n) for n in range(updates)]
    for t, model in enumerate(models, start=1):
        average.add(model, t)
    shares = torch.tensor([np.prod([s + k for k in range(eta)]) for s in range(1, updates + 1)])
    for name, found in average.model.named_parameters():
        stack = torch.stack([m.get_parameter(name).detach().double() for m in models])
        expected = torch.einsum("s,s...->...", shares.double() / shares.sum(), stack)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-7)
    assert average.model.head.weight() is average.model.embedding.weight
    assert torch.equal(models[0].embedding.weight, model_of(True, 0).embedding.weight)
    models[0].head.sparse = True  # type: ignore[assignment]  # a mark of the class, else
    shared = WeightAverage(models[0], 0.5).model
    assert shared.head.bias is models[0].head.bias
    assert shared.recurrence.bias[0] is not models[0].recurrence.bias[0]
