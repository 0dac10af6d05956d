"""log Σ_v exp(logit) of many features, alone or in many contexts, a block of words at a time.

Features are rows of R + 1 numbers, the last of which multiplies the bias: logits are
features · weightᵀ with a weight of (V, R + 1). The maximum is subtracted only where a sum
overflows, or is so small that underflow may have cost 1e-6 of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import Backend, column_multiple

TINY = 2.0**-126  # smallest normal float32; smaller numbers may underflow
ACCURACY = 1e-6  # share of a sum that may be lost
# of features in a piece of work, at most: recipes/bench/gpu
ROWS = {"cpu": 512, "cuda": 2048, "mps": 2048}
# features and words from which the fused kernel is faster: recipes/bench/gpu
KERNEL_LEAST = 4096, 2048
DIRECT_ROWS = 64  # of pairs recomputed singly
ALIGNED = 16  # contexts of a product come in multiples of this


def log_sums(features: Tensor, weight: Tensor, backend: Backend) -> Tensor:
    """(N,) of log Σ_v exp(features · weight[v]); O(N R V) time, `Backend.floats` a thread."""
    least_rows, least_words = KERNEL_LEAST
    many = len(features) >= least_rows and len(weight) >= least_words
    suited = features.dtype == weight.dtype == torch.float32 and backend.dtype != "float32"
    if many and suited and not backend.deterministic and (kernel := _kernel(features.device)):
        with suppress(torch.OutOfMemoryError):
            total = kernel(features, weight, backend.dtype == "bfloat16")
            return _log_of_sums(total, features, weight)
    factor = backend.operand(weight)

    def sums(rows: Tensor) -> Tensor:
        def attempt(floats: int) -> Tensor:
            total, of_rows = rows.new_zeros(len(rows)), backend.operand(rows)
            for block in _blocks(factor, len(rows), floats):
                words = factor[block]
                logits = backend.buffer(rows, len(words))
                total += backend.product(of_rows, words.T, logits).exp_().sum(dim=1)
            return total

        return backend.within_memory(attempt)

    with backend.large_products():
        total = torch.cat(backend.map(sums, backend.pieces(features, ROWS[backend.device.type])))
    return _log_of_sums(total, features, weight)


@cache
def _kernel(device: torch.device) -> Callable[[Tensor, Tensor, bool], Tensor] | None:
    """The fused kernel, or None: it needs compute capability 9, Triton and a C compiler.

    A first product of zeros shows whether all of this is there.
    """
    if device.type != "cuda" or torch.version.hip is not None:
        return None
    if torch.cuda.get_device_capability(device)[0] != 9:
        return None
    try:
        from lm.exponential_sums import exponential_sums

        features, weight = (torch.zeros(n, 256, device=device) for n in (1, 5000))
        sums = [exponential_sums(features, weight, half).item() for half in (False, True)]
    except torch.OutOfMemoryError:
        raise
    except Exception:  # each part that may be missing has errors of its own
        return None
    return exponential_sums if sums == [5000.0, 5000.0] else None


def _log_of_sums(total: Tensor, features: Tensor, weight: Tensor) -> Tensor:
    """Logarithms (N,) of sums of exponentials, recomputed where these lost too much."""
    log_z = total.log()
    weak = ~((total >= len(weight) * TINY / ACCURACY) & (total < torch.inf))
    for rows in torch.split(weak.nonzero()[:, 0], DIRECT_ROWS):
        log_z[rows] = torch.logsumexp(features[rows] @ weight.T, dim=1)
    return log_z


Pair = tuple[Tensor, Tensor]  # features (N, R + 1) and contexts (C, R + 1)


def pair_log_sums(
    pairs: Sequence[Pair], weight: Tensor, backend: Backend
) -> list[tuple[Tensor, Tensor]]:
    """(N, C) of log Z[n, c] = log Σ_v exp((features[n] + contexts[c]) · weight[v]), and a mask.

    With A and B the logits of features and contexts alone, a product exp(A) · exp(B)ᵀ of positive
    numbers, with a relative error of about 1e-6 where the contexts are centred. Rows that may have
    lost more are recomputed with the maxima of A and B subtracted, and entries for which that is
    not enough, which the mask marks, singly.
    O(N V (R + C)) time; memory a thread: `Backend.floats` and a few (N, C).
    """
    if not pairs:
        return []
    factor = backend.operand(weight)
    # CUDA is waited for twice in all, not for each pair: its queue never runs dry
    masks = torch.stack(backend.map(_columns, pairs)).cpu().numpy()
    multiple = column_multiple(weight.device)
    spans = [(_span(varying, multiple), _span(used, multiple)) for varying, used in masks]

    def product(item: tuple[Pair, tuple[slice, slice]]) -> tuple[Tensor, Tensor, Tensor]:
        pair, columns = item
        return _log_of(*pair, _guarded_product(pair, columns, factor, backend), len(weight))

    with backend.large_products():
        products = backend.map(product, zip(pairs, spans, strict=True))
    short = torch.stack([anywhere for *_, anywhere in products]).tolist()

    def finished(item: tuple[Pair, tuple[Tensor, Tensor, Tensor], bool]) -> tuple[Tensor, Tensor]:
        pair, (log_z, weak, _), again = item
        return _recomputed(*pair, log_z, weak, weight, backend) if again else (log_z, weak)

    return backend.map(finished, zip(pairs, products, short, strict=True))


def _columns(pair: Pair) -> Tensor:
    """(2, R + 1): columns in which the features differ, and those that contexts use."""
    features, contexts = pair
    return torch.stack([(features != features[0]).any(dim=0), contexts.any(dim=0)])


def _guarded_product(
    pair: Pair,
    spans: tuple[slice, slice],
    factor: Tensor,
    backend: Backend,
    tops: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """(N + 1, C + 1) or more of exp(A) · exp(B)ᵀ, with zeros after features and contexts.

    Columns in which all features are equal, such as those of the contexts' mean in a head that
    has features and contexts side by side, are not multiplied for each of them. tops: (N,) and
    (C,), what is subtracted from A and B.
    """
    (features, contexts), (varying, used) = pair, spans
    n, c = len(features), len(contexts)
    whole = slice(0, features.shape[1])
    base = None
    if 4 * (varying.stop - varying.start) > 3 * whole.stop:
        varying = whole  # an addition would cost more
    else:
        equal = features[:1].clone()
        equal[:, varying] = 0
        base = backend.product(backend.operand(equal), factor.T)[0]
    n_rows = math.ceil((n + 1) / backend.row_multiple) * backend.row_multiple
    rows = features.new_zeros(n_rows, varying.stop - varying.start)
    n_columns = math.ceil((c + 1) / ALIGNED) * ALIGNED
    columns = contexts.new_zeros(n_columns, used.stop - used.start)
    rows[:n], columns[:c] = features[:, varying], contexts[:, used]

    def attempt(floats: int) -> Tensor:
        product = rows.new_zeros(n_rows, n_columns)
        of_rows, of_columns = backend.operand(rows), backend.operand(columns)
        for block in _blocks(factor, n_rows + n_columns, floats):
            words = factor[block]
            logits = backend.buffer(rows, len(words))
            a = backend.product(of_rows, words[:, varying].T, logits)
            if base is not None:
                a[:n] += base[block]
            b = backend.product(words[:, used], of_columns.T)
            if tops is not None:
                a[:n] -= tops[0][:, None]
                b[:, :c] -= tops[1]
            backend.add_product(product, backend.operand(a.exp_()), backend.operand(b.exp_()))
        return product

    return backend.within_memory(attempt)


def _span(mask: NDArray[np.bool_], multiple: int) -> slice:
    """The columns from the first to the last where a mask holds, between multiples of a number."""
    where = np.flatnonzero(mask) // multiple
    first, last = (int(where[0]), int(where[-1])) if len(where) else (0, 0)
    return slice(first * multiple, (last + 1) * multiple)


def _log_of(
    features: Tensor, contexts: Tensor, guarded: Tensor, words: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Log Z (N, C) of a guarded product, where it may have lost too much, and whether anywhere.

    Underflow has taken at most (V + Σ_v exp(A_nv) + Σ_v exp(B_cv)) · 2⁻¹²⁶ from an entry.
    """
    n, c = len(features), len(contexts)
    lost = words + guarded[:n, c : c + 1] + guarded[n : n + 1, :c]
    product = guarded[:n, :c]
    weak = ~((product >= lost * (TINY / ACCURACY)) & (product < torch.inf))
    return product.log(), weak, weak.any()


