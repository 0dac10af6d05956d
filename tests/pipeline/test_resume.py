"""The score cache as users meet it: runs that are killed, stopped, side by side, and again.

The truth is a run that nothing disturbs and, where scores must not be taken for others, one that
keeps none. Programs are forks of processes that have loaded torch (`support/forks.py`).
"""

import fcntl
import itertools
import json
import os
import pty
import re
import shutil
import signal
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import start
from support.files import write_weights
from support.models import save_models
from support.programs import Done, Forks, Program

from rerank.cache import Cache
from rerank.notices import Notices

ROOT = Path(__file__).parents[2]
WORDS = tuple(f"w{n}" for n in range(2000))  # so many that the work is parted
MODELS = ["rnnlm", "codclm", "ccdclm"]  # of order 0, of order 1, unbounded
DOCUMENTS = {"evening": 3, "gap": 1, "night": 4, "town": 2, "wood": 3}  # sentences of each
GAP = 3
K = 9
LONG = ("long.kbest", "long.docs")
OUTPUTS = ["out.txt", "out.json", "out.kbest"]
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP]
every_model = pytest.mark.parametrize("name", MODELS)


# Programs


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Programs of one thread."""
    folder = tmp_path_factory.mktemp("streams")
    with Forks(folder, OMP_NUM_THREADS="1", PYTHONHASHSEED="0") as server:
        yield server


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Programs of two threads, in which sets have another order."""
    folder = tmp_path_factory.mktemp("streams")
    with Forks(folder, OMP_NUM_THREADS="2", PYTHONHASHSEED="1") as server:
        yield server


# What they work on


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folder of a small model of each name."""
    folders = {name: tmp_path_factory.mktemp(name) for name in MODELS}
    save_models(folders, WORDS, 12, 16, oov_rate=0.0)
    return folders


def made_up() -> dict[str, list[list[str]]]:
    """Lists of each document: lines without the id, of few words, so that much is shared."""
    rng = np.random.default_rng(5)
    lists: dict[str, list[list[str]]] = {}
    for name, n in DOCUMENTS.items():
        few = rng.choice(WORDS, 30)
        lists[name] = [[candidate(rng, few) for _ in range(K - t)] for t in range(n)]
    lists["gap"] = [[]]
    return lists


def candidate(rng: np.random.Generator, words: Any) -> str:
    text = " ".join(rng.choice(words, rng.integers(0, 7)))
    return f"{text} ||| LM0= {-rng.integers(8, 80) / 8} ||| {-rng.integers(1, 9)}"


def write_lists(lists: Mapping[str, list[list[str]]], kbest: str, docs: str) -> None:
    sentences = [(name, lines) for name, held in lists.items() for lines in held]
    numbered = [f"{t} ||| {line}\n" for t, (_, lines) in enumerate(sentences) for line in lines]
    Path(kbest).write_text("".join(numbered))
    Path(docs).write_text("".join(f"{name}\n" for name, _ in sentences))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with lists, the same in reverse order of documents, and weights."""
    monkeypatch.chdir(tmp_path)
    lists = made_up()
    write_lists(lists, "dev.kbest", "dev.docs")
    write_lists(dict(reversed(lists.items())), "reversed.kbest", "reversed.docs")
    write_weights("w.json", {"LM0": [0.5], "lm": [1.5], "lmoov": [-0.5]})
    return tmp_path


def decoding(
    model: Path, *more: str, kbest: str = "dev.kbest", docs: str = "dev.docs"
) -> list[str]:
    """Arguments of `rerank decode` into all outputs."""
    outputs = ["--out", OUTPUTS[0], "--summary", OUTPUTS[1], "--kbest-out", OUTPUTS[2]]
    lists = ["--kbest", kbest, "--docs", docs, "--weights", "w.json"]
    return ["decode", *lists, "--lm", f"lm={model}", *outputs, *more]


