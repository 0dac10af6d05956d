"""Where tensors live: what is chosen, and what is refused with a cure."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from rerank.errors import UsageError
from rerank.pipeline import devices
from rerank.pipeline.devices import (
    choose_device,
    choose_precision,
    cores,
    memory_bytes,
    use_cores,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def machine(patch: pytest.MonkeyPatch, cuda_devices: int) -> None:
    """Lets torch see so many CUDA devices."""
    patch.setattr(torch.cuda, "is_available", lambda: cuda_devices > 0)
    patch.setattr(torch.cuda, "device_count", lambda: cuda_devices)


@pytest.mark.parametrize(("cuda_devices", "kind"), [(0, "cpu"), (1, "cuda")])
def test_auto_is_cuda_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, cuda_devices: int, kind: str
) -> None:
    machine(monkeypatch, cuda_devices)
    assert choose_device("auto").type == kind


def test_a_device_is_what_its_name_says(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 2)
    names = ("cpu", "cuda", "cuda:0", "cuda:1")
    assert [choose_device(name) for name in names] == [torch.device(name) for name in names]


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "mps", "meta", "cpu:1", "cuda:-1", "cuda:x"])
def test_a_name_of_no_device_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine(monkeypatch, 2)
    with pytest.raises(UsageError, match="expected auto, cpu, cuda or cuda:N"):
        choose_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_cuda_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine(monkeypatch, 0)
    with pytest.raises(UsageError, match=rf"--device {name}: no CUDA device .* use --device cpu"):
        choose_device(name)


def test_a_cuda_device_beyond_the_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 2)
    with pytest.raises(UsageError, match="--device cuda:2: there are 2 CUDA devices"):
        choose_device("cuda:2")


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_a_precision_asked_for_is_taken(device: torch.device, name: str) -> None:
    assert choose_precision(name, device) == name


@pytest.mark.parametrize(("fast", "name"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_bfloat16_where_the_hardware_multiplies_it_faster(
    monkeypatch: pytest.MonkeyPatch, fast: bool, name: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: fast)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: not fast)
    assert choose_precision("auto", CUDA) == name
    assert choose_precision("auto", CPU) != name


def test_auto_asks_only_what_this_torch_can_answer() -> None:
    assert choose_precision("auto", CPU) in ("float32", "bfloat16")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Eight cores, and no choice by the environment."""
    monkeypatch.setattr(devices, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    yield monkeypatch
    torch.set_num_threads(before)


def found(parameters: Sequence[int], threads: int | None = None) -> int:
    """Threads after a device was chosen and models of these sizes were opened."""
    choose_device("cpu", threads)
    for number in parameters:
        use_cores(number, threads)
    return torch.get_num_threads()


def test_large_models_have_more_threads_up_to_the_cores(threads: pytest.MonkeyPatch) -> None:
    assert [found([n]) for n in (0, 199_999, 200_000, 700_000, 10**9)] == [1, 1, 2, 4, 8]
    assert found([700_000, 1000]) == 4  # the largest decides


def test_threads_asked_for_are_obeyed(threads: pytest.MonkeyPatch) -> None:
    assert [found([10**9], n) for n in (1, 3)] == [1, 3]
    threads.setenv("OMP_NUM_THREADS", "5")
    assert found([1000]) == found([10**9]) == 3  # torch has read the variable, and stays at it
    assert found([10**9], 2) == 2


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs Linux")
def test_the_memory_of_the_machine_is_that_which_the_kernel_states() -> None:
    (kib,) = re.findall(r"MemTotal: +(\d+) kB", Path("/proc/meminfo").read_text())
    assert memory_bytes(CPU) == pytest.approx(1024 * int(kib), rel=0.01)


def test_the_memory_of_a_gpu_is_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1, 80))
    assert memory_bytes(CUDA) == 80


@pytest.fixture
def of_four(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The last of four processes that `torchrun` has started on this machine."""
    before = torch.get_num_threads()
    variables = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("cores", "found"), [(13, 3), (2, 1)])
def test_processes_of_one_machine_share_its_cores(
    of_four: None, monkeypatch: pytest.MonkeyPatch, cores: int, found: int
) -> None:
    monkeypatch.setattr(devices, "cores", lambda: cores)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # by torchrun
    choose_device("cpu")
    use_cores(10**9, None)
    assert torch.get_num_threads() == found


def test_a_process_may_run_on_one_core_at_least() -> None:
    assert cores() >= 1


def test_processes_of_one_machine_take_its_devices_in_turn(
    of_four: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, 2)
    assert [choose_device(name) for name in ("auto", "cuda", "cuda:0", "cpu")] == [
        torch.device(name) for name in ("cuda:1", "cuda:1", "cuda:0", "cpu")
    ]
