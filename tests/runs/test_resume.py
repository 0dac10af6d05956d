"""Runs that a signal stops, or a kill ends, finish with the same bytes when they are run again."""

import os
import re
import signal
from collections.abc import Sequence
from itertools import count, cycle
from typing import Any

import pytest
from support import causal
from support.forked import STOPPING, start, stopped
from support.packages import install
from support.runs import DOCUMENTS, MODELS, STOPPED, decoding, recalled, shards, taken, tuning
from support.texts import TRAIN, with_texts
from support.tuned import FROM_START, PAIRS, mark_references
from support.world import Outcome, World

from lm.causal import CausalEngine


# Stopped
@pytest.mark.parametrize(("model", "number"), [*zip(cycle(MODELS), STOPPING, strict=False)])
def test_a_decoding_that_is_stopped_keeps_its_scores_and_goes_on_from_there(
    model: str, number: signal.Signals, drawn: World
) -> None:
    drawn.ok(decoding(model, "--deterministic --no-cache"))
    expected, before = taken(drawn), drawn.files()
    with stopped(number, 3):  # in the second shard, or where the first output is written
        run = drawn.run(decoding(model))
    assert (run.exit, run.err.endswith(f"{STOPPED}\n")) == (75, True), run.err
    assert drawn.files() == before
    assert shards() != []
    again = drawn.ok(decoding(model))
    assert recalled(again) > 0
    assert taken(drawn) == expected


