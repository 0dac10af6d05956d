"""Searches for weights that are kept: found again by what was searched, and removed at the end."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tuning import ALONE, PAIRED, tune, write_tuning_set

from rerank.cache import Cache
from rerank.errors import StoppedEarly
from rerank.files.interrupts import Terminated
from rerank.notices import Notices
from rerank.pipeline import MertSettings, Plan, tuning
from rerank.tuning import saved
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import DocumentMean
from rerank.tuning.plan import POOLS
from rerank.tuning.saved import SavedSearches, content_digest
from rerank.tuning.tuners.table import ALGORITHMS

ROOT = Path(__file__).parents[2]
QUICK = MertSettings(kicks=1)


def searches_in(folder: Path, notices: Notices | None = None) -> SavedSearches:
    return SavedSearches(Cache(folder, notices or Notices(), 10**9))


def never() -> Optimum:
    raise AssertionError("it is kept")


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.int16])
def test_an_optimum_is_found_again_bit_for_bit(tmp_path: Path, kind: type) -> None:
    made = Optimum(np.array([0.1, -0.0, 1e-310]), np.arange(9).astype(kind), 1 / 3, 41)
    assert searches_in(tmp_path).optimum(("what", 1.0), lambda: made) is made
    again = list[str]()
    found = searches_in(tmp_path).optimum(("what", 1.0), never, lambda: again.append("again"))
    assert found.weights.tobytes() == made.weights.tobytes()
    assert found.statistics.tolist() == made.statistics.tolist()
    assert (found.value, found.searches, again) == (1 / 3, 41, ["again"])
    assert found.weights.flags.writeable


def test_another_search_or_another_version_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Optimum(np.array([w]), np.zeros(9, int), w) for w in (1.0, 2.0))
    assert searches_in(tmp_path).optimum(("what",), lambda: one).value == 1
    assert searches_in(tmp_path).optimum(("else",), lambda: other).value == 2
    monkeypatch.setattr(saved, "_group", lambda: "0" * 32)
    assert searches_in(tmp_path).optimum(("what",), lambda: other).value == 2


def test_what_the_run_used_is_removed_and_nothing_else(tmp_path: Path) -> None:
    made = Optimum(np.ones(1), np.zeros(9, int), 1.0)
    for what in "ab":
        searches_in(tmp_path).optimum(what, lambda: made)
    last = searches_in(tmp_path)
    for what in "bc":
        last.optimum(what, lambda: made)
    assert last.found == 1
    last.discard()
    assert len(list(tmp_path.glob("*/*.scores"))) == 1
    searches_in(tmp_path).optimum("a", never)


def test_a_damaged_result_is_searched_again(tmp_path: Path) -> None:
    made = Optimum(np.ones(1), np.zeros(9, int), 1.0)
    searches_in(tmp_path).optimum("a", lambda: made)
    (shard,) = tmp_path.glob("*/*.scores")
    shard.write_bytes(shard.read_bytes()[:-1])
    notices = Notices()
    assert searches_in(tmp_path, notices).optimum("a", lambda: made) is made
    assert [notice.count for notice in notices] == [1]


def test_without_a_cache_every_search_is_made() -> None:
    made = Optimum(np.ones(1), np.zeros(9, int), 1.0)
    searches = SavedSearches()
    assert searches.optimum((object(),), lambda: made) is made
    searches.discard()


# Digests


@dataclass(frozen=True)
class Pair:
    a: object
    b: object = None
    derived: int = field(default=0, init=False)

    def method(self) -> None: ...


def test_equal_values_have_equal_digests_in_every_process() -> None:
    program = (
        "import numpy as np; from rerank.tuning.saved import content_digest as of;"
        "from rerank.tuning.objectives.objective import DocumentMean, LengthPenalty;"
        "price = LengthPenalty(DocumentMean(), 1, 5);"
        "print(of([1, 'a', {'y': 1.5, 'x': None}, np.arange(3), price]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "01"
    }
    assert len(found) == 1


def test_different_values_have_different_digests() -> None:
    values: list[Any] = [
        *(1, 1.0, True, "1", b"1", None, 0.0, -0.0, (), (1,), (1, 1), ((1,), 1), (1, (1,))),
        *(np.array([1]), np.array([1.0]), np.array([[1]]), np.zeros(0), np.zeros((0, 1))),
        *(Pair(1), Pair(1, 2), Pair((1, 2)), Pair(1).method, Pair(2).method),
        *({"a": 1}, {"b": 1}, len, max, functools.partial(max, 1), functools.partial(max, 2)),
        *(DocumentMean(), np.array([1], ">i8")),
    ]
    assert len({content_digest(value) for value in values}) == len(values)
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    assert content_digest(np.arange(6)[::2]) == content_digest(np.array([0, 2, 4]))


def test_a_value_without_content_has_no_digest() -> None:
    with pytest.raises(TypeError, match="a set has no digest"):
        content_digest({1})


# Tunings that are stopped


class Stop(BaseException):
    """A kill, as far as the program can see it."""


@contextmanager
def stopped_after(n: int, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A tuning ends when n searches are saved; the names of those that it did save."""
    names, put = list[str](), Cache.put

    def counted(self: Cache, group: str, name: str, arrays: Any) -> bool:
        if len(names) == n:
            raise Stop
        names.append(name)
        return put(self, group, name, arrays)

    with patch.context() as patched:
        patched.setattr(Cache, "put", counted)
        yield names


