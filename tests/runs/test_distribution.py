"""Processes that share the documents of a run, by `--shard`, `torchrun` or Ray: bytes and words."""

import heapq
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.forked import Fork, start
from support.runs import DOCUMENTS, cache, decoding, recalled, taken, tuning
from support.world import World

SCORE = "score --kbest dev.kbest --docs dev.docs --out out.kbest --deterministic"
COMMANDS = {
    "decode": decoding("ccdclm"),
    "score-given-a-path": f"{SCORE} --lm lm=codclm --weights w.json",
    "tune": tuning("ccdclm", "--deterministic"),
    "tune-from-weights": tuning("codclm", "--deterministic --start w.json"),
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def alone(world: World, command: str) -> dict[str, bytes]:
    """What one process writes."""
    world.ok(command)
    world.ok("cache clear")
    return taken(world)


# Shards
@every_command
def test_shards_in_any_order_lead_to_the_bytes_of_one_process(command: str, drawn: World) -> None:
    expected = alone(drawn, command)
    for number in (2, 2, 1, 3):
        run = drawn.ok(command, "--shard", f"{number}/3")
        assert f"\nshard {number}/3: the scores are in the cache\n" in run.err
        assert taken(drawn) == {}
    last = drawn.ok(command)
    assert recalled(last) == DOCUMENTS
    assert "tune" in command or "tokens scored" not in last.err  # tuning goes on to other paths
    assert taken(drawn) == expected


@pytest.mark.parametrize(("model", "total"), [("rnnlm", 2), ("codclm", 3), ("ccdclm", 7)])
def test_documents_are_dealt_by_cost_dearest_first(model: str, total: int, drawn: World) -> None:
    """Graham's rule; a document costs its words, at order 1 after each candidate before."""
    lists = {t: [len(x.split()) + 1 for x, *_ in own] for t, own in drawn.lists().items()}
    ids = drawn.lines("dev.docs")
    bounds = [0, *(n for n, (a, b) in enumerate(pairwise(ids), 1) if a != b), len(ids)]
    costs = []
    for begin, end in pairwise(bounds):
        present = [lists[t] for t in range(begin, end) if t in lists]
        contexts = [1, *map(len, present)] if model == "codclm" else [1] * (len(present) + 1)
        costs.append(sum(c * sum(own) for c, own in zip(contexts, present, strict=False)))
    loads = [(0, shard) for shard in range(total)]
    owners: dict[int, list[int]] = {shard: [] for shard in range(total)}
    for document in sorted(range(len(costs)), key=lambda d: (-costs[d], d)):
        load, shard = loads[0]
        owners[shard].append(document)
        heapq.heapreplace(loads, (load + costs[document], shard))
    for shard, own in owners.items():
        run = drawn.ok(decoding(model), "--shard", f"{shard + 1}/{total}")
        share = sum(costs[d] for d in own) / sum(costs)
        told = f"shard {shard + 1}/{total}: {len(own)} of {len(costs)} documents, {share:.1%} of"
        assert told in run.err
        assert recalled(run) == 0
    assert recalled(drawn.ok(decoding(model))) == DOCUMENTS


def test_a_feature_that_the_cache_has_not_is_computed_again_by_the_last_run(drawn: World) -> None:
    drawn.weights("w.json", {"LM0": 1, "TM0": [1, 1], "lm": 1, "lmoov": 0, "used": 1})
    command = decoding("codclm", "--scorer used=document-cache")
    expected = alone(drawn, command)
    run = drawn.ok(command, "--shard", "1/1")
    assert "used: not in the score cache; computed again by the run at the end" in run.err
    drawn.ok(command)
    assert taken(drawn) == expected


# Processes of torchrun
def torchrun(command: str, number: int, kill: int | None = None) -> list[Fork]:
    """Processes that know of each other as those of `torchrun`; one of them is killed early."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    sizes = {"WORLD_SIZE": str(number), "LOCAL_WORLD_SIZE": str(number)}
    common = {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        start(
            command,
            (signal.SIGKILL, 1) if rank == kill else None,
            None,
            **{**common, **sizes, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(number)
    ]


@every_command
def test_processes_of_torchrun_write_the_bytes_of_one_process(command: str, drawn: World) -> None:
    expected = alone(drawn, command)
    first, *others = [program.wait() for program in torchrun(command, 3)]
    assert [one.exit for one in (first, *others)] == [0, 0, 0], first.err
    assert taken(drawn) == expected
    assert "scores of 3 processes are in the cache" in first.err
    assert {(one.out, one.err) for one in others} == {("", "")}  # the first one speaks for all


def test_a_process_that_waits_hears_of_the_death_of_another(drawn: World) -> None:
    first, second = [one.wait() for one in torchrun(decoding("ccdclm"), 2, kill=1)]
    assert (first.exit, second.exit) == (1, -signal.SIGKILL)
    assert "another process has ended before its documents were scored" in first.err
    assert "the same command goes on from there" in first.err


def test_an_error_names_the_process(drawn: World) -> None:
    for rank, program in enumerate(torchrun(decoding("codclm", "--weights missing"), 2)):
        result = program.wait()
        assert result.exit == 2
        assert result.err.startswith(f"[{rank}] rerank: ")
        assert result.err.count("\n") == 1


@pytest.mark.parametrize(("processes", "model"), [(2, "codclm"), (4, "codclm"), (2, "pieces")])
def test_perplexity_is_shared_and_summed(processes: int, model: str, drawn: World) -> None:
    text = [line or "" for line in drawn.lines("dev.ref")[:9]]
    drawn.write("text", [*text[:4], "", *text[4:6], "", *text[6:]])
    tags = [" ".join("ab"[n % 2] for n, _ in enumerate(line.split())) for line in text]
    drawn.write("tags", [*tags[:4], "", *tags[4:6], "", *(x.replace("b", "a") for x in tags[6:])])
    if model == "pieces":
        pytest.importorskip("tokenizers")
        training = "train-lm --model codclm --train text --valid text --embed 4 --hidden 4"
        drawn.ok(f"{training} --tokenizer bpe:300 --words 99 --out pieces --device cpu")
    command = f"perplexity --lm {model} text --per-document --tags tags --format json --device cpu"
    truth = drawn.ok(command).json
    assert (truth.get("words") is not None) == (model == "pieces")
    first, *others = [program.wait() for program in torchrun(command, processes)]
    assert [one.exit for one in (first, *others)] == [0] * processes, first.err
    assert {(other.out, other.err) for other in others} == {("", "")}
    assert numbers(first.json) == pytest.approx(numbers(truth), rel=1e-6)


def numbers(value: object) -> list[float]:
    """All numbers in a JSON value, in order."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [float(value)] if isinstance(value, int | float) else []


@pytest.mark.parametrize("variables", [{}, {"SLURM_NTASKS": "8", "SLURM_PROCID": "5"}], ids=str)
def test_variables_of_other_programs_do_not_make_processes_of_torchrun(
    variables: dict[str, str], drawn: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch script of Slurm, or a notebook in a cluster, has RANK and the like, too."""
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    ranks = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    run = drawn.ok(decoding("codclm"), **ranks, **variables)
    assert "processes" not in run.err
    assert len(taken(drawn)) == 3


# Ray
class Ray(ModuleType):
    """What of Ray a run uses, in this process: tasks are run where they are asked for."""

    def __init__(self, cpus: float = 2.0, crash: bool = False) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(WorkerCrashedError=OSError, OutOfMemoryError=MemoryError)
        self.calls: list[object] = []
        self.cpus, self.crash = cpus, crash

    def init(self, address: str, **options: Any) -> None:
        if address != "local":
            raise ConnectionError("nobody\nlistens")
        self.calls.append(address)

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cpus}

    def remote(self, **resources: Any) -> Callable[[Callable[..., Any]], Any]:
        self.calls.append(resources)
        return lambda task: SimpleNamespace(remote=lambda *given: partial(task, *given))

    def put(self, given: object) -> object:
        return given

    def wait(self, waiting: list[Any]) -> tuple[list[Any], list[Any]]:
        return waiting[-1:], waiting[:-1]

    def get(self, waited: Callable[[], object]) -> object:
        if self.crash:
            raise OSError("killed")
        return waited()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    """A stand-in for Ray."""
    stand_in = Ray()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def test_ray_runs_four_shards_a_worker(ray: Ray, drawn: World) -> None:
    expected = alone(drawn, decoding("ccdclm"))
    run = drawn.ok(decoding("ccdclm", "--deterministic --ray local -v"))
    assert "ray: 8 shards for 2 workers at a time, 1 threads each" in run.err
    assert "ray: shard 8 of 8 is done, 7 left" in run.err
    assert "ray: shard 1 of 8 is done, 0 left" in run.err
    assert re.search(r"shard 1/8: \d of 5 documents, .* of the work", run.err)
    assert (recalled(run), taken(drawn)) == (DOCUMENTS, expected)
    assert ray.calls == ["local", {"num_cpus": 1, "num_gpus": 0, "max_retries": 3}, "shutdown"]
    assert [*cache().glob(".shared-*")] == []


@pytest.mark.parametrize(
    ("options", "change", "code", "told"),
    [
        ("--ray there", {}, 2, r"--ray there: no cluster is reached there \(nobody listens\); "),
        ("--ray local", {"crash": True}, 1, "the workers of a shard ended 4 times, most likely"),
        ("--ray local --threads 2", {"crash": True}, 1, "ray: 4 shards .* 1 workers .*, 2 threads"),
        ("--ray local --device cuda", {}, 2, "--device cuda: the Ray cluster has no GPU; use"),
        ("--ray local --lm lm=no", {}, 2, "no: expected a folder|taken by another"),
    ],
)
def test_what_fails_in_a_cluster_is_told_and_nothing_is_written(
    options: str, change: dict[str, bool], code: int, told: str, ray: Ray, drawn: World
) -> None:
    vars(ray).update(change)
    run = drawn.run(decoding("codclm", options))
    assert (run.exit, taken(drawn)) == (code, {})
    assert re.search(told, run.err), run.err


def test_workers_need_the_folder(ray: Ray, drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(given: tuple[Any, ...]) -> tuple[Any, ...]:
        (probe,) = cache().glob(".shared-*")
        probe.write_text("of another machine")
        return given

    monkeypatch.setattr(ray, "put", lose)
    result = drawn.refused(decoding("codclm", "--ray local"))
    assert "a worker of Ray does not see" in result
    assert "need a common file system" in result


def test_without_it_the_cure_is_one_line(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    run = drawn.run(decoding("codclm", "--ray local"))
    assert (run.exit, run.err.count("\n")) == (2, 1)
    assert "pip install 'rerank-mt[ray]'" in run.err


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray")
def test_a_cluster_gives_the_bytes_of_one_process_though_a_worker_is_killed(drawn: World) -> None:
    expected = alone(drawn, decoding("ccdclm"))
    program = drawn.start(decoding("ccdclm", "--deterministic --ray local"))
    while program.poll() is None:
        for process in workers()[:1]:
            os.kill(process, signal.SIGKILL)
        time.sleep(1)
    assert (program.returncode, taken(drawn)) == (0, expected)


def workers() -> list[int]:
    """Processes that run a task of ours."""
    return [int(number) for number in os.popen("pgrep -f ^ray::shard_task").read().split()]
