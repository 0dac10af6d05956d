"""A machine's rows, threads, precision and memory; products of rounded rows."""

import threading
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from lm.backend import FEWEST, LEAST_HELD, Backend, linear


@pytest.fixture
def three_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_work_is_parted_among_threads_and_comes_back_in_order() -> None:
    machine, met = Backend(), threading.Barrier(3, timeout=20)

    def work(i: int) -> tuple[int, int]:
        if i < 3:
            met.wait()  # three are in here at once, or this breaks
        return i, torch.get_num_threads()

    assert machine.map(work, range(9)) == [(i, 1) for i in range(9)]
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), found) == (3, [3])  # threads that begin later have all cores
    with Backend(deterministic=True).inference():
        assert (torch.get_num_threads(), torch.is_grad_enabled()) == (1, False)
    assert torch.get_num_threads() == 3
    with pytest.raises(ZeroDivisionError):
        machine.map(lambda i: 1 // (i - 2), range(1000))


def test_on_cuda_two_threads_work_ahead_in_order_and_errors_come_in_turn() -> None:
    machine, both = Backend("cuda"), threading.Barrier(2)

    def work(i: int) -> tuple[int, bool]:
        if i < 2:
            both.wait(20)  # each of the first two waits for the other
        if i == 5:
            raise MemoryError("of the sixth")
        return i, torch.is_grad_enabled()

    results = machine.overlapped(work, range(1000))
    assert [next(results) for _ in range(5)] == [(i, False) for i in range(5)]
    with pytest.raises(MemoryError, match="of the sixth"):
        next(results)
    assert list(machine.overlapped(work, range(0))) == []


def test_work_on_cuda_is_at_most_two_items_ahead_and_ends_with_its_caller() -> None:
    begun, before = list[int](), threading.active_count()
    results: Any = Backend("cuda").overlapped(begun.append, range(1000))
    next(results)
    results.close()  # as when memory runs out
    assert max(begun) < 3
    assert threading.active_count() == before
    for machine in (Backend(), Backend("cuda", deterministic=True)):
        begun.clear()
        next(machine.overlapped(begun.append, range(1000)))
        assert begun == [0]  # nothing is done before it is asked for


@pytest.mark.parametrize("kind", ["floats", "tokens"])
def test_what_is_held_is_halved_until_it_fits_and_the_ceiling_is_remembered(kind: str) -> None:
    machine, asked = Backend(), list[int]()
    faults = [
        torch.OutOfMemoryError("none left"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ]

    def work(most: int) -> Any:
        def own(floats: int = 0) -> int:
            asked.append(floats or machine.tokens(1))
            if asked[-1] > most:
                raise faults[len(asked) % 2]
            return asked[-1]

        return own

    attempt = machine.within_memory if kind == "floats" else machine.with_fewer_tokens
    most = 10_000 if kind == "floats" else 1 << 20
    assert attempt(work(most)) == asked[-1] <= most
    assert all(b == a // 2 for a, b in pairwise(asked))
    assert machine.shortages == len(asked) - 1 > 0
    ended = asked[-1]
    assert attempt(work(most)) == asked[-2] == ended
    with pytest.raises(MemoryError, match="out of memory: "):
        attempt(work(-1))
    assert asked[-1] == (FEWEST if kind == "floats" else LEAST_HELD)
    steady = Backend(deterministic=True)  # other blocks give other bits
    again = steady.within_memory if kind == "floats" else steady.with_fewer_tokens
    before = len(asked)
    with pytest.raises(MemoryError):
        again(work(-1))
    assert len(asked) == before + 1


@pytest.mark.parametrize("kind", ["floats", "tokens"])
@pytest.mark.usefixtures("three_threads")
def test_threads_that_run_out_together_halve_what_is_held_once(kind: str) -> None:
    machine, met = Backend(), threading.Barrier(3, timeout=20)
    before = machine.floats if kind == "floats" else machine.tokens(1)

    def work(floats: int = 0) -> int:
        held = floats or machine.tokens(1)
        if held == before:
            met.wait()  # all three have begun with the larger number
            raise torch.OutOfMemoryError("none left")
        return held

    attempt = machine.within_memory if kind == "floats" else machine.with_fewer_tokens
    assert machine.map(lambda _: attempt(work), range(3)) == [before // 2] * 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_precision_holds_for_the_work_alone(dtype: str) -> None:
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before, machine = matmul.fp32_precision, Backend(dtype=dtype)
    with machine.large_products():
        (inside,) = machine.map(lambda _: matmul.fp32_precision, [0])
    assert inside == ("bf16" if dtype == "bfloat16" else "ieee")
    assert matmul.fp32_precision == before


@pytest.mark.parametrize("half", [False, True])
def test_values_and_gradients_are_those_of_the_plain_product(half: bool) -> None:
    torch.manual_seed(0)
    parts, direction = (torch.randn(77, 8), torch.randn(5, 8), torch.randn(5)), torch.randn(77, 5)

    def run(product: Any) -> list[Tensor]:
        own = [part.clone().requires_grad_() for part in parts]
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            y = product(*own)
        assert y.dtype == (torch.bfloat16 if half else torch.float32)
        return [y.float().detach(), *torch.autograd.grad((y.float() * direction).sum(), own)]

    for ours, theirs in zip(run(linear), run(F.linear), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
