"""The device that tests marked `gpu` compare with the CPU.

`pytest -m gpu` takes CUDA; RERANK_TEST_DEVICE=cpu takes the CPU on both sides, to try the tests.
"""

import os
from typing import Any

import pytest
import torch

DEVICE = os.environ.get("RERANK_TEST_DEVICE", "cuda")
NEEDED = "needs a CUDA device (RERANK_TEST_DEVICE=cpu: the CPU on both sides)"
missing = DEVICE.startswith("cuda") and not torch.cuda.is_available()
on_device: list[Any] = [pytest.mark.gpu, *([pytest.mark.skip(reason=NEEDED)] if missing else [])]
"""Marks of a module of such tests: `pytestmark = on_device`."""


def without_tf32() -> None:
    """Products and convolutions of float32 in full precision, also on the device."""
    backends: Any = torch.backends
    backends.cuda.matmul.fp32_precision = "ieee"
    backends.cudnn.conv.fp32_precision = "ieee"
