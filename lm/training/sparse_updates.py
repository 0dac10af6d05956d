"""Updates of parameters of which an update reads few numbers, such as tables of hashed features.

AdaGrad (Duchi et al. 2011) on the numbers that have a gradient. Adam would make whole steps of
the gradients of words that are not observed, which are tiny, because it divides by their size;
AdaGrad divides by √(a + Σ g²), and a, the square of what one observed word contributes, keeps tiny
gradients tiny.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn


class SparseAdaGrad(torch.optim.Optimizer):
    """θ ← θ − lr · g / √(a + Σ g²), where the gradient g has entries; no weight decay.

    start: a, that a sum of squares begins with. O(entries) time for a sparse gradient, whose equal
    indices add up; memory: 8 bytes a number. Groups have an entry `state`, as in
    `lm.training.muon`.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, lr: float, start: float) -> None:
        super().__init__(parameters, {"lr": lr, "state": ("sum",)})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"] = torch.full_like(parameter, start).detach()
        self._zeros: dict[nn.Parameter, torch.Tensor] = {}  # where entries are added up

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of every parameter that has a gradient; there is no closure."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"])

    def _update(self, parameter: nn.Parameter, gradient: torch.Tensor, rate: float) -> None:
        sums = self.state[parameter]["sum"]
        if not gradient.is_sparse:
            sums.addcmul_(gradient, gradient)
            parameter.addcdiv_(gradient, sums.sqrt(), value=-rate)
            return
        if parameter not in self._zeros:
            self._zeros[parameter] = torch.zeros_like(parameter)
        at, total = gradient._indices()[0], self._zeros[parameter]
        total.index_add_(0, at, gradient._values())
        g = total[at]  # no sorting: what is written for equal indices is equal, too
        total[at] = 0.0
        own = sums[at].addcmul_(g, g)
        sums[at] = own
        parameter[at] = parameter[at] - rate * g / own.sqrt()
