"""Sums of exponentials of logits, Σ_v exp(logit), by a single kernel of a GPU.

It is written in Triton, which comes with torch for CUDA. The logits are never written to the GPU's
memory; writing and reading them takes longer than their product (recipes/bench/gpu).
"""

from __future__ import annotations

from threading import Lock

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

TILE_ROWS, TILE_WORDS, TILE_BYTES = 128, 256, 128  # of a step of a product
SPAN = 2048  # words that a program adds up, at most
TF32_HALF, TF32_MASK = 1 << 12, -(1 << 13)  # of the 23 bits of a float32, TF32 lacks the last 13
_LAUNCH = Lock()  # Triton compiles at the first launch


def exponential_sums(features: Tensor, weight: Tensor, bfloat16: bool) -> Tensor:
    """(N,) of Σ_v exp(features · weight[v]), with operands in bfloat16, or else in TF32.

    features: (N, R); weight: (V, R); both float32 on CUDA. A sum does not depend on other rows but
    for its rounding. O(N V R) time; memory for a copy of both and N V / 2048 sums.
    """
    rows, words = _operand(features, bfloat16), _operand(weight, bfloat16)
    step = TILE_BYTES // rows.element_size()
    parts = triton.cdiv(len(words), SPAN)
    span = triton.cdiv(len(words), parts * TILE_WORDS) * TILE_WORDS
    sums = features.new_empty(parts, len(rows))
    with _LAUNCH, torch.cuda.device(features.device):
        _sum_exponentials[(triton.cdiv(len(rows), TILE_ROWS), parts)](
            TensorDescriptor.from_tensor(rows, [TILE_ROWS, step]),
            TensorDescriptor.from_tensor(words, [TILE_WORDS, step]),
            sums,
            len(rows),
            len(words),
            rows.shape[1],
            span,
            (TILE_ROWS, TILE_WORDS, step),
            num_warps=8,
            num_stages=4,
        )
    return sums.sum(dim=0)


def _operand(matrix: Tensor, bfloat16: bool) -> Tensor:
    """A matrix rounded to the precision of a product; zeros fill its rows to whole tiles."""
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    width = matrix.shape[1]
    filled = triton.cdiv(width * dtype.itemsize, TILE_BYTES) * TILE_BYTES // dtype.itemsize
    whole = matrix.new_zeros(len(matrix), filled, dtype=dtype)
    part = whole[:, :width]
    if bfloat16:
        part.copy_(matrix)
    else:  # tensor cores would cut off the last bits
        bits = part.view(torch.int32)
        torch.add(matrix.view(torch.int32), TF32_HALF, out=bits).bitwise_and_(TF32_MASK)
        part.masked_fill_(matrix.isnan(), torch.nan)
    return whole


@triton.jit(do_not_specialize=["n_rows"])  # type: ignore[untyped-decorator]
def _sum_exponentials(  # type: ignore[no-untyped-def]  # Triton reads annotations
    rows, words, sums, n_rows, n_words, width: tl.constexpr, span: tl.constexpr, shape: tl.constexpr
):
    """Sums (parts, N) of the exponentials of a tile of rows and a span of words."""
    m: tl.constexpr = shape[0]
    n: tl.constexpr = shape[1]
    k: tl.constexpr = shape[2]
    row, word = tl.program_id(0) * m, tl.program_id(1) * span
    total = tl.zeros((m,), tl.float32)
    for first in range(0, span, n):
        logits = tl.zeros((m, n), tl.float32)
        for column in range(0, width, k):
            a = rows.load([row, column])
            b = words.load([word + first, column])
            logits = tl.dot(a, b.T, logits)
        exists = word + first + tl.arange(0, n) < n_words
        total += tl.sum(tl.where(exists[None, :], tl.exp(logits), 0.0), axis=1)
    rows_of_tile = row + tl.arange(0, m)
    at = sums + tl.program_id(1).to(tl.int64) * n_rows + rows_of_tile
    tl.store(at, total, mask=rows_of_tile < n_rows)
