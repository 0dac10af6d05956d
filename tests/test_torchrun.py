"""What a process knows of those that `torchrun` has started with it."""

import pytest

from rerank.torchrun import local_number, local_processes, number_of_processes, process_number

VARIABLES = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}


def facts() -> tuple[int, int, int, int]:
    return process_number(), number_of_processes(), local_number(), local_processes()


def test_a_process_of_torchrun_knows_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert facts() == (5, 8, 1, 4)


def test_variables_of_other_programs_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch script of Slurm, or a notebook in a cluster, has such variables, too."""
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    for name, value in {**VARIABLES, "SLURM_NTASKS": "8", "SLURM_PROCID": "5"}.items():
        monkeypatch.setenv(name, value)
    assert facts() == (0, 1, 0, 1)
