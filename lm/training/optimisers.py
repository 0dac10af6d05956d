"""The weights of a model in training: initial ones, updates from gradients, averages.

A module states by `sparse = True` that its parameters are so large, and used by so few positions,
that an update must not touch all of their entries: tables of hashed features. They are trained
beside the others, without decay and clipping: by SGD if the others are, else by AdaGrad. A module
whose parameters stack several matrices or vectors of its equations says so by a method
`blocks(tensor)`: views of a parameter, each a matrix or a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adadelta, Adagrad, AdamW, Optimizer

from lm.backend import fast_bfloat16
from lm.model import DocumentLM

Parameters = Sequence[nn.Parameter]

# Initial weights

Blocks = Callable[[Tensor], Sequence[Tensor]]


def _whole(tensor: Tensor) -> Sequence[Tensor]:
    return (tensor,)


@torch.no_grad()
def glorot(model: nn.Module, seed: int) -> None:
    """Every matrix U(±√(6 / (rows + columns))), every vector of d numbers U(±√(6 / d)).

    Glorot & Bengio 2010, and for vectors Ji et al.'s program, for which each word's embedding is
    a vector. Sparse parameters keep their values.
    """
    kept = {id(parameter) for parameter in sparse_parameters(model)}
    generator = torch.Generator().manual_seed(seed)
    for parameter, blocks, by_rows in _parameters(model, _whole):
        if id(parameter) in kept:
            continue
        kept.add(id(parameter))  # tied ones are met twice
        for block in blocks(parameter):
            if block.numel():
                bound = (6 / (block.shape[-1] if by_rows else sum(block.shape))) ** 0.5
                drawn = torch.rand(block.shape, generator=generator)
                block.copy_((2 * drawn - 1) * bound)


def _parameters(module: nn.Module, blocks: Blocks) -> Iterator[tuple[Tensor, Blocks, bool]]:
    """Parameters, the views of each that its owner defines, and whether their rows are vectors."""
    blocks = getattr(module, "blocks", blocks)
    for parameter in module.parameters(recurse=False):
        yield parameter, blocks, isinstance(module, nn.Embedding)
    for child in module.children():
        yield from _parameters(child, blocks if isinstance(child, nn.ParameterList) else _whole)


# own: the weights with which the parts were made
INITIALISATIONS: Mapping[str, Callable[[nn.Module, int], None]] = {
    "own": lambda model, seed: None,
    "glorot": glorot,
}


# Muon

MUON_STATE = ("momentum_buffer",)
MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = 3.4445, -4.7750, 2.0315  # of X, of X Xᵀ X and of (X Xᵀ)² X


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """U S Vᵀ of a matrix (R, C) with the singular vectors U and V, and S between about 0.7 and 1.2.

    Computed in `dtype`: `ITERATIONS` · (4 R + 2 min(R, C)) · min(R, C) · C multiplications, R ≤ C.
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide.to(dtype)
    x = x / torch.linalg.vector_norm(x).clamp(min=1e-7)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.T
        factor = torch.addmm(square, square, square, beta=third, alpha=fifth)
        x = torch.addmm(x, factor, x, beta=first)
    return x if wide is matrix else x.T


