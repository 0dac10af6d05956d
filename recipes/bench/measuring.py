"""Seconds, memory, the machine's peak, and where the time goes."""

from __future__ import annotations

import multiprocessing
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

import numpy as np
import torch
from lists import Set
from numpy.typing import NDArray
from tasks import TASKS

from lm.model import Config, DocumentLM
from lm.scoring import ScoringEngine

Result = TypeVar("Result")
RUNS, ENOUGH = 3, 20.0  # best of so many runs; none begins after so many seconds
PRODUCTS = {f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "exp", "exp_")}
SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (2048, 256, 20_000))


def synchronise() -> None:
    """Wait for what a CUDA device still does."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def best(run: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of the fastest of three runs (fewer where they are long), and its result.

    Those of the process's CPU time where it has one thread, which other programs slow down less.
    """
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_initialized()
    clock = process_time if alone else perf_counter
    fastest, began = float("inf"), clock()
    for i in range(RUNS):
        if i and clock() - began > ENOUGH:
            break
        start = clock()
        result = run()
        synchronise()
        fastest = min(fastest, clock() - start)
    return fastest, result


def matmul_peak(
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    shapes: Sequence[tuple[int, int, int]] = SHAPES,
) -> float:
    """FLOP/s of the fastest product of several shapes, with the threads that are set."""
    rates = []
    for m, k, n in shapes:
        a, b = (torch.randn(x, y, device=device, dtype=dtype) for x, y in ((m, k), (k, n)))
        out = torch.mm(a, b)
        seconds, _ = best(lambda a=a, b=b, out=out: torch.mm(a, b, out=out))  # type: ignore[misc]
        rates.append(2 * m * k * n / seconds)
    return max(rates)


def peak_memory(model: DocumentLM, data: Set) -> int | None:
    """Bytes at the highest beyond model and lists while ours scores; None where unknown.

    CUDA: of PyTorch's allocator. CPU: resident memory of a fresh process, threads as here.
    """
    device = model.embedding.weight.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        TASKS[model.config.model].ours(ScoringEngine.of(model), data)
        return torch.cuda.max_memory_allocated(device) - before
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_resident, model.config, weights, data, torch.get_num_threads()).result()


def _resident(
    config: Config, weights: dict[str, NDArray[Any]], data: Set, threads: int
) -> int | None:
    """Resident bytes in this process; a tiny model first loads libraries and compiled code."""
    torch.set_num_threads(threads)
    model = DocumentLM(config)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    ours = TASKS[config.model].ours
    source = None if config.source_words is None else 8
    small = DocumentLM(Config(config.model, 8, 4, 4, tied=config.tied, source_words=source))
    lists = [[[3, 4], [3]], [[5], [6, 7]]]
    ours(ScoringEngine.of(small), Set("", lists, [True, False], [[3], [4, 5]]))
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
        before = _status("VmRSS")
        ours(ScoringEngine.of(model), data)
        return _status("VmHWM") - before
    except OSError:  # no Linux
        return None


def _status(field: str) -> int:
    """Bytes of a line of the kernel's account of this process."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) * 1024


def products_share(model: DocumentLM, data: Set) -> float:
    """Share of ours' time in matrix products and exponentials.

    CPU: on one thread, self time of these kernels over wall time, both under the profiler.
    """
    cuda = model.embedding.weight.is_cuda
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        scorer, ours = ScoringEngine.of(model), TASKS[model.config.model].ours
        ours(scorer, data)
        activities = [torch.profiler.ProfilerActivity.CPU]
        activities += [torch.profiler.ProfilerActivity.CUDA] if cuda else []
        everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        with torch.profiler.profile(activities=activities, experimental_config=everywhere) as seen:
            start = perf_counter()
            ours(scorer, data)
            synchronise()
            seconds = perf_counter() - start
    finally:
        torch.set_num_threads(threads)
    events = [event for event in seen.key_averages() if event.key in PRODUCTS]
    spent = (e.self_device_time_total if cuda else e.self_cpu_time_total for e in events)
    return float(sum(spent)) / 1e6 / seconds


def difference(ours: list[NDArray[Any]], script: list[NDArray[Any]]) -> float:
    """Largest absolute difference in nats, over the contexts that the script has scored."""
    both = zip(ours, script, strict=True)
    return max(float(np.abs(a[: len(b)] - b).max()) for a, b in both)


def machine(device: torch.device) -> str:
    """What the figures were measured on."""
    name = platform.machine()
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    elif Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = f"{names[0]}, {len(names)} logical CPUs" if names else name
    return f"{name}; {torch.get_num_threads()} threads; torch {torch.__version__}"
