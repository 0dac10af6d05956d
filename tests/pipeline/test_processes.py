"""What a run knows of the processes among which it is."""

import pytest
import torch

from lm.training.processes import ALONE
from rerank.errors import UsageError
from rerank.pipeline.processes import processes


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_a_run_without_torchrun_is_alone() -> None:
    with processes(torch.device("cpu"), ("-",)) as (device, group):
        assert (device.type, group) == ("cpu", ALONE)


def test_processes_do_not_share_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(UsageError, match="cannot share standard input; name files"),
        processes(torch.device("cpu"), ("-", "valid")),
    ):
        pass