class MuonWithAdamW(Optimizer):
    """Muon for `matrices`, beside `others`, an AdamW of other parameters.

    Muon with Nesterov momentum (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/)
    makes the momentum of a matrix between layers orthogonal, by five Newton–Schulz iterations,
    before it is subtracted. `torch.optim.Muon` iterates in bfloat16 on every machine: a CPU without
    such instructions takes 30 times as long as in float32. Updates are scaled by
    0.2 √max(rows, columns), to the size of AdamW's (Liu et al. 2025,
    https://arxiv.org/abs/2502.16982).

    The learning rate serves both. The group of the matrices is the last, and has an entry `state`:
    names of the tensors kept for its parameters.
    """

    def __init__(
        self, matrices: Sequence[nn.Parameter], others: AdamW, *, rate: float, decay: float
    ) -> None:
        muon = {"params": list(matrices), "state": MUON_STATE, "lr": rate, "weight_decay": decay}
        self._others = others
        super().__init__([*others.param_groups, *([muon] if matrices else [])], {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # of no closure
        """One update of every parameter that has a gradient.

        The AdamW works on its groups, and on the state, of the whole, which may have been restored.
        """
        self._others.param_groups = [group for group in self.param_groups if "state" not in group]
        self._others.state = self.state
        self._others.step()
        for group in self.param_groups:
            if "state" not in group:
                continue
            rate, decay = group["lr"], group["weight_decay"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state[MUON_STATE[0]] = torch.zeros_like(matrix)
                momentum = state[MUON_STATE[0]].lerp_(matrix.grad, 1 - MOMENTUM)
                half = torch.bfloat16 if fast_bfloat16(matrix.device) else torch.float32
                update = orthogonal(matrix.grad.lerp(momentum, MOMENTUM), half)
                scale = 0.2 * max(matrix.shape) ** 0.5
                matrix.mul_(1 - rate * decay).add_(update, alpha=-rate * scale)


# Sparse parameters


class SparseAdaGrad(Optimizer):
    """θ ← θ − lr · g / √(a + Σ g²), where the gradient g has entries; no weight decay.

    AdaGrad (Duchi et al. 2011) on the numbers that have a gradient. Adam would make whole steps of
    the tiny gradients of words that are not observed; here a, the square of what an observed word
    contributes, keeps them tiny.

    divisor: of the summed loss of an update; a = 1 / divisor². O(entries) time for a sparse
    gradient, whose equal indices add up; memory: 8 bytes a number. Groups have an entry `state`, as
    of `MuonWithAdamW`.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], rate: float, divisor: int) -> None:
        super().__init__(parameters, {"lr": rate, "state": ("sum",)})
        for parameter in parameters:
            start = torch.full_like(parameter, 1 / divisor**2)
            self.state[parameter]["sum"] = start.detach()
        self._zeros: dict[nn.Parameter, Tensor] = {}  # where entries are added up

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of every parameter that has a gradient; there is no closure."""
        for group in self.param_groups:
            rate = group["lr"]
            for parameter in group["params"]:
                sums, gradient = self.state[parameter]["sum"], parameter.grad
                if gradient is None:
                    continue
                if not gradient.is_sparse:
                    sums.addcmul_(gradient, gradient)
                    parameter.addcdiv_(gradient, sums.sqrt(), value=-rate)
                    continue
                if parameter not in self._zeros:
                    self._zeros[parameter] = torch.zeros_like(parameter)
                at, total = gradient._indices()[0], self._zeros[parameter]
                total.index_add_(0, at, gradient._values())
                g = total[at]  # no sorting: what is written for equal indices is equal, too
                total[at] = 0.0
                squares = sums[at].addcmul_(g, g)
                sums[at] = squares
                parameter[at] = parameter[at] - rate * g / squares.sqrt()


def sparse_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of the modules that are marked as sparse."""
    modules = (module for module in model.modules() if getattr(module, "sparse", False))
    return [parameter for module in modules for parameter in module.parameters(recurse=False)]


# Optimisers by name

FUSED = (SGD, Adagrad)


@dataclass(frozen=True, slots=True)
class Optimiser:
    """An optimiser, that of the sparse parameters beside it, and what both keep.

    create: of parameters, a learning rate, a weight decay and, if known, the numbers of rows of
    tables of words. sparse: of parameters, a learning rate and the divisor of the summed loss of an
    update. sparse_rate: factor of the learning rate of the sparse parameters. state: names of the
    tensors that are kept for each parameter, unless its group names others: `step` is a number,
    others have the parameter's shape.
    """

    create: Callable[..., Optimizer]
    sparse: Callable[[Parameters, float, int], Optimizer]
    sparse_rate: float
    state: tuple[str, ...] = ()

    def state_shapes(self, parameter: nn.Parameter, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Tensors of the shapes and types of a parameter's state, by name; group: that it is in."""
        names = group.get("state", self.state)
        return {name: torch.zeros(()) if name == "step" else parameter.data for name in names}


def _adamw(
    parameters: Parameters, rate: float, decay: float, tables: Collection[int] = ()
) -> AdamW:
    """AdamW that shrinks matrices, not vectors (Loshchilov & Hutter 2019)."""
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=rate, weight_decay=decay, betas=(0.9, 0.99), fused=True)


def _muon(
    parameters: Parameters, rate: float, decay: float, tables: Collection[int] = ()
) -> Optimizer:
    """Muon for matrices, AdamW for vectors and for tables with a row for each word."""
    hidden = [p for p in parameters if p.ndim == 2 and len(p) not in tables]
    chosen = {id(p) for p in hidden}
    others = [p for p in parameters if id(p) not in chosen]
    return MuonWithAdamW(hidden, _adamw(others, rate, decay), rate=rate, decay=decay)


def _of_torch(
    kind: Callable[..., Optimizer],
    parameters: Parameters,
    rate: float,
    decay: float,
    tables: Collection[int] = (),
) -> Optimizer:
    """An optimiser of torch, fused where that is possible on a CPU."""
    fused = {"fused": True} if kind in FUSED and parameters[0].device.type == "cpu" else {}
    return kind(parameters, lr=rate, weight_decay=decay, **fused)


# θ ← θ − rate · (gradient + decay · θ); Duchi et al. 2011; Zeiler 2012 with its ρ and ε.
_SGD, _ADAGRAD = partial(_of_torch, SGD), partial(_of_torch, Adagrad)
_ADADELTA = partial(_of_torch, partial(Adadelta, rho=0.95, eps=1e-6))

# AdaGrad's rate for tables is 0.3 where that of the others is usual: bigrams and bags of 72,000
# words of the PTB have lower perplexities than with a third of it, bags than with three times that
OPTIMISERS: Mapping[str, Optimiser] = {
    "adamw": Optimiser(_adamw, SparseAdaGrad, 100.0, ("step", "exp_avg", "exp_avg_sq")),
    "muon": Optimiser(_muon, SparseAdaGrad, 30.0, ("step", "exp_avg", "exp_avg_sq")),
    "sgd": Optimiser(_SGD, lambda tables, rate, _: SGD(tables, lr=rate), 1.0),  # Mikolov's toolkit
    "adagrad": Optimiser(_ADAGRAD, SparseAdaGrad, 1.0, ("step", "sum")),
    "adadelta": Optimiser(_ADADELTA, SparseAdaGrad, 0.3, ("step", "square_avg", "acc_delta")),
}


class WeightAverage:
    """Polynomial-decay average of Shamir & Zhang 2013 (https://arxiv.org/abs/1212.1824).

    After update t: average += (weights − average) / (1 + share · (t − 1)), an exponential average
    over about the last `share` of the updates so far; share 1 is their mean. It does not depend on
    the run's end, which a time limit leaves open. `model` has the averaged weights.
    """

    def __init__(self, model: DocumentLM, share: float) -> None:
        # sparse tables are shared with the model, not averaged: an update reads little of them
        shared: dict[int, object] = {id(p): p for p in sparse_parameters(model)}
        self.share, self.model = share, deepcopy(model, shared)

    @torch.no_grad()
    def add(self, model: DocumentLM, update: int) -> None:
        """Take in the weights after an update; updates count from 1. O(parameters) time."""
        weight = 1 / (1 + self.share * (update - 1))
        for average, new in zip(self.model.parameters(), model.parameters(), strict=True):
            if average is not new:
                average.lerp_(new, weight)


# The learning rate over a stage of training, below its peak


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stage is: updates made, updates of all its epochs, and the share of the budget."""

    update: int
    updates: int
    share_done: float
    halvings: int


def _annealed(peak: float, at: Position) -> float:
    """Rises over the first 2 % of the updates (or 200), then falls to zero with the budget."""
    warm = min(1.0, (at.update + 1) / min(200.0, 0.02 * at.updates + 1))
    return peak * warm * max(1.0 - at.share_done, 1e-3)


# the rate of the next update, of the peak and the position; halving: half of it after each epoch
# whose training loss has risen (Lin et al. 2015, §4.2)
SCHEDULES: Mapping[str, Callable[[float, Position], float]] = {
    "annealed": _annealed,
    "constant": lambda peak, at: peak,
    "halving": lambda peak, at: peak * 0.5**at.halvings,
}
