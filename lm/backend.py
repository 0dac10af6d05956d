"""The compute backend: device, precision and shapes of large products, cores and memory.

On a CPU work is divided into pieces that do not depend on the number of threads, and each
piece is done by one thread: a result has the same bits for any number of threads.

oneDNN compiles a kernel for each shape of a bfloat16 product on a CPU, which takes several times
as long as the product of a training batch. With rows rounded up, few shapes occur, and their
kernels stay in its cache. Products in float32 have no such cost and are left as they are.
"""

from __future__ import annotations

import math
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

ROWS = 128  # sizes are rounded up to a multiple
Item = TypeVar("Item")
Result = TypeVar("Result")
# logits held at once: on a CPU those that fit in a core's cache, 2 MiB; CUDA's go by free memory
LOGITS_HELD = {"cpu": 1 << 19, "mps": 1 << 24}
FEWEST = 1 << 12  # logits held at once, at least
DTYPES = ("float32", "tf32", "bfloat16")
# floats of hidden states that a thread holds at once, counted without shared prefixes
HELD = {"cpu": 1 << 25, "cuda": 1 << 28, "mps": 1 << 25}
LEAST_HELD = 1 << 18
_SHORT = "out of memory"
# of the CPU's allocator and of C++, of CUDA beside the caching allocator, of cuBLAS and cuDNN, of
# Metal
_SHORT_OF_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|std::bad_alloc|CUDA\]? ?(error)?: out of memory|"
    "ALLOC_FAILED|MPS backend out of memory"
)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear` of x (N, D), under autocast with rounded N."""
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return F.linear(padded(x), weight, bias)[: len(x)]
    return F.linear(x, weight, bias)


def column_multiple(device: torch.device) -> int:
    """Multiple of columns: tensor cores read rows from multiples of 16 bytes."""
    return 8 if device.type == "cuda" else 1


def padded(x: Tensor) -> Tensor:
    """Rows x (N, …) with rows of zeros behind it, as many as make N a multiple of `ROWS`."""
    missing = -len(x) % ROWS
    return F.pad(x, (0, 0) * (x.ndim - 1) + (0, missing)) if missing else x


def on_device(
    columns: Sequence[NDArray[np.int64]], device: torch.device | None
) -> tuple[Tensor, ...]:
    """Columns of whole numbers on a device.

    On CUDA by a single copy, for which the processor does not wait: a copy of each column would
    stop the device's queue as often, in every batch of training and at every sentence of a beam.
    """
    tensors = [torch.from_numpy(column) for column in columns]
    if device is None or device.type != "cuda":
        return tuple(tensor.to(device) for tensor in tensors)
    together = torch.cat(tensors).to(device, non_blocking=True)  # the copy has left when it returns
    return torch.split(together, [len(tensor) for tensor in tensors])


def fast_bfloat16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32: by instructions for matrices.

    AVX512_BF16 has none: there `attention` is 1.2 to 1.4 times as fast in large updates, `rnnlm`
    and `codclm` of 256 hidden units 0.98 to 1.3 times, and those of 64 units 0.8 times.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    return device.type == "cpu" and bool(torch.cpu._is_amx_tile_supported())


@contextmanager
def cuda_products(device: torch.device, *, tf32: bool) -> Iterator[None]:
    """Have CUDA's products of float32 computed as TF32, or in full, in the whole process."""
    if device.type != "cuda":
        yield
        return
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32" if tf32 else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before


class WithoutMemory(TorchFunctionMode):
    """Context manager in which new tensors are on the device `meta`.

    `with torch.device("meta")` would do it too, but `normal_`, which nn.Embedding calls, then
    imports for 3 s.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func in (Tensor.normal_, nn.init.normal_):
            return args[0] if args else named["tensor"]
        if func in _FACTORIES:
            named["device"] = "meta"
        return func(*args, **named)


_FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}


class Backend:
    """A device, and how it computes.

    dtype: `float32`; `tf32`, which on CUDA rounds the operands of all products to 10 bits and on a
    CPU is float32; or `bfloat16` for the operands of large products, beside which others are as by
    `tf32` (results and sums stay float32). deterministic: a result does not depend on what else
    is in the batch, and the number of threads is fixed. shortages: how often memory ran out so far,
    each time with smaller batches from then on.
    """

    def __init__(
        self,
        device: torch.device | str = "cpu",
        *,
        dtype: str = "float32",
        deterministic: bool = False,
    ) -> None:
        if dtype not in DTYPES:
            raise ValueError(f"expected float32, tf32 or bfloat16, found {dtype}")
        self.device = torch.device(device)
        self.dtype, self.deterministic = dtype, deterministic
        self._threads = torch.get_num_threads()
        self._held = HELD[self.device.type]
        self.shortages = 0
        self._buffers = threading.local()

    # Memory

    @cached_property
    def floats(self) -> int:
        """Number of logits that a thread holds at once; smaller after memory ran out."""
        if self.device.type != "cuda":
            return LOGITS_HELD[self.device.type]
        if self.deterministic:  # free memory differs from run to run
            return 1 << 28
        free, _ = torch.cuda.mem_get_info(self.device)
        free += torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return max(FEWEST, free // 16)

    def tokens(self, hidden: int) -> int:
        """Number of tokens whose states a thread holds at once; smaller after memory ran out."""
        return self._held // hidden

    def within_memory(self, work: Callable[[int], Result]) -> Result:
        """`work(floats)`, repeated with half the floats while memory runs out.

        Later calls begin with the smaller number; threads that run out together halve it once.
        MemoryError if even the fewest floats do not fit, or if `deterministic`, since other blocks
        give other bits.
        """
        return self._halving("floats", FEWEST, work)

    def with_fewer_tokens(self, work: Callable[[], Result]) -> Result:
        """`work()`, repeated with half the tokens held at once; else as `within_memory`."""
        return self._halving("_held", LEAST_HELD, lambda _: work())

    def _halving(self, size: str, least: int, work: Callable[[int], Result]) -> Result:
        """`work` of the attribute `size`, which is halved while memory runs out."""
        while True:
            tried = getattr(self, size)
            try:
                with _memory_errors():
                    return work(tried)
            except MemoryError:
                if tried <= least or self.deterministic:
                    raise
            # outside the handler, whose traceback holds tensors
            setattr(self, size, min(getattr(self, size), max(least, tried // 2)))
            self.shortages += 1
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def buffer(self, like: Tensor, words: int) -> Tensor:
        """A (rows, words) tensor for products of `like` (rows, …), which the thread reuses."""
        floats = len(like) * words
        held: Tensor | None = getattr(self._buffers, "held", None)
        if held is None or held.numel() < floats or held.dtype != like.dtype:
            self._buffers.held = held = None
            held = torch.empty(floats, dtype=like.dtype, device=self.device)
            self._buffers.held = held
        return held[:floats].view(len(like), words)

    # Cores

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Results of `work` for each item, in order; several threads on a CPU."""
        if self.device.type != "cpu":
            return [work(item) for item in items]

        # gradients are switched off for each thread
        waiting = [self._pool.submit(torch.no_grad()(work), item) for item in items]
        try:
            return [future.result() for future in waiting]
        finally:
            for future in waiting:
                future.cancel()
            torch.set_num_threads(torch.get_num_threads())  # undo the pool's setting

    def overlapped(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for each item, in order, computed without gradients.

        On CUDA two threads compute the next results meanwhile, so that the device has work while a
        thread waits for it; at most three results are held. A deterministic backend computes
        singly, as it cannot do with less memory than the first attempt takes.
        """
        if self.device.type != "cuda" or self.deterministic:
            yield from map(torch.no_grad()(work), items)
            return
        on_current = None  # "cuda" without a number is a thread's own device
        if torch.cuda.is_available():
            on_current = partial(torch.cuda.set_device, torch.cuda.current_device())
        pool = ThreadPoolExecutor(2, "overlapped", initializer=on_current)
        waiting = deque[Future[Result]]()
        try:
            for item in items:
                waiting.append(pool.submit(torch.no_grad()(work), item))
                if len(waiting) == 3:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def pieces(self, rows: Tensor, most: int) -> tuple[Tensor, ...]:
        """Pieces of at most `most` rows (a multiple of 64); on a CPU four, eight, …."""
        if self.device.type != "cpu":
            return torch.split(rows, most)
        number = 4 * math.ceil(len(rows) / (4 * most))
        size = math.ceil(len(rows) / max(1, number) / self.row_multiple) * self.row_multiple
        return torch.split(rows, max(128, size))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        single = partial(torch.set_num_threads, 1)
        return ThreadPoolExecutor(self._threads, "scoring", initializer=single)

    @contextmanager
    def inference(self) -> Iterator[None]:
        """No gradients and, if `deterministic`, one thread for work that `map` does not split."""
        threads = torch.get_num_threads()
        try:
            if self.deterministic:
                torch.set_num_threads(1)
            with torch.no_grad(), cuda_products(self.device, tf32=self.dtype != "float32"):
                yield
        finally:
            if self.deterministic:
                torch.set_num_threads(threads)

    # Precision

    @contextmanager
    def large_products(self) -> Iterator[None]:
        """Run the CPU's matrix products, in all threads, in this backend's precision.

        On another device nothing changes: torch keeps the setting for all threads, and two that
        work at once would leave it as either had it.
        """
        if self.device.type != "cpu":
            yield
            return
        matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
        before = matmul.fp32_precision
        matmul.fp32_precision = "bf16" if self.dtype == "bfloat16" else "ieee"
        try:
            yield
        finally:
            matmul.fp32_precision = before

    @property
    def row_multiple(self) -> int:
        """Multiple that numbers of rows are rounded up to: oneDNN compiles a kernel a shape."""
        return 64 if self.dtype == "bfloat16" and self.device.type == "cpu" else 1

    def operand(self, matrix: Tensor) -> Tensor:
        """A matrix as `product` expects it: in bfloat16 on CUDA, if that is the precision."""
        if self.dtype == "bfloat16" and self.device.type == "cuda":
            return matrix.bfloat16()
        return matrix

    def product(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Product of two operands in float32, written to `out` if that is given."""
        if torch.bfloat16 in (a.dtype, b.dtype):
            a, b = a.bfloat16(), b.bfloat16()
            return torch.mm(a, b, out_dtype=torch.float32, out=out)
        return torch.mm(a, b, out=out)

    def add_product(self, total: Tensor, a: Tensor, b: Tensor) -> None:
        """Add the product of two operands to `total`, in float32."""
        if torch.bfloat16 in (a.dtype, b.dtype):
            total += self.product(a, b)
        else:
            total.addmm_(a, b)

    @property
    def tolerance(self) -> float:
        """Nats that rounding may lift a word's log-probability above 0."""
        return 0.2 if self.dtype == "bfloat16" else 1e-3


@contextmanager
def _memory_errors() -> Iterator[None]:
    """Turn out-of-memory errors of torch and of Python into MemoryErrors that say so."""
    try:
        yield
    except (MemoryError, RuntimeError) as fault:
        short = isinstance(fault, MemoryError | torch.OutOfMemoryError)
        if not (short or _SHORT_OF_MEMORY.search(str(fault))):
            raise
        cause = str(fault).removeprefix(_SHORT).lstrip(": ").split("\n")[0]
        raise MemoryError(f"{_SHORT}: {cause}" if cause else _SHORT) from None
