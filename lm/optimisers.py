"""How gradients become updates of the weights: the optimisers by name, and clipping.

A module states by `sparse = True` that its own parameters are so large, and used by so few
positions, that an update must not touch all of their entries: tables of hashed features. They
are trained by SGD without decay or state, on sparse or dense gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adadelta, Adagrad, AdamW, Optimizer

SPARSE_RATE = 0.1  # as in Mikolov's toolkit, times the schedule's share of the peak rate
Parameters = Sequence[nn.Parameter]


@dataclass(frozen=True, slots=True)
class Optimiser:
    """An optimiser of some parameters by rate and weight decay.

    moments: names of the tensors that it keeps for each parameter, of the parameter's shape,
    beside a count of updates, `step`.
    """

    create: Callable[[Parameters, float, float], Optimizer]
    moments: tuple[str, ...] = ()

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, torch.Tensor]:
        """Tensors of the shapes and types of a parameter's state, by name."""
        step = {"step": torch.zeros(())} if self.moments else {}
        return step | dict.fromkeys(self.moments, parameter.data)


def _adamw(parameters: Parameters, rate: float, decay: float) -> Optimizer:
    """AdamW that shrinks matrices, not vectors (Loshchilov & Hutter 2019)."""
    groups: list[dict[str, Any]] = [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=rate, weight_decay=decay, betas=(0.9, 0.99), fused=True)


def _sgd(parameters: Parameters, rate: float, decay: float) -> Optimizer:
    """θ ← θ − rate · (gradient + decay · θ)."""
    return SGD(parameters, lr=rate, weight_decay=decay)


def _adagrad(parameters: Parameters, rate: float, decay: float) -> Optimizer:
    """θ ← θ − rate · g / √Σ g², the sum over all updates (Duchi et al. 2011)."""
    return Adagrad(parameters, lr=rate, weight_decay=decay)


def _adadelta(parameters: Parameters, rate: float, decay: float) -> Optimizer:
    """Zeiler 2012 with its ρ = 0.95 and ε = 1e-6."""
    return Adadelta(parameters, lr=rate, rho=0.95, eps=1e-6, weight_decay=decay)


OPTIMISERS: Mapping[str, Optimiser] = {
    "adamw": Optimiser(_adamw, ("exp_avg", "exp_avg_sq")),
    "sgd": Optimiser(_sgd),
    "adagrad": Optimiser(_adagrad, ("sum",)),
    "adadelta": Optimiser(_adadelta, ("square_avg", "acc_delta")),
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
