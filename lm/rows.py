"""Batches of contexts, and of what contexts take from sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """B rows of one or more tensors, each (B, …).

    Only the context that made a batch knows what its tensors hold. The second dimension of a
    tensor may be padded at its end, with zeros: `cat` pads the shorter ones.
    """

    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, *tensors: Tensor) -> Self:
        """Rows of these tensors."""
        return cls(tensors)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """All rows of the parts, in order."""
        return cls(tuple(map(_cat, zip(*(part.tensors for part in parts), strict=True))))

    def __len__(self) -> int:
        return len(self.tensors[0])

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.tensors[0].device

    def take(self, index: Tensor | slice) -> Self:
        """The rows at some positions, or where a mask holds."""
        return self._map(lambda tensor: tensor[index])

    def repeat_interleave(self, times: int) -> Self:
        """Each row `times` times, one after the other."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def detach(self) -> Self:
        """The rows without their gradient."""
        return self._map(Tensor.detach)

    def clone(self) -> Self:
        """A copy of the rows."""
        return self._map(Tensor.clone)

    def to(self, device: torch.device) -> Self:
        """The rows on a device."""
        return self._map(lambda tensor: tensor.to(device))

    def put(self, index: Tensor, other: Self) -> Self:
        """These rows with those at `index` (M,), or under a mask (B,), replaced by `other` (M)."""
        chosen = torch.arange(len(self), device=self.device)
        chosen[index] = torch.arange(len(other), device=self.device) + len(self)
        return self.cat([self, other]).take(chosen)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Self:
        return type(self)(tuple(map(function, self.tensors)))


def _cat(tensors: Sequence[Tensor]) -> Tensor:
    if len({tensor.shape[1:] for tensor in tensors}) > 1:
        longest = max(tensor.shape[1] for tensor in tensors)
        ends = [[*[0, 0] * (t.ndim - 2), 0, longest - t.shape[1]] for t in tensors]
        tensors = [F.pad(t, end) for t, end in zip(tensors, ends, strict=True)]
    return torch.cat(list(tensors))
