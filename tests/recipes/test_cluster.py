"""The batch scripts of `recipes/cluster`, by a stand-in for Slurm: there is none here.

The stand-in `srun` runs its command once for each task, one after another, with the variables that
Slurm sets; the batch script has SLURM_NTASKS, as under Slurm.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.cli import ROOT, finish, start
from support.files import write_weights
from support.language_models import with_texts

RECIPE = ROOT / "recipes" / "cluster"
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task "$@" || exit; done
"""
SCONTROL = """#!/bin/bash
printf 'localhost\\nanother\\n'
"""
TORCHRUN = f"""#!/bin/bash
exec {sys.executable} -m torch.distributed.run "$@"
"""
PROGRAM = f"""#!/bin/bash
exec {sys.executable} -m rerank "$@"
"""


@pytest.fixture
def options(tuning_lists: Path, model_folders: Mapping[str, Path]) -> list[str]:
    """A decoding in a folder that has `srun` and `rerank` as programs."""
    for name, text in (("srun", SRUN), ("rerank", PROGRAM)):
        Path("bin", name).parent.mkdir(exist_ok=True)
        Path("bin", name).write_text(text, encoding="utf-8")
        Path("bin", name).chmod(0o755)
    write_weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5})
    words = "decode --kbest dev.kbest --docs dev.docs --weights w.json --device cpu --deterministic"
    return [*words.split(), "--lm", f"lm={model_folders['ccdclm']}"]


def batch(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A batch script to its end."""
    path = f"{Path('bin').absolute()}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(RECIPE / script), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_tasks_of_slurm_score_a_shard_each_and_the_script_finishes(options: list[str]) -> None:
    assert finish(*options, "--cache", "alone", "--out", "alone.out")[0] == 0
    given = [*options, "--cache", "shared", "--out", "shared.out"]
    done = batch("decode.sbatch", *given, SLURM_NTASKS="2", SLURM_CPUS_PER_TASK="1")
    assert done.returncode == 0, done.stderr
    assert Path("shared.out").read_bytes() == Path("alone.out").read_bytes()
    assert "shard 1/2: the scores are in the cache" in done.stderr
    assert "shard 2/2: the scores are in the cache" in done.stderr
    assert "lm: 4 documents from the cache" in done.stderr


def test_a_task_of_a_job_array_scores_its_shard(options: list[str]) -> None:
    given = [*options, "--cache", "shared", "--out", "shared.out"]
    variables = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    done = batch("array.sbatch", *given, **variables)
    assert done.returncode == 0, done.stderr
    assert "shard 2/3: the scores are in the cache" in done.stderr
    assert not Path("shared.out").exists()


def test_a_variable_of_slurm_alone_changes_nothing(options: list[str]) -> None:
    """A batch script without srun is one process, whatever SLURM_NTASKS says."""
    given = [*options, "--cache", "shared", "--out", "shared.out"]
    variables = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}
    code, message = finish(*given, env=variables)
    assert code == 0, message
    assert Path("shared.out").exists()
    assert "shard" not in message


def test_torchrun_trains_on_the_machines_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One machine, two processes: the loss of the same training in one process."""
    with_texts(tmp_path, monkeypatch)
    programs = {"srun": SRUN, "scontrol": SCONTROL, "torchrun": TORCHRUN}
    for name, text in programs.items():
        Path("bin", name).parent.mkdir(exist_ok=True)
        Path("bin", name).write_text(text, encoding="utf-8")
        Path("bin", name).chmod(0o755)
    given = "train-lm --model rnnlm --train train.txt --valid valid.txt --epochs 1 --embed 8"
    words = [*given.split(), "--hidden", "8", "--device", "cpu", "--dropout", "0"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = {"SLURM_NTASKS": "1", "SLURM_NNODES": "1", "SLURM_JOB_ID": "7", "PORT": port}
    done = batch(
        "train.sbatch", *words, "--out", "two.lm", SLURM_JOB_NODELIST="a[1-2]", **variables
    )
    assert done.returncode == 0, done.stderr
    assert finish(*words, "--out", "one.lm")[0] == 0
    assert validated("two.lm") == pytest.approx(validated("one.lm"), rel=1e-4)


def validated(folder: str) -> float:
    """Perplexity of the validation text under a model."""
    given = ("perplexity", "--lm", folder, "valid.txt", "--device", "cpu", "--format", "json")
    printed = start(*given, stdout=subprocess.PIPE).communicate(timeout=120)[0]
    return float(json.loads(printed)["perplexity"])
