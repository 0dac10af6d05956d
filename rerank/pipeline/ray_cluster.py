"""Shards of a run as tasks of a Ray cluster, on one machine or many.

The machines share a file system: the inputs, the models and the score cache are found at the same
paths everywhere. A task whose worker is killed is run again by Ray, and finds in the cache what
the killed one had finished.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.errors import RerankError, StoppedEarly, UsageError
from rerank.files.cache import cache_folder
from rerank.files.interrupts import Terminated
from rerank.notices import Notices
from rerank.pipeline.shards import Shard

if TYPE_CHECKING:
    from rerank.pipeline.lists import Lists
    from rerank.pipeline.sources import Printer

LOCAL = "local"
SHARDS_PER_WORKER = 4  # the last workers wait for a quarter of a share, not for a whole one
RETRIES = 3  # of a task whose worker was killed
Done = tuple[list[str], int, str]  # lines about a shard; exit code and message of an error


def run_shards(
    run: Callable[..., object], lists: Lists, address: str, announce: Printer, details: Printer
) -> None:
    """Have a cluster put the scores of all documents into the cache.

    address: of a cluster, as Ray takes it, or `local`, which starts one here for as long as this
    takes. UsageError without Ray, or if a machine does not see the folder of the cache;
    RerankError if a worker is killed again and again; other errors are those of the tasks.
    """
    ray = _imported()
    threads = lists.scoring.threads or 1
    lists = replace(lists, scoring=replace(lists.scoring, threads=threads))
    with _connected(ray, address), _probe(lists) as probe:
        resources = ray.cluster_resources()
        gpu = _uses_gpu(lists.scoring.device, resources)
        slots = max(1, int(resources["GPU"] if gpu else resources.get("CPU", 1) // threads))
        total = slots * SHARDS_PER_WORKER
        announce(f"ray: {total} shards for {slots} workers at a time, {threads} threads each")
        task = ray.remote(num_cpus=threads, num_gpus=int(gpu), max_retries=RETRIES)(shard_task)
        shared = ray.put((run, lists, probe, os.getcwd()))
        waiting = {task.remote(shared, Shard(n, total)): n for n in range(1, total + 1)}
        try:
            while waiting:
                (first, *_), _ = ray.wait(list(waiting))
                number = waiting.pop(first)
                _report(ray.get(first), details)
                announce(f"ray: shard {number} of {total} is done, {len(waiting)} left")
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as fault:
            raise RerankError(
                f"the workers of a shard ended {RETRIES + 1} times, most likely for lack of memory "
                f"({type(fault).__name__}); finished shards are in the cache; keep fewer "
                "candidates with --top, or give each worker more --threads, so that fewer run"
            ) from None
        except (KeyboardInterrupt, Terminated):
            raise StoppedEarly(
                "stopped, scores of finished shards kept in the cache: the same command goes on "
                "from there"
            ) from None


def shard_task(
    given: tuple[Callable[..., object], Lists, tuple[Path, str], str], shard: Shard
) -> Done:
    """Score a shard in a worker: lines about it, and exit code 0 or the error, not raised.

    Ray would run a task that raises again on another worker, as one whose worker was killed.
    """
    run, lists, (probe, token), folder = given
    lines: list[str] = []
    try:
        try:
            seen = probe.read_text(encoding="ascii") == token
            os.chdir(folder)
        except OSError:
            seen = False
        if not seen:
            raise UsageError(
                f"a worker of Ray does not see {probe.parent}: the machines need a common file "
                "system for inputs, models and score cache; give --cache DIR on one"
            )
        sharded = replace(lists, scoring=replace(lists.scoring, shard=shard))
        run(sharded, Notices(), lines.append, lines.append)
    except RerankError as fault:
        return lines, fault.exit_code, str(fault)
    return lines, 0, ""


def _report(done: Done, details: Printer) -> None:
    """Print the lines of a task in detail; its error is raised."""
    lines, code, message = done
    for line in lines:
        details(line)
    if code:
        fault = RerankError(message)
        fault.exit_code = code
        raise fault


def _uses_gpu(device: str, resources: dict[str, float]) -> bool:
    """Whether each task has a GPU; UsageError if the cluster has none."""
    found = resources.get("GPU", 0) >= 1
    if device.startswith("cuda") and not found:
        raise UsageError(f"--device {device}: the Ray cluster has no GPU; use --device cpu")
    return found and device != "cpu"


def _imported() -> Any:
    """The package `ray`; UsageError if it is not installed."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UsageError(
            "--ray needs the package ray: install it with pip install 'rerank-mt[ray]'"
        ) from None
    return ray


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """A connection to a cluster, or a cluster of this machine, which ends with it."""
    options = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    try:
        ray.init(address, include_dashboard=False if address == LOCAL else None, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as fault:
        reason = " ".join(str(fault).split())
        raise UsageError(
            f"--ray {address}: no cluster is reached there ({reason:.120}); start one with `ray "
            "start --head`, or give --ray local"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _probe(lists: Lists) -> Iterator[tuple[Path, str]]:
    """A file in the folder of the cache, by which workers find out whether they share it."""
    given = lists.scoring.cache
    folder = cache_folder(None if given is None else Path(given)).absolute()
    token = secrets.token_hex(16)
    path = folder / f".shared-{token}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(token, encoding="ascii")
    except OSError as fault:
        raise RerankError(f"{folder}: score cache not written: {fault.strerror}") from None
    try:
        yield path, token
    finally:
        path.unlink(missing_ok=True)
