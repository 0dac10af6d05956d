"""Strategies of an ascent: which directions are searched, and when a step is taken.

`coordinates` is the default: on real pools it reaches the BLEU of `best-of-all` in half the
searches. The others are for comparison, and for pools where coordinates get stuck.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.errors import UsageError
from rerank.tuning.ascent import Point, Strategy
from rerank.tuning.expected_bleu import uphill
from rerank.tuning.line_search import Way

CHOSEN = 2  # first moves that are the best of all features
RANDOM = 50  # random directions without a gain that end a search; Moses' -m of mert-moses.pl


def coordinates(point: Point, rng: np.random.Generator) -> None:
    """Two best steps of all features, then every gain as it comes, feature by feature.

    The first moves decide into which basin a search falls, so they are chosen. Then every gain is
    taken, in the order of the features, which reaches the same BLEU in half the searches.
    """
    for _ in range(CHOSEN):
        if not _best_of(point, _axes(point)):
            break
    in_turn(point, rng)


def in_turn(point: Point, rng: np.random.Generator) -> None:
    """Every gain as it comes, feature by feature, until none of them gains."""
    axis = idle = 0
    while idle < len(point.axes.directions) and not point.exhausted:
        idle = 0 if point.try_along(point.axis(axis)) else idle + 1
        axis = (axis + 1) % len(point.axes.directions)


def best_of_all(point: Point, rng: np.random.Generator) -> None:
    """The best step of all features each time, as Moses' mert does."""
    while not point.exhausted and _best_of(point, _axes(point)):
        pass


def powell(point: Point, rng: np.random.Generator) -> None:
    """Passes over a set of directions, at first the features, of which the best is replaced.

    Where a pass has gained, it is gone on with along the whole of its way, and that way takes the
    place of the direction that gained most (Powell 1964, https://doi.org/10.1093/comjnl/7.2.155);
    a pass that gains nothing is tried once more with the features themselves.
    """
    vectors = [point.axes.vector(axis) for axis in range(len(point.axes.directions))]
    fresh = True
    while vectors and not point.exhausted:
        before, gains = point.weights, []
        for vector in vectors:
            value = point.value
            point.try_along(point.along(vector))
            gains.append(point.value - value)
        way = point.weights - before
        if not way.any():
            if fresh:
                return
            vectors = [point.axes.vector(axis) for axis in range(len(vectors))]
            fresh = True
            continue
        point.try_along(point.along(way))
        vectors[int(np.argmax(gains))] = way
        fresh = False


def random_directions(point: Point, rng: np.random.Generator) -> None:
    """Gaussian directions in spreads of the features, until 50 in a row gain nothing."""
    idle = 0
    spreads = point.axes.spreads
    while len(spreads) and idle < RANDOM and not point.exhausted:
        vector = np.zeros_like(point.weights)
        unit = rng.standard_normal(len(spreads))
        vector[point.axes.features] = unit / np.linalg.norm(unit) / spreads
        idle = 0 if point.try_along(point.along(vector)) else idle + 1


def gradient(point: Point, rng: np.random.Generator) -> None:
    """Coordinates, and where they are stuck the gradient of expected BLEU, until it gains nothing.

    It needs a pool of corpus BLEU's statistics.
    """
    coordinates(point, rng)
    while point.axes.directions and not point.exhausted:
        if not point.try_along(point.along(uphill(point.axes.pool, point.weights))):
            return
        in_turn(point, rng)


STRATEGIES: dict[str, Strategy] = {
    "coordinates": coordinates,
    "best-of-all": best_of_all,
    "powell": powell,
    "random": random_directions,
    "gradient": gradient,
}


def strategy(name: str) -> Strategy:
    """A strategy by its name; UsageError for another."""
    if name not in STRATEGIES:
        raise UsageError(f"--directions {name}: there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def _axes(point: Point) -> list[Way]:
    return [point.axis(axis) for axis in range(len(point.axes.directions))]


def _best_of(point: Point, ways: Sequence[Way]) -> bool:
    """Whether the best step of several ways, the first of equal ones, did gain."""
    if not ways:
        return False
    steps = [point.search(way) for way in ways]
    best = max(range(len(steps)), key=lambda i: steps[i].value - steps[i].here)
    return point.take(ways[best], steps[best])
