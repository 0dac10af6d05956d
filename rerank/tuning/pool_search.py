"""The search for the weights of a pool, and finished searches, kept until weights are written.

A tuning that was stopped is run again by the same command. Searches that it had finished are looked
up by the digest of everything that they were computed from: a run loses one search at most, and its
weights are those of a tuning that nothing disturbed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.signature import __version__
from rerank.notices import Notices
from rerank.registry import attribute
from rerank.tuning.goal import SearchGoal
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.tuners import ALGORITHMS, MERT
from rerank.tuning.tuners.ascent import Axes, Bounds, Optimum, PoolPoint, coordinates
from rerank.tuning.tuners.mert import PoolResult, optimise

if TYPE_CHECKING:
    from rerank.files.cache import Cache

_BLEU = 9  # statistics that every objective begins with
_ROWS = 1 << 16  # of an array that are copied at a time
_PACKAGES = ("tuning", "metrics")  # of rerank, the code that a result depends on
Floats: TypeAlias = NDArray[np.float64]
Tuner: TypeAlias = Callable[..., Floats]
"""`tuner(pool, start, rng=…)`: weights (F,) with a better corpus BLEU on a pool, on one thread.

They are finite, of any norm, and never worse than `start` (F,), which is returned where nothing
better is reached or BLEU does not depend on the weights. Features that vary in no list keep their
weight. An all-zero start without fixed scores may be replaced by any weights. The units of the
features do not matter, except for rounding.
"""


class SavedSearches:
    """Optima by what was searched, in a cache, if there is one; several threads may ask for them.

    found: searches whose result was there from an earlier run
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self.found = 0
        self._cache, self._lock = cache, Lock()
        self._names: set[str] = set()

    def optimum(self, n: int, searched: Sequence[object], search: Callable[[], Optimum]) -> Optimum:
        """What `search` for n weights returns, or returned in an earlier run.

        searched: everything that the result depends on, as `_add` takes it. The digest is O(bytes).
        """
        if self._cache is None:
            return search()
        digest = hashlib.sha256()
        try:
            _add(digest.update, searched)
        except TypeError:  # a metric of another package, made of other things
            return search()
        name = digest.hexdigest()
        with self._lock:
            arrays = self._cache.get(_group(), name)
            earlier = name not in self._names
            self._names.add(name)
        if arrays is not None:
            if optimum := _optimum_of(arrays, n):
                self.found += earlier
                return optimum
            with self._lock:  # anybody's arrays: the search is made again
                self._cache.refuse(_group(), name)
        optimum = search()
        statistics = optimum.statistics
        arrays = {
            "weights": optimum.weights,
            "statistics": statistics.astype(np.result_type(statistics, np.int64)),
            "value": np.array([optimum.value]),
            "searches": np.array([optimum.searches]),
        }
        with self._lock:
            self._cache.put(_group(), name, arrays)
        return optimum

    def discard(self) -> None:
        """Remove the results that this run read or wrote; its weights are on disk."""
        if self._cache is not None:
            for name in self._names:
                self._cache.remove(_group(), name)


def _optimum_of(arrays: Mapping[str, NDArray[Any]], n: int) -> Optimum | None:
    """The optimum of n weights in arrays of a cache; None if they hold anything else."""
    with suppress(KeyError, ValueError):
        value, searches = float(arrays["value"].item()), int(arrays["searches"].item())
        weights, statistics = arrays["weights"].copy(), arrays["statistics"].copy()
        sized = weights.shape == (n,) and statistics.ndim == 1 and statistics.shape >= (_BLEU,)
        numbers = np.concatenate([weights, statistics, [value]]) if sized else np.array([np.nan])
        if np.isfinite(numbers).all():
            return Optimum(weights, statistics, value, searches)
    return None


