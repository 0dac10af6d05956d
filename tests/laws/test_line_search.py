"""Line searches of MERT: envelopes of lists and of documents, against every path at every step.

Truth: meetings of two lines in exact fractions, enumeration of paths, and `decoders.viterbi`.
Style guide: slopes strictly increase along an envelope; the statistics of an interval are those of
direct rescoring; a factor of the weights changes nothing; no step lowers the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary, WeightedSum
from decoders.viterbi import viterbi
from rerank.tuning.exact.ascent import ChainSet, document_line
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.envelope import DocumentEnvelope, document_envelope
from rerank.tuning.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objective import CORPUS_BLEU, ObjectiveSum, hold_length
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import Axes, PoolPoint

Line = tuple[int, int]
"""Score and slope of a candidate."""
Floats = NDArray[np.float64]


def on_a_hill(line: Line) -> Line:
    """A line that touches a parabola: nearly all such lines are on the envelope."""
    return min(line[0], 0) // 8 - line[1] ** 2, line[1]


LINES = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
LISTS = st.one_of(
    st.lists(LINES, min_size=1, max_size=12),
    st.lists(LINES.map(on_a_hill), min_size=9, max_size=14),
)
SEEDS = st.integers(0, 2**32 - 1)


def counts(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Statistics of BLEU (n, 9): matches, of n-grams, that are rarer with n, and lengths."""
    totals = np.maximum(rng.integers(1, 12, (n, 1)) - np.arange(4), 0)
    matches = np.minimum.accumulate(rng.integers(0, totals + 1), axis=1)
    return np.hstack([matches, totals, rng.integers(1, 12, (n, 1))])


def pool_of(lists: list[list[Line]], seed: int = 0, *, scale: float = 1.0) -> Pool:
    """Lists of lines, each list a document; slopes are the feature, scores are fixed."""
    lines = np.array([line for own in lists for line in own], float).reshape(-1, 2)
    offsets = np.cumsum([0, *map(len, lists)])
    statistics = counts(np.random.default_rng(seed), len(lines))
    statistics[:, 8] = 7 + lines[:, 1]  # tells the slopes apart
    documents = np.arange(len(lists))
    return Pool(offsets, lines[:, 1:] * scale, statistics, lines[:, 0].copy(), documents)


def point_on(pool: Pool, goal: SearchGoal = BLEU_GOAL, weight: float = 0.0) -> PoolPoint:
    for array in (pool.features, pool.fixed, pool.statistics):
        array.flags.writeable = False
    return PoolPoint(Axes.of(pool), np.full(pool.features.shape[1], weight), goal)


def topmost(lines: list[Line], step: Fraction) -> int:
    """The first of the highest lines at a step, in whole numbers, times its denominator."""
    p, q = step.as_integer_ratio()
    heights = [score * q + slope * p for score, slope in lines]
    return heights.index(max(heights))


def steps_between(lists: list[list[Line]]) -> list[Fraction]:
    """A step between two neighbouring meetings of lines of a list, and one beyond each end."""
    found = {
        Fraction(a[0] - b[0], b[1] - a[1])
        for own in lists
        for a, b in combinations(own, 2)
        if a[1] != b[1]
    }
    places = sorted(found) or [Fraction(0)]
    return [places[0] - 1, *((a + b) / 2 for a, b in pairwise(places)), places[-1] + 1]


def sums_at(pool: Pool, lists: list[list[Line]], step: Fraction) -> NDArray[np.int64]:
    """Statistics (D, 9) of the candidates on top at a step."""
    rows = [
        int(begin) + topmost(own, step) for begin, own in zip(pool.offsets, lists, strict=False)
    ]
    return np.asarray(pool.statistics[rows])


@settings(max_examples=20)
@given(st.lists(LISTS, min_size=1, max_size=3), SEEDS)
def test_every_interval_of_a_line_has_the_statistics_of_direct_rescoring(
    lists: list[list[Line]], seed: int
) -> None:
    pool = pool_of(lists, seed)
    point = point_on(pool)
    if not len(point.features):
        return
    line = point.line(0)
    breaks = line.breaks[line.order]
    for step in steps_between(lists):
        before = line.order[: np.searchsorted(breaks, float(step), side="right")]
        found = np.zeros((len(lists), 9), np.int64)
        np.add.at(found, line.documents[before], line.changes[before])
        assert found.tolist() == sums_at(pool, lists, step).tolist()


@settings(max_examples=20)
@given(LISTS)
def test_slopes_and_breaks_strictly_increase_along_an_envelope(lines: list[Line]) -> None:
    point = point_on(pool_of([lines]))
    if len(point.features):
        line = point.line(0)
        assert (line.changes[line.order][1:, 8] > 0).all()
        assert (np.diff(line.breaks[line.order]) > 0).all()


