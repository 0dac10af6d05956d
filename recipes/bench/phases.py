"""Where our engine's time goes, phase by phase, and what of the machine's limits each reaches.

On one thread, under PyTorch's profiler. The limit of products is the fastest float32 product's
rate (`measuring.matmul_peak`); that of exponentials and sums, which read operands and write a
result, is the bandwidth of a block that fits in a core's cache. *calls* is the time of Python,
of compiled code and of operations that move no data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any
from unittest.mock import patch

import torch
from lists import Set
from measuring import best, matmul_peak
from tasks import TASKS

import lm.heads
import lm.scoring
from lm.backend import LOGITS_HELD, Backend
from lm.heads import LinearPredictor
from lm.model import DocumentLM
from lm.scoring import ScoringEngine
from lm.trie import Forest

PHASES = (  # of functions; what one calls that is listed too is not its own
    (lm.scoring, "build", "tries"),
    (Forest, "restricted", "tries"),
    (Forest, "positions", "tries"),
    (lm.scoring, "_distinct_after", "contexts"),
    (ScoringEngine, "read", "recurrence"),
    (DocumentLM, "features", "features"),
    (lm.heads, "log_sums", "normalisers"),
    (lm.heads, "pair_log_sums", "normalisers"),
    (LinearPredictor, "log_probs", "scores of words"),
    (LinearPredictor, "pair_log_probs", "scores of words"),
    (Forest, "sums", "sums over paths"),
)
OTHER = "other"  # of the engine, and the search
KINDS = {
    **dict.fromkeys(("mm", "addmm"), "products"),
    **dict.fromkeys(("exp", "exp_", "sigmoid", "tanh", "log"), "exponentials"),
    **dict.fromkeys(("add", "add_", "sub", "sub_", "mul", "mul_", "sum"), "sums"),
    **dict.fromkeys(("index", "index_select", "cat", "copy_", "fill_"), "copies"),
}
STREAMS = ("exponentials", "sums")
CALLS = "calls"  # Python, compiled code, and PyTorch's operations that move no data


@dataclass(frozen=True, slots=True)
class Phase:
    """Operations of one kind in one phase: share of the time, rate, and that over its limit."""

    model: str
    data: str
    phase: str
    kind: str
    share: float
    rate: float | None
    unit: str | None
    of_limit: float | None


def phases(model: DocumentLM, data: Set) -> list[Phase]:
    """Our time on a CPU by phase and kind of operation, the longest first."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        peak, bandwidth = matmul_peak(torch.device("cpu")), _bandwidth()
        scorer, ours = ScoringEngine.of(model), TASKS[model.config.model].ours
        ours(scorer, data)
        with (
            _labelled(),
            torch.profiler.profile(record_shapes=True) as seen,
            torch.profiler.record_function(OTHER),
        ):
            ours(scorer, data)
    finally:
        torch.set_num_threads(threads)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    work: dict[tuple[str, str], float] = defaultdict(float)
    for event in seen.events():
        name, label = event.name.removeprefix("aten::"), _phase(event)
        if label is not None:
            key = label, KINDS.get(name, CALLS)
            seconds[key] += event.self_cpu_time_total / 1e6
            work[key] += _work(name, event.input_shapes)
    limits = {"products": (peak, "GFLOP/s"), **dict.fromkeys(STREAMS, (bandwidth, "GB/s"))}
    whole, result = sum(seconds.values()), []
    for (label, kind), spent in sorted(seconds.items(), key=lambda item: -item[1]):
        limit, unit = limits.get(kind, (0.0, None))
        rate = work[label, kind] / spent if unit else None
        of_limit = rate / limit if rate is not None else None
        about = model.config.model, data.name, label, kind
        result.append(Phase(*about, spent / whole, rate, unit, of_limit))
    return result


def _phase(event: Any) -> str | None:
    """Label of the innermost phase that an event is in, or None outside all."""
    labels = {label for *_, label in PHASES} | {OTHER}
    while event is not None and event.name not in labels:
        event = event.cpu_parent
    return None if event is None else str(event.name)


def _work(name: str, shapes: list[list[int]]) -> float:
    """FLOPs of a product; bytes of exponentials and sums: operands, and the largest as result."""
    kind = KINDS.get(name)
    if kind == "products":
        a, b = shapes[1:3] if name == "addmm" else shapes[:2]
        return 2.0 * prod(a) * b[-1]
    if kind not in STREAMS:
        return 0.0
    sizes = [4 * prod(shape) for shape in shapes if shape]
    return float(sum(sizes) + (0 if name == "sum" else max(sizes, default=0)))


def _bandwidth() -> float:
    """Bytes a second of a scaled copy within a core's cache."""
    held = LOGITS_HELD["cpu"]
    a, b = torch.ones(held), torch.ones(held)
    seconds, _ = best(lambda: [torch.mul(a, 2.0, out=b) for _ in range(50)])
    return 50 * 8 * held / seconds


@contextmanager
def _labelled() -> Iterator[None]:
    """The engine's functions, each under the profiler's label of its phase, all in one thread."""
    with ExitStack() as stack:
        for owner, name, label in PHASES:
            function = getattr(owner, name)

            def labelled(*args: Any, _of: Any = function, _label: str = label) -> Any:
                with torch.profiler.record_function(_label):
                    return _of(*args)

            stack.enter_context(patch.object(owner, name, labelled))
        inline = lambda _, work, items: [work(item) for item in items]  # noqa: E731
        stack.enter_context(patch.object(Backend, "map", inline))
        yield