def taken() -> dict[str, bytes]:
    """The outputs that are there, which are removed."""
    paths = [path for name in OUTPUTS if (path := Path(name)).exists()]
    found = {path.name: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    return found


def undisturbed(forks: Forks, arguments: list[str], **options: Any) -> dict[str, bytes]:
    """The outputs of a run without a cache."""
    done = forks.run(*arguments, "--no-cache", **options)
    assert done.code == 0, done.told
    return taken()


def choices(outputs: Mapping[str, bytes]) -> dict[str, list[int | None]]:
    documents = json.loads(outputs["out.json"])["documents"]
    return {document["id"]: document["choices"] for document in documents}


# Where scores are kept


def cache() -> Path:
    return Path(os.environ["RERANK_CACHE"])


def shards() -> list[Path]:
    return sorted(cache().glob("*/*.scores"))


def assert_whole() -> None:
    """Every shard at a final name is what it claims to be."""
    notices = Notices(strict=True)
    for path in shards():
        assert Cache(cache(), notices, 10**9).get(path.parent.name, path.stem) is not None


def empty_cache() -> None:
    shutil.rmtree(cache(), ignore_errors=True)


def remembered(done: Done) -> int:
    """Documents from the cache."""
    found = re.search(r"lm: (\d+) documents from the cache", done.told)
    return int(found[1]) if found else 0


# Killed


@pytest.mark.parametrize("name", ["rnnlm", "ccdclm"])
def test_a_run_that_is_killed_at_any_time_is_completed_by_running_it_again(
    name: str, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    arguments = decoding(models[name], "--deterministic")
    before = set(os.listdir())
    expected = undisturbed(forks, arguments, together=1)  # it may compile: not the one to time
    began = time.monotonic()
    assert undisturbed(forks, arguments, together=1) == expected
    longest = time.monotonic() - began
    rng = np.random.default_rng(8)
    killed = 0
    empty_cache()
    for n in itertools.count(1):
        program = forks.start(*arguments, together=1)
        time.sleep(rng.uniform(0.02, 0.2 + n / 10) * longest)
        with_signal(program, signal.SIGKILL)
        done = forks.wait(program)
        assert_whole()
        if done.code == 0:
            break
        killed += 1
        assert done.code == -signal.SIGKILL
        assert taken().items() <= expected.items()  # some of them, and whole
    assert taken() == expected
    for left in set(os.listdir()) - before:  # temporary files of the killed
        assert re.fullmatch(r"\.out\.[a-z]+\.\d+\.[0-9a-f]{8}\.tmp", left)
    assert killed


def with_signal(program: Program, number: int) -> None:
    """Sends a signal to a program, which may have ended."""
    with suppress(ProcessLookupError):
        os.kill(program.process, number)


@pytest.mark.parametrize(("name", "step"), [("codclm", 3), ("ccdclm", 7)])
def test_a_run_that_is_killed_at_any_write_is_completed_by_running_it_again(
    name: str, step: int, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    arguments = decoding(models[name], "--deterministic")
    expected = undisturbed(forks, arguments, together=1)
    kept = 0
    for n in itertools.count(1, step):
        empty_cache()
        done = forks.run(*arguments, signal_at=(signal.SIGKILL, n), together=1)
        assert_whole()
        if done.code == 0:
            break
        kept = max(kept, len(shards()))
        found = taken()  # a kill between renames leaves some of them, whole
        assert found.items() <= expected.items()
        again = forks.run(*arguments, together=1)
        assert (again.code, remembered(again) > 0) == (0, n > 2), again.told
        assert taken() == expected
    assert kept == len(DOCUMENTS) - 1
    assert n > 3 * kept


# Stopped


@pytest.mark.parametrize(("name", "number"), [*zip(itertools.cycle(MODELS), STOPS, strict=False)])
def test_a_run_that_is_stopped_keeps_its_scores_and_goes_on_from_there(
    name: str, number: int, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    arguments = decoding(models[name], "--deterministic")
    expected = undisturbed(forks, arguments, together=1)
    before = sorted(os.listdir())
    done = forks.run(*arguments, signal_at=(number, 4), together=1)  # in the second shard
    assert done.code == 75
    assert done.told.endswith(
        "rerank: stopped, finished work kept in the cache: the same command goes on from there\n"
    )
    assert sorted(os.listdir()) == before
    assert_whole()
    again = forks.run(*arguments, together=1)
    assert (again.code, remembered(again) > 0) == (0, True), again.told
    assert taken() == expected


def test_a_run_that_is_stopped_before_it_kept_anything_says_so(
    here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    before = sorted(os.listdir())
    for number in STOPS:
        code = 130 if number == signal.SIGINT else 143
        done = forks.run(*decoding(models["codclm"], "--no-cache"), signal_at=(number, 1))
        assert (done.code, shards()) == (code, [])
        assert done.told.endswith("nothing was saved\n")
        assert sorted(os.listdir()) == before


def test_a_search_that_is_stopped_keeps_the_scores_of_the_documents_underway(
    here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    """All documents are searched together; the signal comes where the first is written."""
    arguments = decoding(models["ccdclm"])
    expected = undisturbed(forks, arguments)
    done = forks.run(*arguments, signal_at=(signal.SIGTERM, 1))
    assert (done.code, len(shards())) == (75, len(DOCUMENTS) - 1), done.told
    assert_whole()
    again = forks.run(*arguments)
    assert (again.code, remembered(again)) == (0, len(DOCUMENTS) - 1), again.told
    assert "tokens read" not in again.told
    assert taken() == expected


def test_a_signal_from_outside_stops_a_run_in_the_middle(
    here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    """Lists so long that the signal comes while documents are left."""
    write_lists({f"{name}-{n}": held for n in range(15) for name, held in made_up().items()}, *LONG)
    arguments = decoding(models["codclm"], "--deterministic", kbest=LONG[0], docs=LONG[1])
    before = sorted(os.listdir())
    program = forks.start(*arguments)
    while len(shards()) < 2:  # the first is counted then
        time.sleep(0.001)
    with_signal(program, signal.SIGTERM)
    done = forks.wait(program)
    assert (done.code, sorted(os.listdir())) == (75, before), done.told
    assert_whole()
    again = forks.run(*arguments)
    assert again.code == 0
    assert remembered(again) >= 2
    assert taken() == undisturbed(forks, arguments)


def test_a_closed_terminal_stops_a_run_that_draws_on_it(
    here: Path, models: Mapping[str, Path]
) -> None:
    """Messages and the progress bar have nowhere to go any more."""
    write_lists({f"{name}-{n}": held for n in range(15) for name, held in made_up().items()}, *LONG)
    arguments = decoding(models["codclm"], "--deterministic", kbest=LONG[0], docs=LONG[1])
    before = sorted(os.listdir())
    master, slave = pty.openpty()

    def own_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    program = start(
        *arguments, **streams, preexec_fn=own_the_terminal, env={"OMP_NUM_THREADS": "1"}
    )
    os.close(slave)
    while len(shards()) < 2:
        assert program.poll() is None
        time.sleep(0.001)
    os.close(master)
    assert (program.wait(60), sorted(os.listdir())) == (75, before)
    assert_whole()


# Side by side, damaged, another's


def test_two_programs_share_a_cold_cache(
    here: Path, models: Mapping[str, Path], forks: Forks, others: Forks
) -> None:
    arguments = decoding(models["ccdclm"], "--deterministic")
    expected = undisturbed(forks, arguments)
    for _ in range(2):
        empty_cache()
        outputs = []
        for place, server in (("one", forks), ("other", others)):
            Path(place).mkdir(exist_ok=True)
            named = [f"{place}/{word}" if word in OUTPUTS else word for word in arguments]
            outputs.append((place, server, server.start(*named, together=1)))
        for place, server, program in outputs:
            assert server.wait(program).code == 0
            assert {name: Path(place, name).read_bytes() for name in OUTPUTS} == expected
        assert len(shards()) == len(DOCUMENTS) - 1
        assert_whole()
        assert len(list(cache().glob("*/*"))) == len(shards())


def test_a_cache_that_cannot_be_written_is_done_without(
    here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    arguments = decoding(models["codclm"])
    expected = undisturbed(forks, arguments)
    Path("file").write_text("mine")
    done = forks.run(*arguments, RERANK_CACHE="file")
    assert done.code == 0
    assert "warning: 1 x score cache not written: file: file exists" in done.told
    assert taken() == expected
    assert Path("file").read_text() == "mine"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(("name", "damage"), [("codclm", cut_off), ("ccdclm", flipped)])
def test_a_damaged_shard_is_computed_again(
    damage: Any, name: str, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    arguments = decoding(models[name], "--deterministic")
    assert forks.run(*arguments).code == 0
    expected = taken()
    damage(shards()[0])
    done = forks.run(*arguments)
    assert (done.code, remembered(done)) == (0, len(DOCUMENTS) - 2)
    assert "x damaged score cache shard, computed again, first at" in done.told
    assert taken() == expected
    assert_whole()
    assert "damaged" not in forks.run(*arguments).told


def test_scores_of_another_model_or_precision_are_never_taken(
    here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    runs = [
        decoding(models["ccdclm"]),
        decoding(models["codclm"]),
        decoding(models["codclm"], "--deterministic"),
        decoding(models["codclm"], "--dtype", "bfloat16"),
    ]
    expected = [undisturbed(forks, arguments) for arguments in runs]
    for arguments, outputs in zip(runs, expected, strict=True):
        done = forks.run(*arguments)
        assert (done.code, remembered(done)) == (0, 0), done.told
        assert taken() == outputs
    assert len(shards()) == len(runs) * (len(DOCUMENTS) - 1)
    for arguments, outputs in zip(runs, expected, strict=True):
        assert remembered(forks.run(*arguments)) == len(DOCUMENTS) - 1
        assert taken() == outputs


# The same in every circumstance


def warm(forks: Forks, arguments: list[str]) -> None:
    """Fills an empty cache."""
    empty_cache()
    cached(forks, arguments)


def cached(server: Forks, arguments: list[str]) -> dict[str, bytes]:
    """The outputs of a run with the cache as it is."""
    done = server.run(*arguments)
    assert done.code == 0, done.told
    return taken()


def circumstances(
    forks: Forks, others: Forks, model: Path, *more: str
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Outputs of the same work, done differently."""
    arguments = decoding(model, *more)
    yield "no cache", undisturbed(forks, arguments)
    yield "two threads, other hashes", undisturbed(others, arguments)
    yield "document by document", undisturbed(forks, arguments, together=1)
    empty_cache()
    yield "cold", cached(forks, arguments)
    yield "warm", cached(others, arguments)
    for path in shards()[::2]:
        path.unlink()
    yield "half", cached(forks, arguments)
    for told, option in (("narrow", ["--beam", "2"]), ("few", ["--top", "4"])):
        warm(forks, [*arguments, *option])
        yield told, cached(forks, arguments)


@every_model
def test_deterministic_outputs_are_the_same_bytes_in_every_circumstance(
    name: str, here: Path, models: Mapping[str, Path], forks: Forks, others: Forks
) -> None:
    found = dict(circumstances(forks, others, models[name], "--deterministic"))
    assert [told for told in found if found[told] != found["no cache"]] == []


@pytest.mark.parametrize("name", MODELS[1:])
def test_choices_are_the_same_in_every_circumstance(
    name: str, here: Path, models: Mapping[str, Path], forks: Forks, others: Forks
) -> None:
    found = dict(circumstances(forks, others, models[name]))
    expected = choices(found["no cache"])
    assert [told for told in found if choices(found[told]) != expected] == []


@pytest.mark.parametrize(
    ("name", "deterministic"), [*((name, True) for name in MODELS), ("ccdclm", False)]
)
def test_the_order_of_documents_changes_none_of_them(
    deterministic: bool, name: str, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    more = ["--deterministic"] if deterministic else []
    model = models[name]
    forward = undisturbed(forks, decoding(model, *more))
    turned = decoding(model, *more, kbest="reversed.kbest", docs="reversed.docs")
    backward = undisturbed(forks, turned)
    assert choices(forward) == choices(backward)
    if deterministic:
        assert sorted(bare(forward)) == sorted(bare(backward))


def bare(outputs: Mapping[str, bytes]) -> list[bytes]:
    """Lines of the list, without the number of the sentence."""
    return [line.partition(b" ||| ")[2] for line in outputs["out.kbest"].splitlines()]


@pytest.mark.parametrize("deterministic", [False, True])
def test_fewer_candidates_of_kept_lists_are_chosen_as_they_are_alone(
    here: Path, models: Mapping[str, Path], forks: Forks, deterministic: bool
) -> None:
    """From the cache of longer lists, unless bits are promised, which it could change."""
    more = ["--deterministic"] if deterministic else []
    for name in MODELS[1:]:
        arguments = decoding(models[name], "--top", "4", *more)
        expected = undisturbed(forks, arguments)
        warm(forks, decoding(models[name], *more))
        done = forks.run(*arguments)
        assert (done.code, remembered(done)) == (0, 0 if deterministic else len(DOCUMENTS) - 1)
        found = taken()
        if deterministic:
            assert found == expected
        assert choices(found) == choices(expected)


def tuning(model: Path, out: str) -> list[str]:
    lists = ["--kbest", "dev.kbest", "--docs", "dev.docs", "--ref", "dev.ref"]
    return [
        "tune-mert",
        *lists,
        "--lm",
        f"lm={model}",
        "--seed",
        "7",
        "--starts",
        "3",
        "--out",
        out,
    ]


def write_references() -> None:
    """The references are the last candidates, and a word where there is none."""
    last = {t: "" for t in range(sum(DOCUMENTS.values()))}
    for line in Path("dev.kbest").read_text().splitlines():
        t, text, *_ = line.split(" ||| ")
        last[int(t)] = text
    Path("dev.ref").write_text("".join(f"{text or 'w0'}\n" for text in last.values()))


@pytest.mark.parametrize(
    ("with_model", "number"), [(True, STOPS[0]), *((False, number) for number in STOPS[1:])]
)
def test_a_tuning_that_is_stopped_goes_on_with_equal_weights(
    with_model: bool, number: int, here: Path, models: Mapping[str, Path], forks: Forks
) -> None:
    """In the second shard: without a model, it is that of a search for weights."""
    write_references()
    arguments = tuning(models["ccdclm"], "out.json")
    if not with_model:
        place = arguments.index("--lm")
        del arguments[place : place + 2]
    assert forks.run(*arguments).code == 0
    expected = Path("out.json").read_bytes()
    Path("out.json").unlink()
    empty_cache()
    before = set(os.listdir())
    done = forks.run(*arguments, signal_at=(number, 5))
    assert done.code == 75
    assert "the same command goes on from there" in done.told
    assert set(os.listdir()) == before
    assert_whole()
    again = forks.run(*arguments)
    assert (again.code, Path("out.json").read_bytes()) == (0, expected)
    assert with_model or "kept from a run that was stopped" in again.told
    assert (shards() != []) == with_model  # searches are not kept when the weights are written


@pytest.mark.parametrize("name", ["rnnlm", "ccdclm"])
def test_tuning_again_with_a_seed_gives_the_same_file_and_computes_nothing(
    name: str, here: Path, models: Mapping[str, Path], forks: Forks, others: Forks
) -> None:
    write_references()
    for out in ("cold.json", "warm.json"):
        done = forks.run(*tuning(models[name], out))
        assert (done.code, remembered(done)) == (0, 0 if out == "cold.json" else 4), done.told
    assert "tokens read" not in done.told
    empty_cache()
    assert forks.run(*tuning(models[name], "again.json")).code == 0
    assert len({Path(f"{out}.json").read_bytes() for out in ("cold", "warm", "again")}) == 1
