"""A machine's rows, threads, precision and memory."""

import threading
from itertools import pairwise
from typing import Any

import pytest
import torch

from lm.machine import FEWEST_ROWS, Machine


def test_rows_shrink_with_the_vocabulary_and_have_a_least_number() -> None:
    machine = Machine()
    assert machine.rows(1_000) > 9 * machine.rows(10_000) > 0
    assert machine.rows(10**9) == FEWEST_ROWS


def test_work_is_parted_among_threads_and_comes_back_in_order() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        machine, met = Machine(), threading.Barrier(3, timeout=20)

        def work(i: int) -> tuple[int, int]:
            if i < 3:
                met.wait()  # three are in here at once, or this breaks
            return i, torch.get_num_threads()

        assert machine.map(work, range(9)) == [(i, 1) for i in range(9)]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_fault_in_one_item_is_the_callers() -> None:
    def work(i: int) -> int:
        if i == 2:
            raise KeyError(i)
        return i

    with pytest.raises(KeyError):
        Machine().map(work, range(1000))


def test_rows_are_halved_until_they_fit_and_the_ceiling_is_remembered() -> None:
    machine = Machine()
    asked: list[int] = []

    def work(rows: int) -> int:
        asked.append(rows)
        if rows > 40:
            raise torch.OutOfMemoryError("none left")
        return rows

    assert machine.within_memory(work, 10_000) == asked[-1] <= 40
    assert all(b == max(16, a // 2) for a, b in pairwise(asked))
    asked.clear()
    machine.within_memory(work, 10_000)
    assert len(asked) == 1


def test_what_never_fits_is_a_memory_error_and_other_faults_pass() -> None:
    def never(rows: int) -> int:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(MemoryError, match="16 rows of 500 logits"):
        Machine().within_memory(never, 500)
    with pytest.raises(MemoryError):
        Machine(deterministic=True).within_memory(never, 500)

    def broken(rows: int) -> int:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        Machine().within_memory(broken, 500)


def test_a_buffer_is_kept_by_its_thread_and_shared_with_no_other() -> None:
    machine = Machine()
    first = machine.buffer(4, 8)
    assert machine.buffer(2, 8).data_ptr() == first.data_ptr()
    assert machine.buffer(4, 8).shape == (4, 8)
    (other,) = machine.map(lambda _: machine.buffer(4, 8).data_ptr(), [0])
    assert other != first.data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_precision_holds_for_the_work_alone(dtype: str) -> None:
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    machine = Machine(dtype=dtype)
    (inside,) = machine.map(lambda _: matmul.fp32_precision, [0])
    assert inside == ("bf16" if dtype == "bfloat16" else "ieee")
    assert matmul.fp32_precision == before


def test_deterministic_work_that_is_not_parted_has_one_thread() -> None:
    before = torch.get_num_threads()
    with Machine(deterministic=True).at_work():
        assert torch.get_num_threads() == 1
        assert not torch.is_grad_enabled()
    assert torch.get_num_threads() == before


def test_unknown_precisions_are_refused() -> None:
    with pytest.raises(ValueError, match="float16"):
        Machine(dtype="float16")
