"""The batch scripts of `recipes/cluster`, by a stand-in for Slurm: there is none here.

The stand-in `srun` runs its command once for each task, one after another, with the variables that
Slurm sets; the batch script has SLURM_NTASKS, as under Slurm.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.world import ROOT, World

PROGRAMS = {
    "srun": """\
while [[ $1 == --* ]]; do shift; done
for ((task = 0; task < SLURM_NTASKS; task++)); do SLURM_PROCID=$task "$@" || exit; done
""",
    "scontrol": "printf 'localhost\\nanother\\n'\n",
    "torchrun": f'exec {sys.executable} -m torch.distributed.run "$@"\n',
    "rerank": f'exec {sys.executable} -m rerank "$@"\n',
}
DECODE = (
    "decode --kbest dev.kbest --docs dev.docs --weights w.json --device cpu --deterministic "
    "--lm lm={lm} --cache {name} --out {name}.out"
)


@pytest.fixture
def cluster(world: World, model_folders: Mapping[str, Path]) -> World:
    """Lists and weights, and the programs of a cluster in the folder `bin`."""
    world.draw()
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5})
    for name, text in PROGRAMS.items():
        if name != "torchrun" and name != "scontrol":
            world.write(f"bin/{name}", f"#!/bin/bash\n{text}").chmod(0o755)
    return world


def options(name: str, model_folders: Mapping[str, Path]) -> list[str]:
    return DECODE.format(lm=model_folders["ccdclm"], name=name).split()


def batch(world: World, script: str, *arguments: str, **variables: str) -> str:
    """What a batch script tells that ends well."""
    path = f"{world.folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(ROOT / "recipes" / "cluster" / script), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_tasks_of_slurm_score_a_shard_each_and_the_script_finishes(
    cluster: World, model_folders: Mapping[str, Path]
) -> None:
    cluster.ok(options("alone", model_folders))
    variables = {"SLURM_NTASKS": "2", "SLURM_CPUS_PER_TASK": "1"}
    told = batch(cluster, "decode.sbatch", *options("shared", model_folders), **variables)
    assert cluster.content("shared.out") == cluster.content("alone.out")
    assert "shard 1/2: the scores are in the cache" in told
    assert "shard 2/2: the scores are in the cache" in told
    assert "lm: 4 documents from the cache" in told


def test_a_task_of_a_job_array_scores_its_shard(
    cluster: World, model_folders: Mapping[str, Path]
) -> None:
    variables = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    told = batch(cluster, "array.sbatch", *options("shared", model_folders), **variables)
    assert "shard 2/3: the scores are in the cache" in told
    assert not (cluster.folder / "shared.out").exists()


def test_a_variable_of_slurm_alone_changes_nothing(
    cluster: World, model_folders: Mapping[str, Path]
) -> None:
    """A batch script without srun is one process, whatever SLURM_NTASKS says."""
    variables = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}
    done = cluster.ok(options("shared", model_folders), **variables)
    assert (cluster.folder / "shared.out").exists()
    assert "shard" not in done.err


def test_torchrun_trains_on_the_machines_of_slurm(world: World) -> None:
    """One machine, two processes: the loss of the same training in one process."""
    text = "".join(f"the {x} is {y}\n{y} it\n\n" for x in "abcdefgh" for y in ("lit", "dark"))
    world.write("train.txt", text)
    for name, program in PROGRAMS.items():
        world.write(f"bin/{name}", f"#!/bin/bash\n{program}").chmod(0o755)
    words = "train-lm --model rnnlm --train train.txt --valid train.txt --epochs 1 --embed 8"
    words += " --hidden 8 --device cpu --dropout 0 --out "
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    variables = {"SLURM_NTASKS": "1", "SLURM_NNODES": "1", "SLURM_JOB_ID": "7", "PORT": port}
    nodes = {"SLURM_JOB_NODELIST": "a[1-2]"}
    batch(world, "train.sbatch", *f"{words}two.lm".split(), **variables, **nodes)
    world.ok(f"{words}one.lm")
    measure = "perplexity train.txt --device cpu --format json --lm"
    two, one = (world.ok(f"{measure} {name}.lm").json["perplexity"] for name in ("two", "one"))
    assert two == pytest.approx(one, rel=1e-4)