def test_a_transformer_scores_nothing_twice(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal arrives while scores are computed, and before any document is complete."""
    causal.save(drawn.folder / "gpt")
    command = "score --kbest dev.kbest --docs dev.docs --lm g=hf:gpt,sentences=1 --out out.txt"
    sizes, calls, real = list[int](), 0, CausalEngine.scores

    def scored(engine: CausalEngine, requests: Sequence[Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls == stop:
            os.kill(os.getpid(), signal.SIGTERM)
        sizes.append(sum(tree.n_tokens for _, trees in requests for tree in trees))
        return real(engine, requests)

    monkeypatch.setattr(CausalEngine, "scores", scored)
    stop = 0
    drawn.ok(f"{command} --deterministic")
    expected, whole, stop = taken(drawn), sum(sizes), max(2, calls - 1)
    drawn.ok("cache clear")
    sizes, calls = [], 0
    with stopped(signal.SIGTERM, 10**6):
        found = drawn.run(f"{command} --deterministic")
    assert (found.exit, found.err.endswith(f"{STOPPED}\n")) == (75, True), found.err
    done, stop, sizes = sum(sizes), 0, []
    drawn.ok(f"{command} --deterministic")
    assert taken(drawn) == expected
    assert 0 < done < whole
    assert done + sum(sizes) == whole + sizes[0]  # with which each run checks its engine


@pytest.mark.parametrize("number", STOPPING, ids=lambda one: one.name)
def test_a_run_stopped_with_nothing_kept_says_so(number: signal.Signals, drawn: World) -> None:
    before = drawn.files()
    with stopped(number, 1):
        run = drawn.run(decoding("codclm", "--no-cache"))
    assert run.exit == (130 if number == signal.SIGINT else 143)
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert run.err.endswith(f"rerank: {word}; nothing was saved\n")
    assert (drawn.files(), shards()) == (before, [])


@pytest.mark.parametrize(("number", "model"), [*zip(STOPPING, ("ccdclm", None), strict=False)])
def test_a_tuning_that_is_stopped_goes_on_with_equal_weights(
    number: signal.Signals, model: str | None, drawn: World
) -> None:
    """Without a model what is kept is that of a search for weights, until these are written."""
    drawn.ok(tuning(model))
    expected = taken(drawn)
    drawn.ok("cache clear")
    before = drawn.files()
    with stopped(number, 5):
        run = drawn.run(tuning(model))
    assert (run.exit, STOPPED in run.err) == (75, True), run.err
    assert drawn.files() == before
    again = drawn.ok(tuning(model))
    assert taken(drawn) == expected
    assert model is not None or "kept from a run that was stopped" in again.err
    assert (shards() != []) == (model is not None)


# Searches for weights
KEPT = re.compile(r"^kept from a run that was stopped: (\d+) searches for weights$", re.M)


@pytest.mark.parametrize("options", [PAIRS, "--algorithm pro", "--replicates 2 --select none"])
def test_searches_of_a_failed_run_are_kept_for_the_next(world: World, options: str) -> None:
    """No alpha can be fitted to the lists, so that --strict ends a run after its searches."""
    world.draw(2, "vvwwxxyyzz", ())
    first = mark_references(world, 1.0)
    command = f"{FROM_START} --features same,TM0 --length-ratio free {options}"
    plain = world.ok(command, RERANK_CACHE="one")
    assert not KEPT.search(plain.err)
    written = world.content("out.json")
    (world.folder / "out.json").unlink()
    assert world.run(command, "--strict", RERANK_CACHE="two").exit == 3
    assert not (world.folder / "out.json").exists()
    if "pro" not in options:
        other = world.ok(command, "--length-ratio", 0.9, RERANK_CACHE="two")
        assert not KEPT.search(other.err)
    world.write("dev.ref", ["the lamp is lit", *first[1:]])
    folds = [] if "--select none" in options else ["1"]  # the first document is left out of one
    assert KEPT.findall(world.ok(command, RERANK_CACHE="two").err) == folds
    world.write("dev.ref", first)
    again = world.ok(command, RERANK_CACHE="two")
    assert KEPT.search(again.err)
    assert world.content("out.json") == written
    assert not KEPT.search(world.ok(command, RERANK_CACHE="two").err)


METRIC = """
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from rerank.metrics import SentenceMetric

def worth(word, *, of):
    return of.get(word, 0.0)

@dataclass
class Worth(SentenceMetric):
    name = "worth"
    of: Callable = partial(worth, of={"lamp": LAMP, "light": 1.0})
    parts: object = PARTS

    def score(self, hypothesis, references):
        return sum(map(self.of, hypothesis.split()))
"""


def test_searches_are_kept_by_metric_values(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """--strict ends the first run after its searches: without a match no alpha can be fitted."""
    world.draw(2, "vvwwxxyyzz", ())
    world.write("dev.ref", ["unheard"] * 10)
    command = f"{FROM_START} --select none --shrink 0 --objective worth"
    allowed = "repeated-line unexplained-difference unlike-lines other-language characters-as-words"
    strict = ["--strict", *(f"--allow={kind}" for kind in allowed.split())]

    def run(lamp: float, parts: str = "()", *options: str) -> Outcome:
        folder = world.folder / f"version{len(list(world.folder.iterdir()))}"
        folder.mkdir()
        source = METRIC.replace("LAMP", str(lamp)).replace("PARTS", parts)
        install(folder, monkeypatch, source, {"metrics": {"worth": "Worth"}})
        return world.run(command, *options)

    assert run(2.0, "()", *strict).exit == 3
    other = run(-2.0)
    assert (other.exit, KEPT.search(other.err)) == (0, None)
    assert KEPT.search(run(2.0).err)
    assert run(2.0, "frozenset()", *strict).exit == 3
    unknown = run(2.0, "frozenset()")
    assert (unknown.exit, KEPT.search(unknown.err)) == (0, None)


INTERRUPTING = """
import signal, threading
from rerank.metrics import SentenceMetric

class Interrupting(SentenceMetric):
    name, once = "interrupting", threading.Lock()  # a second signal would come after the command

    def score(self, hypothesis, references):
        return float(len(hypothesis))

    def scores(self, summed):
        in_thread = threading.current_thread() is not threading.main_thread()
        if in_thread and self.once.acquire(blocking=False):
            signal.raise_signal(signal.SIGINT)
        return super().scores(summed)
"""


def test_a_signal_ends_a_search_in_threads(drawn: World, monkeypatch: pytest.MonkeyPatch) -> None:
    install(drawn.folder, monkeypatch, INTERRUPTING, {"metrics": {"mine": "Interrupting"}})
    run = drawn.run(f"{FROM_START} --select none --objective mine --threads 2")
    assert run.exit == 130
    assert "Traceback" not in run.err
    assert not (drawn.folder / "out.json").exists()


# Training
TWICE = f"{TRAIN} --epochs 2"


def folder(world: World, name: str = "lm") -> dict[str, bytes]:
    """Files of a model, without the state of its training."""
    result = world.files()
    return {one: result[one] for one in result if re.fullmatch(rf"{name}/[^/]*", one)}


@pytest.mark.parametrize(
    ("options", "writes"),
    [("--model codclm", (12, 17)), ("--model hrnnlm --levels two-step", (4, 9))],
    ids=["late", "early"],
)
def test_a_training_that_is_stopped_goes_on_as_if_it_had_not_been(
    options: str, writes: tuple[int, int], world: World
) -> None:
    with_texts(world)
    command = f"{TWICE} {options} --curve curve.tsv"
    world.ok(command)
    expected, curve = folder(world), world.text("curve.tsv")
    for name in world.files():
        if name.startswith(("lm/", "curve")):
            (world.folder / name).unlink()
    for number, n in zip((signal.SIGTERM, signal.SIGHUP), writes, strict=True):
        with stopped(number, n):
            run = world.run(command, "--resume")
        assert run.exit == 75
        assert run.err.splitlines()[-1].startswith("rerank: lm: stopped, state saved; ")
        assert "model written" not in run.err
    world.ok(command, "--resume")
    assert folder(world) == expected
    assert untimed(world.text("curve.tsv")) == untimed(curve)  # every validation once


def untimed(curve: str) -> list[list[str]]:
    """Lines of a learning curve without what the clock says."""
    return [line.split("\t")[:2] + line.split("\t")[3:] for line in curve.splitlines()]


def test_a_finished_training_that_is_resumed_stays_as_it_is(world: World) -> None:
    with_texts(world)
    command = f"{TWICE} --model codclm --resume"
    world.write("lm/resume/left", "")  # of a run that was killed before its first state was whole
    world.ok(command)  # there was nothing to resume: a new run
    before = folder(world)
    assert "lm: this run is finished; nothing is left to do" in world.ok(command).err
    assert folder(world) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("--hidden 7", "hidden was 8, is 7"),
        ("--epochs 9", "epochs was 2, is 9"),
        ("--head self-normalised", "head was None, is self-normalised"),
        ("--train valid.txt", "vocabulary was 12, is 10; training text was"),
    ],
)
def test_another_training_is_not_resumed(change: str, told: str, world: World) -> None:
    with_texts(world)
    with stopped(signal.SIGTERM, 3):
        assert world.run(TWICE, "--model", "codclm").exit == 75
    refused = world.refused(TWICE, "--model", "codclm", *change.split(), "--resume", exit=3)
    assert f"the interrupted run was another one: {told}" in refused


# Killed
def test_a_run_that_is_killed_at_any_write_is_completed_by_running_it_again(drawn: World) -> None:
    drawn.ok(decoding("ccdclm", "--deterministic --no-cache"))
    expected, before = taken(drawn), drawn.files().keys()
    kept = 0
    for n in count(1, 7):
        drawn.ok("cache clear")
        result = start(decoding("ccdclm"), (signal.SIGKILL, n)).wait()
        if result.exit == 0:
            break
        assert result.exit == -signal.SIGKILL
        kept = max(kept, len(shards()))
        assert taken(drawn).items() <= expected.items()  # a kill between renames: some, and whole
        again = drawn.ok(decoding("ccdclm"))
        assert ("damaged" in again.err, recalled(again) > 0) == (False, n > 2)
        assert taken(drawn) == expected
    assert kept == DOCUMENTS
    for left in drawn.files().keys() - before - expected.keys():  # temporary files of the killed
        assert re.fullmatch(r"\.out\.[a-z]+\.\d+\.[0-9a-f]{8}\.tmp", left)
