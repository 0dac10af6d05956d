"""Muon for hidden matrices, AdamW for the rest, as one optimiser.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) makes the momentum of a
matrix orthogonal, by five Newton–Schulz iterations, before it is subtracted. It is meant for
matrices between layers of units, not for tables with a row for each word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from lm.backend import fast_bfloat16

MUON_STATE = ("momentum_buffer",)
MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = 3.4445, -4.7750, 2.0315  # of X, of X Xᵀ X and of (X Xᵀ)² X


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """U S Vᵀ of a matrix (R, C) with the singular vectors U and V, and S between about 0.7 and 1.2.

    Computed in `dtype`: `ITERATIONS` · (4 R + 2 min(R, C)) · min(R, C) · C multiplications, R ≤ C.
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    found = wide.to(dtype)
    found = found / found.norm().clamp(min=1e-7)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = found @ found.T
        factor = torch.addmm(square, square, square, beta=third, alpha=fifth)
        found = torch.addmm(found, factor, found, beta=first)
    return found if wide is matrix else found.T


class Muon(Optimizer):
    """Muon with Nesterov momentum; torch's own class iterates in bfloat16 on every machine.

    In bfloat16, as its authors do, only where the hardware is fast with it: a CPU without such
    instructions takes 30 times as long as in float32. Updates are scaled by
    0.2 √max(rows, columns), to the size of AdamW's (Liu et al. 2025,
    https://arxiv.org/abs/2502.16982).
    """

    def __init__(self, group: dict[str, Any], *, lr: float, weight_decay: float) -> None:
        super().__init__([group], {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # of no closure
        """One update of every matrix that has a gradient."""
        for group in self.param_groups:
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


class MuonWithAdamW(Optimizer):
    """Muon for `matrices`, beside `others`, an AdamW of other parameters.

    One learning rate serves both. The group of the matrices is the last one, and has an entry
    `state`: names of the tensors kept for its parameters.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: AdamW,
        *,
        rate: float,
        decay: float,
    ) -> None:
        self._parts: list[Optimizer] = [others]
        if matrices:
            group = {"params": list(matrices), "state": MUON_STATE}
            self._parts.append(Muon(group, lr=rate, weight_decay=decay))
        super().__init__([group for part in self._parts for group in part.param_groups], {})
        self._share()

    def _share(self) -> None:
        """Let the parts work on the groups and the state of the whole."""
        groups = iter(self.param_groups)
        for part in self._parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # of no closure
        """One step of each part."""
        for part in self._parts:
            part.step()
