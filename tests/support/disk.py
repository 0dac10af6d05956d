"""A disk on which one system call fails."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest

import lm.shards
from rerank.files import outputs


class Disk:
    """From now on the n-th call that writes fails with a number of `errno`; failed: whether it has.

    The calls are those of the two modules that write files: to open a file for writing, to write,
    to sync and to rename.
    """

    def __init__(self, patch: pytest.MonkeyPatch, number: int, n: int) -> None:
        self.failed = False
        self._number, self._n, self._calls = number, n, itertools.count(1)
        disk = self

        class File(io.FileIO):
            def write(self, data: Any, /) -> int:
                disk._call()
                return super().write(data)

        def opened(path: Any, mode: str = "r", buffering: int = -1, **options: Any) -> Any:
            if not set(mode) & set("wxa"):
                return open(path, mode, buffering, **options)
            disk._call()
            raw = File(path, mode.replace("b", ""))
            return raw if buffering == 0 else io.BufferedWriter(raw)

        for module in (outputs, lm.shards):
            patch.setattr(module, "open", opened, raising=False)
        for name in ("fsync", "replace"):
            patch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, function: Callable[..., None]) -> Callable[..., None]:
        def called(*arguments: Any) -> None:
            self._call()
            function(*arguments)

        return called

    def _call(self) -> None:
        if next(self._calls) == self._n:
            self.failed = True
            raise OSError(self._number, os.strerror(self._number))