@pytest.mark.parametrize(
    ("lines", "slopes", "breaks"),
    [
        ([(3, 1), (3, 1), (0, 0)], [0, 1], [-3.0]),
        ([(1, 2), (3, 2), (2, 2), (0, 0)], [0, 2], [-1.5]),
        ([(0, 0), (0, 1), (0, -1)], [-1, 1], [0.0]),
        ([(0, 1), (-9, 0), (0, -1)], [-1, 1], [0.0]),
        ([(0, 1), (1, 0), (0, -1)], [-1, 0, 1], [-1.0, 1.0]),
    ],
    ids=["identical", "parallel", "through a point", "a line below", "a line above"],
)
def test_envelopes_of_special_lists(
    lines: list[Line], slopes: list[int], breaks: list[float]
) -> None:
    line = point_on(pool_of([lines])).line(0)
    assert (np.cumsum(line.changes[line.order][:, 8]) - 7).tolist() == slopes
    assert line.breaks[line.order].tolist() == [-np.inf, *breaks]


@settings(max_examples=20)
@given(st.lists(LISTS, min_size=1, max_size=3), st.integers(-100, 100))
def test_a_factor_of_the_feature_divides_every_step(lists: list[list[Line]], exponent: int) -> None:
    """A power of two, which rounds nothing."""
    plain, scaled = point_on(pool_of(lists)), point_on(pool_of(lists, scale=2.0**exponent))
    if len(plain.features):
        one, two = plain.search(0), scaled.search(0)
        assert (two.size * 2.0**exponent, two.value) == (one.size, one.value)


@pytest.mark.parametrize("scale", [1e-30, 1e-200, 1e30, 1e150])
def test_huge_and_tiny_features_are_searched_as_others(scale: float) -> None:
    lists = [[(-s * s, s) for s in range(-9, 10)], [(3 * s, -s) for s in range(4)]]
    one, two = (point_on(pool_of(lists, 3, scale=x)).search(0) for x in (1.0, scale))
    assert two.value == one.value
    assert two.size * scale == pytest.approx(one.size, rel=1e-9)


def test_slopes_that_differ_by_rounding_are_parallel() -> None:
    features = np.array([[1.0], [1.0 + 2.0**-50], [-1.0]])
    pool = Pool(np.array([0, 3]), features, np.eye(3, 9, dtype=np.int64), np.array([0.0, 1, 0]))
    assert point_on(pool).line(0).changes.tolist()[1:] == [[0, 1, -1, *[0] * 6]]


# The best step


@dataclass(frozen=True)
class MeanLength:
    """An objective without a compiled pass: the mean over documents of |words − 5|, negated."""

    name: str = "mean length"

    def value(self, sums: NDArray[Any]) -> float:
        return -float(np.abs(sums[:, 4] - 5).mean())

    def along(self, changes: NDArray[Any], documents: NDArray[np.int64]) -> Floats:
        now, values = np.zeros((int(documents.max()) + 1, 9)), []
        for change, document in zip(changes, documents, strict=True):
            now[document] += change
            values.append(self.value(now))
        return np.array(values)


def bleu(sums: NDArray[Any]) -> float:
    total = sums.sum(axis=0).tolist()
    counted = total[:4], total[4:8], total[4], total[8]
    return float(sacrebleu.BLEU.compute_bleu(*counted, smooth_method="exp").score)


def bleu_at(length: int) -> Any:
    """BLEU against references of this length in all."""

    def value(sums: NDArray[Any]) -> float:
        total = sums.sum(axis=0)
        factor = length / 50  # references of `HELD`
        total[8] = np.floor(factor * total[8] + 0.5)
        return bleu(total[None])

    return value


HELD = np.array([[0, 0, 0, 0, 90, 0, 0, 0, 50]])
GOALS = pytest.mark.parametrize(
    ("goal", "value"),
    [
        (BLEU_GOAL, bleu),
        (SearchGoal(MeanLength()), MeanLength().value),
        (SearchGoal(hold_length(CORPUS_BLEU)).at(HELD), bleu_at(90)),
        (SearchGoal(hold_length(ObjectiveSum(((1.0, CORPUS_BLEU),)))).at(HELD), bleu_at(90)),
    ],
    ids=["compiled", "general", "held length, compiled", "held length, general"],
)


