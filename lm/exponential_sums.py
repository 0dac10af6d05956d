"""Σ_v exp(logit) of many features as one kernel of a GPU, whose logits never reach its memory.

In Triton, which comes with torch for CUDA. The other form, a product and passes over its logits,
spends more time on memory than on the product: recipes/gpu.
"""

from __future__ import annotations

from threading import Lock

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F
from triton.tools.tensor_descriptor import TensorDescriptor

M, N, LINE = 128, 256, 128  # rows and words of a product, and bytes of each that are read at once
SPAN = 2048  # words that one program adds up, at most
_LAUNCH = Lock()  # which compiles at first
_ROUNDING, _KEPT = 1 << 12, -(1 << 13)  # of the 23 bits of a float32 those that TF32 lacks


def exponential_sums(features: Tensor, weight: Tensor, bfloat16: bool) -> Tensor:
    """(N,) of Σ_v exp(features · weight[v]), with operands in bfloat16, or else in TF32.

    features: (N, R); weight: (V, R); both float32 on CUDA. Sums are float32, in an order that
    depends on V alone. O(N V R) time; memory for a copy of both and N V / 2048 sums.
    """
    rows, words = _operand(features, bfloat16), _operand(weight, bfloat16)
    k = LINE // rows.element_size()
    parts = triton.cdiv(len(words), SPAN)
    span = triton.cdiv(len(words), parts * N) * N
    sums = features.new_empty(parts, len(rows))
    with _LAUNCH, torch.cuda.device(features.device):
        _sum_exponentials[(triton.cdiv(len(rows), M), parts)](
            TensorDescriptor.from_tensor(rows, [M, k]),
            TensorDescriptor.from_tensor(words, [N, k]),
            sums,
            len(rows),
            len(words),
            rows.shape[1],
            span,
            (M, N, k),
            num_warps=8,
            num_stages=4,
        )
    return sums.sum(dim=0)


def _operand(matrix: Tensor, bfloat16: bool) -> Tensor:
    """A matrix in the precision of a product, whose rows have whole lines of memory."""
    if bfloat16:
        rounded = matrix.bfloat16()
    else:  # tensor cores would cut off what they cannot read
        rounded = ((matrix.view(torch.int32) + _ROUNDING) & _KEPT).view(torch.float32)
    return F.pad(rounded, (0, -rounded.shape[1] % (LINE // rounded.element_size())))


@triton.jit  # type: ignore[untyped-decorator]
def _sum_exponentials(  # type: ignore[no-untyped-def]  # Triton reads annotations
    rows,
    words,
    sums,
    n_rows,
    n_words,
    width: tl.constexpr,
    span: tl.constexpr,
    shape: tl.constexpr,
):
    """Sums (parts, N) of the exponentials of M rows and a span of words, by products of a shape."""
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
    own = row + tl.arange(0, m)
    tl.store(sums + tl.program_id(1).to(tl.int64) * n_rows + own, total, mask=own < n_rows)
