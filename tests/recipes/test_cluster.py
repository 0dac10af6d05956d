"""The batch scripts of `recipes/adapters/cluster`, by a stand-in for Slurm: there is none here.

The stand-in `srun` runs its command once for each task, one after another, with the variables that
Slurm sets; `rerank` and `torchrun` write down how they were called. `tests/runs` has what several
processes do.
"""

import os
import subprocess

import pytest
from support.world import ROOT, Folders, World

CALLED = 'echo "${0##*/} $*" >> calls\n'
PROGRAMS = {
    "srun": """\
while [[ $1 == --* ]]; do shift; done
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task "$@" || exit; done
""",
    **{"scontrol": "printf 'first\\nanother\\n'\n", "torchrun": CALLED, "rerank": CALLED},
}
DECODE = (
    "decode --kbest dev.kbest --docs dev.docs --weights w.json --device cpu --deterministic "
    "--lm lm={lm} --cache {name} --out {name}.out"
)


@pytest.fixture
def cluster(world: World) -> World:
    """Lists and weights, and the programs of a cluster in the folder `bin`."""
    world.draw()
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5})
    for name, text in PROGRAMS.items():
        world.write(f"bin/{name}", f"#!/bin/bash\n{text}").chmod(0o755)
    return world


def calls(world: World, script: str, command: str, **variables: str) -> list[str]:
    """The programs that a batch script calls, with their arguments."""
    path = f"{world.folder / 'bin'}:{os.environ['PATH']}"
    words = ["bash", str(ROOT / "recipes" / "adapters" / "cluster" / script), *command.split()]
    subprocess.run(words, env={**os.environ, "PATH": path, **variables}, check=True)
    return world.lines("calls")


def test_tasks_of_slurm_score_a_shard_each(cluster: World, model_folders: Folders) -> None:
    alone, shared = (DECODE.format(lm=model_folders["ccdclm"], name=n) for n in ("alone", "shared"))
    cluster.ok(alone)
    result = calls(cluster, "decode.sbatch", shared, SLURM_NTASKS="2", SLURM_CPUS_PER_TASK="1")
    first, second, last = (cluster.ok(one.removeprefix("rerank ")).err for one in result)
    assert cluster.content("shared.out") == cluster.content("alone.out")
    assert "shard 1/2: the scores are in the cache" in first
    assert "shard 2/2: the scores are in the cache" in second
    assert "lm: 4 documents from the cache" in last


def test_a_task_of_a_job_array_scores_its_shard(cluster: World) -> None:
    variables = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    result = calls(cluster, "array.sbatch", "decode --out o", **variables)
    assert result == ["rerank decode --out o --threads 1 --shard 2/3"]


def test_torchrun_is_started_on_each_machine_of_slurm(cluster: World) -> None:
    variables = {"SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7", "PORT": "2950"}
    result = calls(cluster, "train.sbatch", "train-lm -q", **variables, SLURM_JOB_NODELIST="a[1-2]")
    options = "--nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint first:2950"
    assert result == [f"torchrun {options} --rdzv-id 7 --module rerank train-lm -q"] * 2