def _recomputed(
    features: Tensor,
    contexts: Tensor,
    log_z: Tensor,
    weak: Tensor,
    weight: Tensor,
    backend: Backend,
) -> tuple[Tensor, Tensor]:
    """Log Z with its weak rows anew, less the maxima, and mask of entries computed singly."""
    again = weak.any(dim=1).nonzero()[:, 0]
    pair, whole = (features[again], contexts), slice(0, features.shape[1])
    tops = _maxima(pair[0], weight, backend), _maxima(contexts, weight, backend)
    product = _guarded_product(pair, (whole, whole), weight, backend, tops)
    logs, weak[again], _ = _log_of(*pair, product, len(weight))
    log_z[again] = logs + tops[0][:, None] + tops[1]
    for some in torch.split(weak.nonzero(), DIRECT_ROWS):
        both = features[some[:, 0]] + contexts[some[:, 1]]
        log_z[some[:, 0], some[:, 1]] = torch.logsumexp(both @ weight.T, dim=1)
    return log_z, weak


def _maxima(rows: Tensor, weight: Tensor, backend: Backend) -> Tensor:
    """(N,) of max_v rows · weight[v]."""

    def attempt(floats: int) -> Tensor:
        blocks = _blocks(weight, len(rows), floats)
        return torch.stack([(rows @ weight[b].T).amax(dim=1) for b in blocks]).amax(dim=0)

    return backend.within_memory(attempt)


def _blocks(weight: Tensor, rows: int, floats: int) -> Iterator[slice]:
    """Blocks of a weight's words whose logits with so many rows are at most `floats`, or of 16.

    A multiple of 256 words, since kernels are compiled for a shape; and of `column_multiple`.
    """
    n, multiple, words = len(weight), column_multiple(weight.device), floats // rows
    words = max(16, words - words % 256 if words > 256 else words)
    words = max(multiple, min(words, n) // multiple * multiple)
    yield from (slice(begin, min(begin + words, n)) for begin in range(0, n, words))
