"""Several processes share the documents of a run: bytes, faults, and what each of them says."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import finish
from support.files import write_weights
from support.torchrun import started

from rerank.errors import RerankError, UsageError
from rerank.notices import Notices
from rerank.pipeline import (
    Lists,
    Reports,
    Scoring,
    Shard,
    TunedWeights,
    decode,
    score,
    tune_mert,
)

DETERMINISTIC = Scoring(device="cpu", deterministic=True, threads=1)
WEIGHTS: dict[str, float | list[float]] = {
    "LM0": 0.5,
    "TM0": [0.25, 0.125],
    "lm": 1.5,
    "lmoov": -0.5,
}
OUTPUTS = ("out.txt", "out.kbest", "out.json", "out.trace")
MODELS = ("codclm", "ccdclm")  # of order 1, and of unbounded order


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)


@pytest.fixture
def here(tuning_lists: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power cut in these tests
    write_weights("w.json", WEIGHTS)
    return tuning_lists


def lists(folder: Path, cache: str, shard: Shard | None = None, **scoring: Any) -> Lists:
    own = replace(DETERMINISTIC, cache=cache, shard=shard, **scoring)
    return Lists("dev.kbest", "dev.docs", lms=(("lm", folder),), scoring=own)


def decoded(given: Lists, said: list[str] | None = None) -> tuple[bytes, ...]:
    """What `decode` writes; empty if it writes nothing."""
    for name in OUTPUTS:
        Path(name).unlink(missing_ok=True)
    out, *reports = OUTPUTS
    printer = (list[str]() if said is None else said).append
    decode(given, "w.json", out, reports=Reports(*reports), notices=Notices(), announce=printer)
    return tuple(Path(name).read_bytes() for name in OUTPUTS if Path(name).exists())


def tuned(given: Lists) -> bytes:
    weights = TunedWeights("tuned.json", start="w.json")
    tune_mert(given, ["dev.ref"], weights, notices=Notices())
    return Path("tuned.json").read_bytes() if Path("tuned.json").exists() else b""


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 2, 1, 3)])
def test_shards_in_any_order_lead_to_the_bytes_of_one_process(
    here: Path, model_folders: Mapping[str, Path], name: str, order: tuple[int, ...]
) -> None:
    expected = decoded(lists(model_folders[name], "alone"))
    assert len(expected) == len(OUTPUTS)
    for number in order:
        assert decoded(lists(model_folders[name], "shared", Shard(number, 3))) == ()
    said: list[str] = []
    assert decoded(lists(model_folders[name], "shared"), said) == expected
    assert any(line.startswith("lm: 4 documents from the cache") for line in said)
    assert not any("scored" in line for line in said)


@pytest.mark.parametrize("name", MODELS)
def test_shards_of_any_number_compute_each_document_once(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    for total in (1, 2, 7):  # there are four documents with candidates
        said: list[str] = []
        for number in range(1, total + 1):
            decoded(lists(model_folders[name], f"of{total}", Shard(number, total)), said)
        assert sum(line.endswith("in the cache") for line in said) == total
        shares = [int(line.split(": ")[1].split()[0]) for line in said if "% of the work" in line]
        assert sum(shares) == 5  # one of them without candidates
        assert not any("from the cache" in line for line in said)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weights", [None, "w.json"])
def test_score_finishes_from_its_shards(
    here: Path, model_folders: Mapping[str, Path], name: str, weights: str | None
) -> None:
    for cache, shards in (("alone", []), ("shared", [Shard(2, 2), Shard(1, 2)])):
        for shard in shards:
            score(lists(model_folders[name], cache, shard), "x", weights=weights, notices=Notices())
            assert not Path("x").exists()
        said: list[str] = []
        given = lists(model_folders[name], cache)
        score(given, cache + ".json", weights=weights, notices=Notices(), announce=said.append)
    assert Path("shared.json").read_bytes() == Path("alone.json").read_bytes()
    assert any("4 documents from the cache" in line for line in said)
    assert not any("tokens scored" in line for line in said)


@pytest.mark.parametrize("name", MODELS)
def test_tuning_finishes_from_its_shards(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    expected = tuned(lists(model_folders[name], "alone"))
    Path("tuned.json").unlink()
    for number in (2, 1, 3):
        assert tuned(lists(model_folders[name], "shared", Shard(number, 3))) == b""
    assert tuned(lists(model_folders[name], "shared")) == expected


def test_shards_of_another_list_or_model_are_not_mixed_in(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    expected = decoded(lists(model_folders["codclm"], "alone"))
    content = Path("dev.kbest").read_bytes()
    Path("dev.kbest").write_bytes(content.replace(b" the ", b" a "))
    decoded(lists(model_folders["codclm"], "shared", Shard(1, 2)))
    Path("dev.kbest").write_bytes(content)
    decoded(lists(model_folders["dclm-decoupled"], "shared", Shard(2, 2)))
    assert decoded(lists(model_folders["codclm"], "shared")) == expected


def test_a_shard_needs_a_cache_and_scores_that_go_there(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    given = lists(model_folders["codclm"], "c", Shard(1, 2))
    with pytest.raises(UsageError, match="leave out --no-cache, or name a folder"):
        decoded(replace(given, scoring=replace(given.scoring, cache=None, no_cache=True)))
    with pytest.raises(UsageError, match="take one"):
        decoded(lists(model_folders["codclm"], "c", Shard(1, 2), ray="local"))
    with pytest.raises(UsageError, match="cannot share standard input"):
        decoded(replace(given, docs="-"))
    write_weights("w.json", {"LM0": 1, "TM0": [1, 1]})
    with pytest.raises(UsageError, match="there is nothing to share"):
        decoded(replace(given, lms=()))


def test_a_shard_whose_scores_are_lost_fails(here: Path, model_folders: Mapping[str, Path]) -> None:
    Path("file").touch()
    with pytest.raises(RerankError, match=r"shard 1/2: score cache not written.*are lost"):
        decoded(lists(model_folders["codclm"], "file/below", Shard(1, 2)))


@pytest.mark.parametrize("value", ["5/4", "0/3", "a/b", "1", "1/2/3", "-1/2", ""])
def test_a_shard_that_there_is_not_is_refused_before_any_work(here: Path, value: str) -> None:
    options = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--weights", "w.json", "--shard"]
    code, message = finish("decode", *options, value)
    assert code == 2
    assert "--shard" in message
    assert "Traceback" not in message


# Processes of torchrun


def options_of(command: str, folder: Path, cache: str, out: str) -> list[str]:
    named = f"--kbest dev.kbest --docs dev.docs --lm lm={folder} --cache {cache} --out {out}"
    more = {"decode": "--weights w.json", "score": "", "tune-mert": "--ref dev.ref --start w.json"}
    return [command, *named.split(), *more[command].split(), "--device=cpu", "--deterministic"]


@pytest.mark.parametrize("command", ["decode", "score", "tune-mert"])
def test_processes_of_torchrun_write_the_bytes_of_one_process(
    here: Path, model_folders: Mapping[str, Path], command: str
) -> None:
    folder = model_folders["ccdclm"]
    code, message = finish(*options_of(command, folder, "alone", "alone.json"))
    assert code == 0, message
    programs = started(2, *options_of(command, folder, "shared", "shared.json"))
    found = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0], found
    assert Path("shared.json").read_bytes() == Path("alone.json").read_bytes()
    assert b"scores of 2 processes are in the cache" in found[0][1]
    assert found[1] == (b"", b"")  # the first one speaks for all


PROGRAM = """
import os, sys, time
from rerank.errors import RerankError
from rerank.pipeline.processes import others_alive, sharing_documents
try:
    with sharing_documents(["x"]) as group:
        group.gather(0)
        print("joined", flush=True)
        if group.rank == 1:
            time.sleep(60)
        with others_alive():
            group.wait()
except RerankError as fault:
    print(fault, flush=True)
    sys.exit(fault.exit_code)
"""


def test_a_process_that_waits_hears_of_the_death_of_another(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    first, second = started(2, "", program=program)
    assert second.stdout is not None
    assert second.stdout.readline() == b"joined\n"
    second.kill()
    second.communicate()
    said, _ = first.communicate(timeout=60)
    assert first.returncode == 1
    assert b"another process has ended before its documents were scored" in said


def test_an_error_names_the_process(here: Path, model_folders: Mapping[str, Path]) -> None:
    options = [*options_of("decode", model_folders["codclm"], "c", "out"), "--kbest", "missing"]
    programs = started(2, *options)
    found = [program.communicate(timeout=120)[1] for program in programs]
    for rank, message in enumerate(found):
        assert message.startswith(f"[{rank}] rerank: ".encode())
        assert message.count(b"\n") == 1
    assert all(program.returncode == 2 for program in programs) or sys.platform == "win32"
