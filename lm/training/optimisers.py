"""How gradients become updates of the weights: the optimisers by name, and clipping.

A module states by `sparse = True` that its own parameters are so large, and used by so few
positions, that an update must not touch all of their entries: tables of hashed features. They
are trained beside the others, on sparse or dense gradients, without decay and clipping: by SGD if
the others are, else by AdaGrad (`lm.training.sparse_updates`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import SGD, Adadelta, Adagrad, AdamW, Optimizer

from lm.training.muon import MuonWithAdamW
from lm.training.sparse_updates import SparseAdaGrad

Parameters = Sequence[nn.Parameter]


class Create(Protocol):
    """Makes an optimiser of some parameters; words: V, rows of a table of words, if known."""

    def __call__(
        self, parameters: Parameters, rate: float, decay: float, words: int = 0
    ) -> Optimizer:
        """The optimiser, with this learning rate and weight decay."""
        ...


class CreateSparse(Protocol):
    """Makes an optimiser of sparse parameters; divisor: of the summed loss of an update."""

    def __call__(self, parameters: Parameters, rate: float, divisor: int) -> Optimizer:
        """The optimiser, with this learning rate."""
        ...


@dataclass(frozen=True, slots=True)
class Optimiser:
    """An optimiser, that of the sparse parameters beside it, and what both keep.

    sparse_rate: learning rate of the sparse parameters, times that of the others. state: names of
    the tensors that are kept for each parameter, unless a parameter group names its own: `step` is
    a number, others have the parameter's shape.
    """

    create: Create
    sparse: CreateSparse
    sparse_rate: float
    state: tuple[str, ...] = ()

    def state_shapes(
        self, parameter: nn.Parameter, group: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, torch.Tensor]:
        """Tensors of the shapes and types of a parameter's state, by name."""
        names = group.get("state", self.state)
        return {name: torch.zeros(()) if name == "step" else parameter.data for name in names}


def _adamw(parameters: Parameters, rate: float, decay: float, words: int = 0) -> AdamW:
    """AdamW that shrinks matrices, not vectors (Loshchilov & Hutter 2019)."""
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=rate, weight_decay=decay, betas=(0.9, 0.99), fused=True)


def _muon(parameters: Parameters, rate: float, decay: float, words: int = 0) -> Optimizer:
    """Muon for matrices, AdamW for vectors and for tables with a row for each word."""
    hidden = [p for p in parameters if p.ndim == 2 and len(p) != words]
    chosen = {id(p) for p in hidden}
    others = [p for p in parameters if id(p) not in chosen]
    return MuonWithAdamW(hidden, _adamw(others, rate, decay, words), rate=rate, decay=decay)


def _sgd(parameters: Parameters, rate: float, decay: float, words: int = 0) -> Optimizer:
    """θ ← θ − rate · (gradient + decay · θ)."""
    return SGD(parameters, lr=rate, weight_decay=decay)


def _adagrad(parameters: Parameters, rate: float, decay: float, words: int = 0) -> Optimizer:
    """θ ← θ − rate · g / √Σ g², the sum over all updates (Duchi et al. 2011)."""
    return Adagrad(parameters, lr=rate, weight_decay=decay)


def _adadelta(parameters: Parameters, rate: float, decay: float, words: int = 0) -> Optimizer:
    """Zeiler 2012 with its ρ = 0.95 and ε = 1e-6."""
    return Adadelta(parameters, lr=rate, rho=0.95, eps=1e-6, weight_decay=decay)


def _sparse_sgd(parameters: Parameters, rate: float, divisor: int) -> Optimizer:
    """θ ← θ − rate · g, as in Mikolov's toolkit."""
    return SGD(parameters, lr=rate)


def _sparse_adagrad(parameters: Parameters, rate: float, divisor: int) -> Optimizer:
    """AdaGrad whose sums begin with the square of what one observed word contributes."""
    return SparseAdaGrad(parameters, lr=rate, start=1 / divisor**2)


# AdaGrad's rate for tables is 0.3 where that of the others is usual: then bigrams and bags of
# 72,000 words of the PTB have lower perplexities than with a third of it; bags have higher ones
# with three times that.
OPTIMISERS: Mapping[str, Optimiser] = {
    "adamw": Optimiser(_adamw, _sparse_adagrad, 100.0, ("step", "exp_avg", "exp_avg_sq")),
    "muon": Optimiser(_muon, _sparse_adagrad, 30.0, ("step", "exp_avg", "exp_avg_sq")),
    "sgd": Optimiser(_sgd, _sparse_sgd, 1.0),
    "adagrad": Optimiser(_adagrad, _sparse_adagrad, 1.0, ("step", "sum")),
    "adadelta": Optimiser(_adadelta, _sparse_adagrad, 0.3, ("step", "square_avg", "acc_delta")),
}


def sparse_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of the modules that are marked as sparse."""
    modules = (module for module in model.modules() if getattr(module, "sparse", False))
    return [parameter for module in modules for parameter in module.parameters(recurse=False)]


def clip(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Scale the gradients so that all together have at most this norm; 0 leaves them."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not norm or not gradients:
        return
    total = nn.utils.get_total_norm(gradients)
    scale = (norm / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale)
