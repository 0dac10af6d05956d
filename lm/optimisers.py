"""How gradients become updates of the weights: the optimisers by name, and clipping.

A module states by `sparse = True` that its own parameters are so large, and used by so few
positions, that an update must not touch all of their entries: tables of hashed features. They
are trained by SGD without decay or state, on sparse or dense gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import SGD, Adadelta, Adagrad, AdamW, Optimizer

from lm.muon import MuonWithAdamW

SPARSE_RATE = 0.1  # as in Mikolov's toolkit, times the schedule's share of the peak rate
Parameters = Sequence[nn.Parameter]


class Create(Protocol):
    """Makes an optimiser of some parameters; words: V, rows of a table of words, if known."""

    def __call__(
        self, parameters: Parameters, rate: float, decay: float, words: int = 0
    ) -> Optimizer:
        """The optimiser, with this learning rate and weight decay."""
        ...


@dataclass(frozen=True, slots=True)
class Optimiser:
    """An optimiser, and what it keeps.

    state: names of the tensors that it keeps for each parameter, unless a parameter group names
    its own: `step` is a number, others have the parameter's shape.
    """

    create: Create
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


OPTIMISERS: Mapping[str, Optimiser] = {
    "adamw": Optimiser(_adamw, ("step", "exp_avg", "exp_avg_sq")),
    "muon": Optimiser(_muon, ("step", "exp_avg", "exp_avg_sq")),
    "sgd": Optimiser(_sgd),
    "adagrad": Optimiser(_adagrad, ("step", "sum")),
    "adadelta": Optimiser(_adadelta, ("step", "square_avg", "acc_delta")),
}


def sparse_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of the modules that are marked as sparse."""
    modules = (module for module in model.modules() if getattr(module, "sparse", False))
    return [parameter for module in modules for parameter in module.parameters(recurse=False)]


def clip(parameters: Iterable[nn.Parameter], norm: float) -> None:
    """Scale the gradients so that all together have at most this norm; 0 leaves them.

    Of a sparse gradient only the entries that it has are read.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not norm or not gradients:
        return
    entries = [g.coalesce().values() if g.is_sparse else g for g in gradients]
    total = nn.utils.get_total_norm(entries)
    scale = (norm / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale)