PLANS: Sequence[Plan] = [
    *(Plan(pools, settings=QUICK, select="none") for pools in POOLS),
    *(Plan(algorithm=name, select="none") for name in ALGORITHMS),
    Plan(settings=QUICK),
    Plan(settings=replace(QUICK, threads=2)),
    Plan(settings=QUICK, replicates=2, select="none"),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: f"{p.pools}-{p.algorithm}-{p.select}")
def test_a_tuning_that_is_stopped_after_any_search_ends_with_the_same_file(
    plan: Plan, tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = Path(os.environ["RERANK_CACHE"])
    expected = list[str]()
    tune(PAIRED, plan, expected, out="expected.json", start="start.json")
    assert expected[-1].startswith("time ")
    assert list(shards.glob("*/*.scores")) == []
    n = 0
    while True:
        with stopped_after(n, monkeypatch) as names:
            try:
                tune(PAIRED, plan, out="out.json", start="start.json")
                break
            except Stop:
                assert len(names) == n
        said = list[str]()
        tune(PAIRED, plan, said, out="again.json", start="start.json")
        assert Path("again.json").read_bytes() == Path("expected.json").read_bytes()
        kept = f"kept from a run that was stopped: {n} searches for weights"
        assert [line for line in said if line != kept and line[:5] != "time "] == expected[:-1]
        assert (kept in said) == (n > 0)
        assert list(shards.glob("*/*.scores")) == []
        n += 1
    assert n > 0


def test_a_signal_while_the_weights_are_written_says_that_the_work_is_kept(
    tuning_lists: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signalled(*arguments: object, **options: object) -> None:
        raise Terminated

    plan = Plan(settings=QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "write_weights", signalled)
        with pytest.raises(StoppedEarly, match="kept in the cache: the same command goes on"):
            tune(ALONE, plan)
    said = list[str]()
    tune(ALONE, plan, said)
    assert any("kept from a run that was stopped" in line for line in said)


def test_other_lists_options_or_starts_use_nothing_of_an_earlier_tuning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tuning_set(3, [*"aabbccdd"], set())
    with stopped_after(99, monkeypatch), pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavedSearches, "discard", lambda self: None)
        tune(ALONE, Plan(settings=QUICK), start="start.json")
    said = list[str]()
    for change in (
        replace(QUICK, seed=2),
        replace(QUICK, kicks=2),
        replace(QUICK, random_starts=1),
    ):
        plan = Plan(settings=change, select="none")
        tune(ALONE, plan, said, start="start.json")
    assert not any("kept from" in line for line in said)


def test_the_digest_of_an_array_does_not_depend_on_its_order_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    array = np.arange(35.0).reshape(7, 5)
    found = content_digest(array)
    assert content_digest(np.asfortranarray(array)) == found
    monkeypatch.setattr(saved, "_ROWS", 2)
    assert content_digest(array) == content_digest(np.asfortranarray(array)) == found
    assert content_digest(np.array(3.0)) != content_digest(np.array(4.0))
