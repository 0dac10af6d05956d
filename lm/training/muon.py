"""Muon for hidden matrices, AdamW for the rest, as one optimiser.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) makes the momentum of a
matrix orthogonal, by five Newton–Schulz iterations in bfloat16, before it is subtracted. It is
meant for matrices between layers of units, not for tables with a row for each word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import AdamW, Muon, Optimizer

MUON_STATE = ("momentum_buffer",)


class MuonWithAdamW(Optimizer):
    """Muon with momentum 0.95 for `matrices`, beside `others`, an AdamW of other parameters.

    One learning rate serves both: updates are scaled by 0.2 √max(rows, columns), to the size of
    AdamW's (Liu et al. 2025, https://arxiv.org/abs/2502.16982). The group of the matrices is the
    last one, and has an entry `state`: names of the tensors kept for its parameters.
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
            self._parts.append(
                Muon([group], lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
            )
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
