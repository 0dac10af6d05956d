"""Several processes make the updates of one."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training import VALID, VOCABULARY, figures, text
from torch import Tensor, nn

from lm.model import Config, DocumentLM
from lm.rows import Rows
from lm.training.processes import ALONE, Processes
from lm.training.state import load_training, save_training
from lm.training.trainer import Settings, Trainer

SETTINGS = Settings(
    epochs=1,
    streams=3,
    segment=2,
    dropout=0.0,
    context_dropout=0.0,
    negatives=0,
    validations=2,
)
SEEDING = threading.Lock()  # torch's generator is one for all threads
MANY = text(13, 0)  # so many that three of them are read side by side


class Threads(Processes):
    """Threads of one process as processes: what they add and gather goes through a list."""

    def __init__(self, rank: int, values: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.number = rank, len(values)
        self.values, self.barrier = values, barrier

    def gather(self, value: Any) -> list[Any]:
        self.values[self.rank] = value
        self.barrier.wait(60)
        found = list(self.values)
        self.barrier.wait(60)
        return found

    def add(self, tensor: Tensor) -> None:
        tensor.copy_(sum(self.gather(tensor.clone())))


def together(number: int, work: Callable[[Processes], Any]) -> list[Any]:
    """What every one of so many processes returns."""
    results: list[Any] = [None] * number
    values, barrier = [None] * number, threading.Barrier(number)

    def run(rank: int) -> None:
        results[rank] = work(Threads(rank, values, barrier))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def trainer_of(name: str, processes: Processes, **changes: Any) -> Trainer:
    config = Config(name, len(VOCABULARY), 4, 5, tied=False)
    with SEEDING:
        model = DocumentLM.seeded(config, 5)
    settings = replace(SETTINGS, **changes)
    return Trainer(model, MANY, VALID, settings=settings, processes=processes)


def trained(trainer: Trainer) -> tuple[dict[str, Tensor], list[Any]]:
    reports = [figures(report) for report in trainer.run() if report]
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}, reports


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("codclm", {}),
        ("drnnlm", {"segments": "independent", "optimiser": "sgd", "schedule": "constant"}),
        ("hrnnlm", {"levels": "two-step", "accumulate": 2}),
    ],
    ids=["carried", "independent", "two steps, accumulated"],
)
def test_two_processes_make_the_run_of_one(name: str, changes: dict[str, Any]) -> None:
    alone, reports = trained(trainer_of(name, ALONE, **changes))
    for weights, others in together(2, lambda p: trained(trainer_of(name, p, **changes))):
        for key, tensor in alone.items():
            torch.testing.assert_close(weights[key], tensor, rtol=1e-4, atol=1e-6)
        assert [report[:2] for report in others] == [report[:2] for report in reports]
        for found, expected in zip(others, reports, strict=True):
            assert found[4:6] == pytest.approx(expected[4:6], rel=1e-5)


def test_a_state_of_two_processes_is_that_of_one_and_is_resumed_by_both(tmp_path: Path) -> None:
    """Contexts differ by stream: a process that took another's would go on differently."""
    alone = trainer_of("codclm", ALONE)
    expected, _ = trained(alone)

    def interrupted(processes: Processes) -> None:
        trainer = trainer_of("codclm", processes)
        for _, _ in zip(range(3), trainer.run(), strict=False):
            pass
        save_training(tmp_path, trainer)

    def resumed(processes: Processes) -> dict[str, Tensor]:
        trainer = trainer_of("codclm", processes)
        load_training(tmp_path, trainer)
        return trained(trainer)[0]

    together(2, interrupted)
    for weights in [resumed(ALONE), *together(2, resumed)]:
        for key, tensor in expected.items():
            torch.testing.assert_close(weights[key], tensor, rtol=1e-4, atol=1e-6)


def test_a_gradient_that_only_one_process_has_is_that_of_all() -> None:
    def added(processes: Processes) -> list[Tensor | None]:
        one, two, three = (nn.Parameter(torch.zeros(3)) for _ in range(3))
        if processes.rank == 0:
            one.grad = torch.sparse_coo_tensor(
                torch.tensor([[1]]), torch.tensor([2.0]), (3,), check_invariants=True
            )
        else:
            two.grad = torch.ones(3)
        processes.add_gradients([one, two, three])
        return [one.grad, two.grad, three.grad]

    for one, two, three in together(2, added):
        assert one.tolist() == [0.0, 2.0, 0.0]
        assert two.tolist() == [1.0, 1.0, 1.0]
        assert three is None


def test_streams_are_dealt_in_turn_and_gathered_in_order() -> None:
    rows = torch.arange(5.0)[:, None]

    def gathered(processes: Processes) -> list[list[float]]:
        own = Rows.of(rows[processes.share(5)])
        return processes.gather_rows(own, 5).tensors[0].tolist()

    assert together(3, gathered) == [rows.tolist()] * 3


def test_there_are_no_more_processes_than_streams() -> None:
    processes = Processes()
    processes.number = 4
    with pytest.raises(ValueError, match="4 processes cannot share 2 streams"):
        trainer_of("rnnlm", processes, streams=2)


PROGRAM = """
import torch
from lm.training.processes import joined
with joined(torch.device("cpu")) as group:
    tensor = torch.tensor([1.0 + group.rank])
    group.add(tensor)
    totals = group.totals(1.0, float(group.rank))
    print(group.number, tensor.tolist(), totals, group.first(group.rank + 7.0), flush=True)
"""


@pytest.mark.slow
def test_torchrun_starts_processes_that_add_up(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "--standalone", str(program)],
        timeout=120,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout.splitlines() == ["2 [3.0] [2.0, 1.0] 7.0"] * 2
