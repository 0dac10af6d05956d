"""A machine's rows, threads, precision and memory."""

import threading
from itertools import pairwise
from typing import Any

import pytest
import torch

from lm.backend import LEAST_HELD, Backend


def test_work_is_parted_among_threads_and_comes_back_in_order() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        machine, met = Backend(), threading.Barrier(3, timeout=20)

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
        Backend().map(work, range(1000))


def test_floats_are_halved_until_they_fit_and_the_ceiling_is_remembered() -> None:
    machine = Backend()
    asked: list[int] = []

    def work(floats: int) -> int:
        asked.append(floats)
        if floats > 10_000:
            raise torch.OutOfMemoryError("none left")
        return floats

    assert machine.within_memory(work) == asked[-1] <= 10_000
    assert all(b == a // 2 for a, b in pairwise(asked))
    asked.clear()
    machine.within_memory(work)
    assert len(asked) == 1


def test_what_never_fits_is_a_memory_error_and_other_faults_pass() -> None:
    def never(floats: int) -> int:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(MemoryError, match="out of memory: DefaultCPUAllocator"):
        Backend().within_memory(never)
    with pytest.raises(MemoryError):
        Backend(deterministic=True).within_memory(never)

    def broken(floats: int) -> int:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        Backend().within_memory(broken)


def test_tokens_are_halved_until_the_work_fits_and_that_is_remembered() -> None:
    machine, asked = Backend(), []

    def work() -> int:
        asked.append(machine.tokens(256))
        if asked[-1] > 20_000:
            raise torch.OutOfMemoryError("none left")
        return asked[-1]

    assert machine.with_fewer_tokens(work) == asked[-1] <= 20_000
    assert all(b == a // 2 for a, b in pairwise(asked))
    assert machine.with_fewer_tokens(work) == asked[-1] == asked[-2]

    def never() -> None:
        asked.append(machine.tokens(1))
        raise torch.OutOfMemoryError("none left")

    with pytest.raises(MemoryError, match="none left"):
        machine.with_fewer_tokens(never)
    assert asked[-1] == LEAST_HELD


def test_threads_that_begin_after_the_work_have_all_cores() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        Backend().map(lambda i: i, range(3))
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert found == [3]
    finally:
        torch.set_num_threads(before)


def test_a_buffer_is_kept_by_its_thread_and_shared_with_no_other() -> None:
    machine = Backend()
    four, two = torch.zeros(4, 1), torch.zeros(2, 1)
    first = machine.buffer(four, 8)
    assert machine.buffer(two, 8).data_ptr() == first.data_ptr()
    assert machine.buffer(four, 8).shape == (4, 8)
    assert machine.buffer(four.double(), 8).dtype == torch.float64
    first = machine.buffer(four, 8)
    (other,) = machine.map(lambda _: machine.buffer(four, 8).data_ptr(), [0])
    assert other != first.data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_precision_holds_for_the_work_alone(dtype: str) -> None:
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    machine = Backend(dtype=dtype)
    with machine.large_products():
        (inside,) = machine.map(lambda _: matmul.fp32_precision, [0])
    assert inside == ("bf16" if dtype == "bfloat16" else "ieee")
    assert matmul.fp32_precision == before


def test_deterministic_work_that_is_not_parted_has_one_thread() -> None:
    before = torch.get_num_threads()
    with Backend(deterministic=True).inference():
        assert torch.get_num_threads() == 1
        assert not torch.is_grad_enabled()
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("n", [1, 127, 129, 600, 2049, 5000])
def test_pieces_are_all_rows_in_order_and_their_number_suits_one_two_or_four_threads(
    n: int,
) -> None:
    rows = torch.arange(n)
    pieces = Backend().pieces(rows, 512)
    assert torch.equal(torch.cat(pieces), rows)
    assert max(map(len, pieces)) <= 512
    assert len(pieces) % 4 == 0 or all(len(piece) == 128 for piece in pieces[:-1])


def test_a_product_is_added_to_what_was_there() -> None:
    a, b, total = torch.randn(5, 7), torch.randn(7, 3), torch.randn(5, 3)
    expected = total.double() + a.double() @ b.double()
    Backend().add_product(total, a, b)
    torch.testing.assert_close(total.double(), expected, atol=1e-5, rtol=1e-5)


def test_unknown_precisions_are_refused() -> None:
    with pytest.raises(ValueError, match="float16"):
        Backend(dtype="float16")
