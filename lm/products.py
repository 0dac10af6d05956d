"""Matrix products whose number of rows is another one in every update.

oneDNN compiles a kernel for each shape of a bfloat16 product on a CPU, which takes several times
as long as the product of a training batch. With rows rounded up, few shapes occur, and their
kernels stay in its cache. Products in float32 have no such cost and are left as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

ROWS = 128  # sizes are rounded up to a multiple


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` of x (N, D), under autocast with rounded N."""
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return F.linear(padded(x), weight, bias)[: len(x)]
    return F.linear(x, weight, bias)


def rounded(size: int, like: Tensor) -> int:
    """A number of rows, rounded up if products of this tensor's kind are compiled."""
    compiled = like.device.type == "cpu" and like.dtype == torch.bfloat16
    return size + -size % ROWS if compiled else size


def padded(x: Tensor) -> Tensor:
    """Rows x (N, …) with rows of zeros behind it, as many as make N a multiple of `ROWS`."""
    missing = -len(x) % ROWS
    return F.pad(x, (0, 0) * (x.ndim - 1) + (0, missing)) if missing else x


def fast_bfloat16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32: by its own instructions."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and bool(torch.cpu._is_amx_tile_supported())
