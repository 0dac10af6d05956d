"""Forms of Σ_v exp(logit) beside the product that makes the logits: which one a GPU does best."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter

import torch
from measuring import synchronise
from torch import Tensor

from lm.backend import Backend, column_multiple


@cache
def compiled() -> Callable[[Tensor], Tensor]:
    """Exponentials and sums as one kernel, which is compiled at its first call."""
    return torch.compile(lambda logits: logits.exp().sum(dim=1))


ROWS = (512, 2048, 8192)  # at a time
RUNS = 9  # timed together, after one that is not
IN_PLACE, HALF = "exponentials in place, then sums", "logits in bfloat16"
FORMS: dict[str, Callable[[Tensor], object]] = {
    "product alone": lambda logits: logits,
    IN_PLACE: lambda logits: logits.exp_().sum(dim=1),
    "torch.compile": lambda logits: compiled()(logits),
    HALF: lambda logits: logits.exp_().sum(dim=1, dtype=torch.float32),
}


def shares(form: str, shape: tuple[int, int], backend: Backend, peak: float) -> list[str]:
    """Share of the products' rate `peak` (FLOP/s) for each number of rows.

    shape: of units, without the bias, and of words. The name of the error where there is no
    compiler; a dash for logits in bfloat16 beside products of another precision.
    """
    units, words = shape
    units += column_multiple(backend.device)
    rows, factor = (
        backend.operand(torch.randn(n, units, device=backend.device) / 10)
        for n in (max(ROWS), words)
    )
    kept = torch.bfloat16 if form == HALF else torch.float32
    if form == HALF and rows.dtype != kept:
        return ["–"] * len(ROWS)
    found = []
    for number in ROWS:
        out, own = torch.empty(number, words, device=backend.device, dtype=kept), rows[:number]

        def run(own: Tensor = own, out: Tensor = out) -> object:
            if own.dtype == out.dtype:
                return FORMS[form](torch.mm(own, factor.T, out=out))
            return FORMS[form](backend.product(own, factor.T, out))

        try:
            with backend.inference():
                seconds = timed(run)
        except Exception as fault:  # of a compiler that is not there, of any kind
            found.append(type(fault).__name__)
            continue
        found.append(f"{2 * number * units * words / seconds / peak:.0%}")
    return found


def timed(run: Callable[[], object]) -> float:
    """Seconds of one of `RUNS` runs."""
    run()
    synchronise()
    began = perf_counter()
    for _ in range(RUNS):
        run()
    synchronise()
    return (perf_counter() - began) / RUNS
