"""Processes that train one model together: each reads its share of the streams (`torchrun`).

All have the same weights and make the same updates, of gradients that are added up over the
processes. What only one may do, such as writing files, the first one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from lm.sentences import Rows


@dataclass
class Processes:
    """Processes that work together, or this process alone.

    rank: of this process, from 0 on; number: how many there are. barriers: the group of `wait`, if
    that is not torch's default. Every method but `share` waits for all processes to call it.
    """

    rank: int = 0
    number: int = 1
    barriers: dist.ProcessGroup | None = None

    def add(self, tensor: Tensor) -> None:
        """Replace a dense tensor of several processes by its sum over them."""
        dist.all_reduce(tensor)

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes in their order, pickled where there are several."""
        values: list[Any] = [value] * self.number
        if self.number > 1:
            dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Return when all processes have called this; RuntimeError if another process has ended."""
        if self.number == 1:
            return
        barrier = dist.barrier(self.barriers, async_op=True)
        while not barrier.is_completed():  # inside of torch no signal would be handled
            time.sleep(_POLL_SECONDS)
        barrier.wait()

    def share(self, streams: int) -> slice:
        """The streams that this process reads: every `number`-th."""
        return slice(self.rank, streams, self.number)

    def totals(self, *values: float) -> list[float]:
        """Sums of numbers over the processes."""
        return [sum(column) for column in zip(*self.gather(values), strict=True)]

    def first(self, value: float) -> float:
        """The first process's value."""
        return float(self.gather(value)[0])

    def any(self, flag: bool) -> bool:
        """Whether the flag holds in any process."""
        return any(self.gather(flag))

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of parameters, those of sparse ones as dense tensors."""
        if self.number == 1:
            return
        trained = list(parameters)
        used = zip(*self.gather([p.grad is not None for p in trained]), strict=True)
        for parameter, flags in zip(trained, used, strict=True):
            if any(flags):
                gradient = parameter.grad
                gradient = torch.zeros_like(parameter) if gradient is None else gradient.detach()
                dense = gradient.to_dense() if gradient.is_sparse else gradient.contiguous()
                self.add(dense)
                parameter.grad = dense

    def gather_rows(self, rows: Rows, streams: int) -> Rows:
        """Rows of all streams, on the CPU, of which each process has those of its share."""
        if self.number == 1:
            return rows
        whole = Rows.cat(self.gather(rows.to(torch.device("cpu"))))
        at = [s for rank in range(self.number) for s in range(rank, streams, self.number)]
        return whole.take(torch.tensor(at).argsort())


ALONE = Processes()
_POLL_SECONDS = 0.05


@contextmanager
def joined(device: torch.device, patience: timedelta | None = None) -> Iterator[Processes]:
    """The processes of this run: those of `torchrun`, if it has started this process.

    patience: how long `Processes.wait` waits; all else waits as long as torch's defaults say.
    """
    if not dist.is_torchelastic_launched():
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        barriers = None if patience is None else dist.new_group(timeout=patience)
        yield Processes(dist.get_rank(), dist.get_world_size(), barriers)
    finally:
        dist.destroy_process_group()
