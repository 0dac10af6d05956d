"""Processes that train one model together: each reads its share of the streams (`torchrun`).

All have the same weights and make the same updates, of gradients that are added up over the
processes. What only one may do, such as writing files, the first one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from lm.sentences import Rows


class Processes:
    """A process alone; base of several that work together.

    rank: which of them this is, from 0 on; number: how many there are. Every method but `share`
    waits for all processes to call it.
    """

    rank = 0
    number = 1

    def add(self, tensor: Tensor) -> None:
        """Replace a dense tensor by its sum over the processes."""

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes in their order."""
        return [value]

    def wait(self) -> None:
        """Return when all processes have called this; signals are handled meanwhile.

        RuntimeError if another process has ended.
        """

    def share(self, streams: int) -> slice:
        """The streams that this process reads: every `number`-th one."""
        return slice(self.rank, streams, self.number)

    def totals(self, *values: float) -> list[float]:
        """Sums of numbers over the processes."""
        if self.number == 1:
            return list(values)
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
        found = zip(*self.gather([p.grad is not None for p in trained]), strict=True)
        for parameter, flags in zip(trained, found, strict=True):
            if any(flags):
                own = parameter.grad
                own = torch.zeros_like(parameter) if own is None else own.detach()
                parameter.grad = own.to_dense() if own.is_sparse else own.contiguous()
                self.add(parameter.grad)

    def gather_rows(self, rows: Rows, streams: int) -> Rows:
        """Rows of all streams, on the CPU, of which each process has those of its share."""
        if self.number == 1:
            return rows
        whole = Rows.cat(self.gather(rows.to(torch.device("cpu"))))
        at = [s for rank in range(self.number) for s in range(rank, streams, self.number)]
        return whole.take(torch.tensor(at).argsort())


class TorchrunProcesses(Processes):
    """Processes that `torchrun` has started, after torch's process group is there.

    patience: how long `wait` waits.
    """

    def __init__(self, patience: timedelta | None = None) -> None:
        self.rank, self.number = dist.get_rank(), dist.get_world_size()
        self._waiting = None if patience is None else dist.new_group(timeout=patience)

    def add(self, tensor: Tensor) -> None:
        """Sum by all-reduce."""
        dist.all_reduce(tensor)

    def wait(self) -> None:
        """Barrier, polled: inside of torch no signal would be handled."""
        barrier = dist.barrier(self._waiting, async_op=True)
        while not barrier.is_completed():
            time.sleep(_POLL_SECONDS)
        barrier.wait()

    def gather(self, value: Any) -> list[Any]:
        """All-gather of pickled values."""
        found: list[Any] = [None] * self.number
        dist.all_gather_object(found, value)
        return found


ALONE = Processes()
_POLL_SECONDS = 0.05


@contextmanager
def joined(device: torch.device, patience: timedelta | None = None) -> Iterator[Processes]:
    """The processes of this run: those of `torchrun`, if it has started this one.

    patience: how long `Processes.wait` waits; all else waits as long as torch's defaults say.
    """
    if not dist.is_torchelastic_launched():
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield TorchrunProcesses(patience)
    finally:
        dist.destroy_process_group()
