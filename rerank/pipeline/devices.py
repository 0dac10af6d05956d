"""Device and precision of language models; both are announced."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.torchrun import local_number, local_processes

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"cpu|cuda(:[0-9]{1,2})?")


def choose_device(name: str, threads: int | None = None) -> torch.device:
    """The device called `name`; `auto` is CUDA where there is one, else the CPU.

    Processes of `torchrun` on one machine take its CUDA devices in turn, unless one is named.
    threads: of the process for tensors on the CPU, from now on; None leaves them as they are, but
    gives processes of `torchrun` on one machine equal shares of its cores.
    """
    import torch

    if threads is None and local_processes() > 1:
        threads = fair_threads(cores(), local_processes(), os.environ.get("OMP_NUM_THREADS"))
    if threads is not None:
        torch.set_num_threads(threads)
    if name in ("auto", "cuda") and local_processes() > 1 and torch.cuda.is_available():
        return torch.device("cuda", local_number() % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"--device {name}: no CUDA device is usable here; use --device cpu, or install a "
            "CUDA build of torch and check nvidia-smi"
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"--device {name}: there are {torch.cuda.device_count()} CUDA devices here, counted "
            "from 0"
        )
    return device


def cores() -> int:
    """CPU cores that this process may run on, as Slurm, containers or taskset leave them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def fair_threads(cores: int, processes: int, chosen: str | None) -> int | None:
    """Threads of each of several processes on one machine; None if the user has chosen them.

    chosen: OMP_NUM_THREADS, which `torchrun` sets to 1 where the user has set nothing.
    """
    return max(1, cores // processes) if chosen in (None, "1") else None


def memory_bytes(device: torch.device) -> int:
    """Memory of a device; `sys.maxsize` where the system does not say."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def choose_precision(name: str, device: torch.device) -> str:
    """`float32` or `bfloat16`; `auto` is bfloat16 where the hardware multiplies it faster."""
    from lm.products import fast_bfloat16

    if name != "auto":
        return name
    return "bfloat16" if fast_bfloat16(device) else "float32"