@functools.cache
def _group() -> str:
    """Group of all searches by this version of the program, by the text of its modules."""
    digest = hashlib.sha256(f"searches for weights 1 {__version__} {np.__version__}".encode())
    for package in _PACKAGES:
        for path in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _add(update: Callable[[bytes | memoryview], object], value: object) -> None:
    """Add a value to a digest that is equal in every process, by the digest's `update`.

    Functions count by name, dataclasses by the fields that are made from arguments and compared;
    TypeError for what has no digest.
    """
    if isinstance(value, np.ndarray):
        update(f"array {value.dtype.str} {value.shape};".encode())
        for rows in np.split(value, range(_ROWS, len(value), _ROWS)) if value.ndim else [value]:
            update(np.ascontiguousarray(rows).data.cast("B") if rows.size else b"")
    elif value is None or isinstance(value, bool | int | float | str | bytes):
        update(f"{type(value).__name__} {value!r};".encode())
    elif is_dataclass(value) and not isinstance(value, type):
        made = [each.name for each in fields(value) if each.init and each.compare]
        _add(update, (type(value).__qualname__, *((name, getattr(value, name)) for name in made)))
    elif isinstance(value, Mapping):
        _add(update, sorted(value.items()))
    elif isinstance(value, Sequence):
        update(f"sequence {len(value)};".encode())
        for member in value:
            _add(update, member)
    elif isinstance(value, functools.partial):
        _add(update, (value.func, value.args, value.keywords))
    elif is_dataclass(owner := getattr(value, "__self__", None)) and not isinstance(owner, type):
        _add(update, (getattr(value, "__name__", ""), owner))
    elif callable(value) and hasattr(value, "__qualname__"):
        _add(update, (value.__module__, value.__qualname__))
    else:
        raise TypeError(f"a {type(value).__name__} has no digest")


@dataclass(frozen=True, slots=True, eq=False)
class PoolSearch:
    """How the weights of F features, called `names`, are sought on a pool, for a goal."""

    plan: Plan
    goal: SearchGoal
    bounds: Bounds
    names: Sequence[str]
    saved: SavedSearches = field(default_factory=SavedSearches)

    def report(self, pool: Pool, notices: Notices) -> None:
        """Notices of features that cannot be tuned, or not apart, and of pools without a choice."""
        axes, names = Axes.of(pool), self.names
        if constant := sorted(set(range(len(names))) - set(axes.features.tolist())):
            notices.add("constant-feature", names=[names[feature] for feature in constant])
        spreads, equal = axes.spreads, list[str]()
        for g in range(len(axes.features)):
            for h in np.flatnonzero(spreads[:g] == spreads[g]):
                if np.array_equal(axes.columns[h], axes.columns[g]):
                    equal.append(f"{names[axes.features[g]]} = {names[axes.features[h]]}")
                    break
        if equal:
            notices.add("equal-features", names=equal)
        if axes.why_flat:
            notices.add("nothing-to-tune", why=axes.why_flat)

    def result(self, pool: Pool, start: Floats, history: Sequence[Floats] = ()) -> PoolResult:
        """The best weights from `start` (F,); MERT begins at those of `history` as well.

        Other tuners know no bounds, and of the plan's settings the seed alone.
        """
        plan, goal, bounds = self.plan, self.goal, self.bounds
        if plan.algorithm == MERT:
            return optimise(
                pool, start, settings=plan.settings, goal=goal, bounds=bounds, history=history
            )
        tuner: Tuner = attribute(ALGORITHMS[plan.algorithm])
        weights = tuner(pool, start, rng=np.random.default_rng(plan.settings.seed))
        weights = Axes.of(pool).normalised(weights, start, bounds)
        best = Optimum.at(pool, weights, goal)
        return PoolResult(best, Optimum.at(pool, start, goal), (best,))

    def best(self, pool: Pool, start: Floats, history: Sequence[Floats] = ()) -> Optimum:
        """The best of `result`, or of that of an earlier run."""
        return self.saved.optimum(
            len(start),
            (pool, start, self.plan.searched, self.goal, self.bounds, history),
            lambda: self.result(pool, start, history).best,
        )

    def climb(self, pool: Pool, start: Floats) -> Optimum:
        """The local optimum of a coordinate ascent from start weights (F,)."""

        def ascent() -> Optimum:
            axes = Axes.of(pool)
            optimum = coordinates(PoolPoint(axes, start, self.goal, bounds=self.bounds))
            if axes.why_flat:
                return optimum
            return replace(optimum, weights=axes.normalised(optimum.weights, start, self.bounds))

        searched = ("climb", pool, start, self.goal, self.bounds)
        return self.saved.optimum(len(start), searched, ascent)

    def quick(self, threads: int) -> PoolSearch:
        """The search with little effort: without random starts and kicks."""
        settings = replace(self.plan.settings, random_starts=0, kicks=0, threads=threads)
        return replace(self, plan=replace(self.plan, settings=settings))

    def of_features(self, chosen: NDArray[np.int64]) -> PoolSearch:
        """The search for the weights of some features (H,) alone, without a price of direction."""
        bounds = Bounds(self.bounds.low[chosen], self.bounds.high[chosen])
        names = [self.names[feature] for feature in chosen]
        return replace(self, goal=SearchGoal(self.goal.objective), bounds=bounds, names=names)
