"""Forms of Σ_v exp(logit) beside the product that makes the logits: which one a GPU does best."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter

import torch
from measuring import synchronise
from torch import Tensor

from lm.backend import Backend, column_multiple

ROWS = (512, 2048, 8192, 65_536)  # of features in one product
RUNS = 9  # timed together, after one that is not
COMPILED, HALF = "torch.compile", "logits in bfloat16"
KERNEL = "fused kernel"  # `lm.exponential_sums`


@cache
def compiled() -> Callable[[Tensor], Tensor]:
    """Exponentials and sums as one kernel, which is compiled at its first call."""
    return torch.compile(lambda logits: logits.exp().sum(dim=1))


FORMS: dict[str, Callable[[Tensor], object]] = {
    "product alone": lambda logits: logits,
    "exponentials in place, then sums": lambda logits: logits.exp_().sum(dim=1),
    COMPILED: lambda logits: compiled()(logits),
    HALF: lambda logits: logits.exp_().sum(dim=1, dtype=torch.float32),
}  # and KERNEL, which never writes the logits


def shares(form: str, shape: tuple[int, int], backend: Backend, peak: float) -> list[str]:
    """Share of the products' rate `peak` (FLOP/s) for each number of rows.

    shape: of units, without the bias, and of words. A dash for logits in bfloat16 beside products
    of another precision; the name of the error where nothing can be compiled. The kernel's seconds
    are with copies of its operands.
    """
    units, words = shape[0] + column_multiple(backend.device), shape[1]
    device = backend.device
    made = [torch.randn(n, units, device=device) / 10 for n in (max(ROWS), words)]
    features, weight = map(backend.operand, made)
    dtype = torch.bfloat16 if form == HALF else torch.float32
    if form == HALF and features.dtype != dtype:
        return ["–"] * len(ROWS)
    cells = []
    for rows in ROWS:
        room = 0 if form == KERNEL else rows
        logits, some = torch.empty(room, words, device=device, dtype=dtype), features[:rows]

        def run(rows: int = rows, some: Tensor = some, logits: Tensor = logits) -> object:
            if form == KERNEL:
                from lm.exponential_sums import exponential_sums

                return exponential_sums(made[0][:rows], made[1], backend.dtype == "bfloat16")
            if some.dtype == logits.dtype:
                return FORMS[form](torch.mm(some, weight.T, out=logits))
            return FORMS[form](backend.product(some, weight.T, logits))

        try:
            with backend.inference():
                rate = 2 * rows * units * words / seconds_of(run)
        except Exception as fault:
            if form not in (COMPILED, KERNEL):
                raise
            cells.append(type(fault).__name__)  # without a compiler, of any kind
            continue
        cells.append(f"{rate / peak:.0%}")
    return cells


def seconds_of(run: Callable[[], object]) -> float:
    """Mean of `RUNS` runs."""
    run()
    synchronise()
    began = perf_counter()
    for _ in range(RUNS):
        run()
    synchronise()
    return (perf_counter() - began) / RUNS