@GOALS
@settings(max_examples=20)
@given(lists=st.lists(LISTS, min_size=1, max_size=3), seed=SEEDS)
def test_the_best_step_is_the_best_of_all_intervals_and_scores_as_predicted(
    lists: list[list[Line]], seed: int, goal: SearchGoal, value: Any
) -> None:
    pool = pool_of(lists, seed)
    point = point_on(pool, goal)
    begin = point.value
    assert begin == pytest.approx(value(sums_at(pool, lists, Fraction(0))), abs=1e-9)
    if not len(point.features):
        return
    step = point.search(0)
    every = [value(sums_at(pool, lists, place)) for place in steps_between(lists)]
    assert step.value == pytest.approx(max(*every, begin), abs=1e-8)
    assert point.take(0, step) == (step.value > begin)
    assert value(pool.decode(point.weights)) == pytest.approx(step.value, abs=1e-8)
    assert point.search(0).size == 0.0
    taken = point.take(0, type(step)(math.pi, 101.0))  # gains in prediction alone; on no break
    assert not taken or point.value == pytest.approx(step.value, abs=1e-8)


@GOALS
@pytest.mark.parametrize("seed", range(6))
def test_no_step_lowers_the_value_where_breaks_of_lists_differ_by_rounding_alone(
    seed: int, goal: SearchGoal, value: Any
) -> None:
    """Features are small counts, so that lists share their breaks but for rounding."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 4, (160, 3)).astype(float)
    pool = Pool(np.arange(0, 161, 8), features, counts(rng, 160), np.zeros(160), np.arange(20) // 5)
    point = PoolPoint(Axes.of(pool), rng.standard_normal(3), goal)
    for axis in (0, 1, 2, 0):
        before, step = point.value, point.search(axis)
        point.take(axis, step)
        assert point.value == pytest.approx(step.value, abs=1e-9)
        assert point.value >= before
        assert point.value == pytest.approx(value(pool.decode(point.weights)), abs=1e-9)


# Documents: exact envelopes


def pair_counts(sizes: list[int]) -> NDArray[np.int64]:
    """Pairs (T,) of candidates with those of the sentence before; of the first one: alone."""
    return np.array([a * b for a, b in zip([1, *sizes], sizes, strict=False)], np.int64)


def chain_of(seed: int, sizes: list[int], *, contextual: int = 2, spread: int = 9) -> DocumentChain:
    """Two static features, then contextual ones; multiples of a quarter, so that sums are exact."""
    rng = np.random.default_rng(seed)
    n, n_pairs = sum(sizes), int(pair_counts(sizes).sum())
    kinds = (np.float32, np.float64)
    pairs = [rng.integers(-spread, spread + 1, n_pairs) / 4 for _ in range(contextual)]
    return DocumentChain(
        np.cumsum([0, *sizes]),
        rng.integers(-9, 10, (2 + contextual, n)) / 4,
        rng.integers(-9, 10, n) / 4,
        rng.integers(0, 50, (n, 9)),
        np.arange(2, 2 + contextual),
        tuple(own.astype(kinds[c % 2]) for c, own in enumerate(pairs)),
    )


def envelope_of(
    chain: DocumentChain, weights: Floats, direction: Floats, *, hi: float = 2.0, most: int = 10**6
) -> DocumentEnvelope:
    """The envelope from weights (F,) along a direction (F,), for steps from −hi to hi."""
    unary = (chain.unary(weights), chain.slopes(direction))
    pair = (weights[chain.contextual], direction[chain.contextual])
    for array in (*unary, *pair, *chain.pairs, chain.columns, chain.statistics, chain.offsets):
        array.flags.writeable = False
    return document_envelope(chain, unary, pair, lo=-hi, hi=hi, most=most)


def paths_of(found: DocumentEnvelope) -> list[NDArray[np.int64]]:
    """Rows (T,) of the best path of each segment."""
    path, paths = found.first.copy(), [found.first.copy()]
    for begin, end in pairwise(found.starts.tolist()):
        path[found.sentences[begin:end]] = found.rows[begin:end]
        paths.append(path.copy())
    return paths


def score(chain: DocumentChain, rows: NDArray[np.int64], weights: Floats) -> float:
    """Score of a path, pair by pair."""
    total, begin, sizes = float(chain.unary(weights)[rows].sum()), 0, np.diff(chain.offsets)
    choices = rows - chain.offsets[:-1]
    for t, size in enumerate(sizes):
        at = begin + (choices[t - 1] if t else 0) * size + choices[t]
        for feature, flat in zip(chain.contextual, chain.pairs, strict=True):
            total += float(weights[feature] * flat[at])
        begin += (sizes[t - 1] if t else 1) * size
    return total


def decoded(chain: DocumentChain, weights: Floats) -> NDArray[np.int64]:
    """Rows (T,) of the path that Viterbi search finds."""
    sizes, scores = np.diff(chain.offsets).tolist(), chain.unary(weights)
    problems: list[tuple[float, Any]] = [
        (1.0, Unary([scores[a:b] for a, b in pairwise(chain.offsets)]))
    ]
    for feature, flat in zip(chain.contextual, chain.pairs, strict=True):
        parts = np.split(flat, np.cumsum(pair_counts(sizes))[:-1])
        matrices = [part.reshape(-1, k) for part, k in zip(parts, sizes, strict=True)]
        problems.append((float(weights[feature]), Pairwise(matrices)))
    best = viterbi(WeightedSum(problems))[0]
    return np.asarray(chain.offsets[:-1] + np.array(best.choices, np.int64))


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)
VECTORS = st.lists(st.integers(-4, 4), min_size=4, max_size=4).map(lambda q: np.array(q) / 4)


@settings(max_examples=20)
@given(SEEDS, SIZES, VECTORS, VECTORS)
def test_in_every_segment_of_a_document_the_path_is_the_best_of_all(
    seed: int, sizes: list[int], weights: Floats, direction: Floats
) -> None:
    chain = chain_of(seed, sizes)
    found = envelope_of(chain, weights, direction)
    assert found.complete
    assert (np.diff(found.breaks) > 0).all()
    every = [np.array(rows) for rows in product(*(range(a, b) for a, b in pairwise(chain.offsets)))]
    paths, steps = paths_of(found), [-2.0, *found.breaks.tolist(), 2.0]
    for path, (a, b) in zip(paths, pairwise(steps), strict=True):
        for step in (a + (b - a) / 8, (a + b) / 2, b - (b - a) / 8):
            here = weights + step * direction
            most = max(score(chain, rows, here) for rows in every)
            assert score(chain, path, here) == pytest.approx(most, abs=1e-9)
    sums = [chain.statistics[path].sum(axis=0) for path in paths]
    assert np.array_equal(found.changes(chain.statistics), np.diff(sums, axis=0).reshape(-1, 9))


@settings(max_examples=20)
@given(SEEDS, SIZES, VECTORS)
def test_at_a_single_step_the_path_is_that_of_the_decoder_ties_included(
    seed: int, sizes: list[int], weights: Floats
) -> None:
    chain = chain_of(seed, sizes, spread=2)
    found = envelope_of(chain, weights, np.ones(4), hi=0.0)
    assert found.first.tolist() == decoded(chain, weights).tolist()
    assert len(found.breaks) == 0


@pytest.mark.parametrize("strength", [0.05, 1.0, 20.0], ids=str)
@pytest.mark.parametrize("feature", [0, 2], ids=["static", "contextual"])
def test_a_long_document_is_decoded_as_predicted(strength: float, feature: int) -> None:
    """Of 15 lists of 20: with weak context few candidates, with strong context all are kept."""
    rng = np.random.default_rng(5)
    chain = chain_of(5, [20] * 15, contextual=1)
    pairs = (rng.standard_normal(len(chain.pairs[0])),)
    chain = replace(chain, columns=rng.standard_normal((3, 300)), pairs=pairs)
    weights, direction = np.array([1.0, -0.5, strength]), np.eye(3)[feature]
    found = envelope_of(chain, weights, direction)
    assert len(found.breaks) > 10 or strength == 20
    steps, paths = [-2.0, *found.breaks.tolist(), 2.0], paths_of(found)
    for i in range(0, len(paths), 9):
        here = weights + (steps[i] + steps[i + 1]) / 2 * direction
        rows = decoded(chain, here)
        assert score(chain, paths[i], here) == pytest.approx(score(chain, rows, here), abs=1e-9)
        if steps[i + 1] - steps[i] > 1e-6:
            assert paths[i].tolist() == rows.tolist()


def test_an_envelope_of_more_breaks_than_the_limit_is_incomplete() -> None:
    chain, direction = chain_of(9, [8] * 40), np.array([0.5, -0.5, 1.0, 0.5])
    weights = np.array([1.0, 0.5, 0.25, 0.5])
    assert envelope_of(chain, weights, direction).complete
    assert not envelope_of(chain, weights, direction, most=10).complete


def test_a_range_with_more_breaks_than_the_limit_is_halved_with_a_notice() -> None:
    """What is left of it has the breaks of the whole range there."""
    chains = [chain_of(seed, [8] * 20) for seed in (9, 5)]
    documents = ChainSet.of(chains, np.zeros((2, 9), np.int64))
    line = np.array([1.0, 0.5, 0.25, 0.5]), np.array([0.5, -0.5, 1.0, 0.5])
    unaries, notices = documents.unaries(line[0]), Mock()
    whole = document_line(documents, unaries, line, notices=notices)
    assert max(np.bincount(whole.documents)) > 20
    assert not notices.add.called
    part = document_line(documents, unaries, line, notices=notices, most=10)
    assert "changes of a document's best path in the range" in notices.add.call_args.args[0]
    assert part.span[1] == whole.span[1] / 2**notices.add.call_count
    inside = (whole.breaks > part.span[0]) & (whole.breaks < part.span[1])
    assert np.sort(part.breaks)[2:] == pytest.approx(np.sort(whole.breaks[inside]), abs=1e-9)
