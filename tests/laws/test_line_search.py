"""Line searches of MERT: envelopes of lists and of documents, against every path at every step.

Truth: meetings of two lines in exact fractions, enumeration of paths, and `decoders.viterbi`.
Style guide: slopes strictly increase along an envelope; the statistics of an interval are those of
direct rescoring; a factor of the weights changes nothing; no step lowers the value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.viterbi import viterbi
from rerank.corpus.columns import Label
from rerank.scorers.features import DocumentFeatures, FeatureSource, FeatureSpace
from rerank.tuning.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objective import CORPUS_BLEU, ObjectiveSum, hold_length
from rerank.tuning.pool import Pool
from rerank.tuning.tables import DocumentTables, tabular
from rerank.tuning.tuners.ascent import Axes, PoolPoint

Line = tuple[int, int]
"""Score and slope of a candidate."""
Floats = NDArray[np.float64]

LINES = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
# of lines that touch a parabola nearly all are on the envelope
ON_A_HILL = LINES.map(lambda line: (min(line[0], 0) // 8 - line[1] ** 2, line[1]))
LISTS = st.lists(LINES, min_size=1, max_size=12) | st.lists(ON_A_HILL, min_size=9, max_size=14)
SEEDS = st.integers(0, 2**32 - 1)


def counts(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Statistics of BLEU (n, 9): matches, of n-grams, that are rarer with n, and lengths."""
    totals = np.maximum(rng.integers(1, 12, (n, 1)) - np.arange(4), 0)
    matches = np.minimum.accumulate(rng.integers(0, totals + 1), axis=1)
    return np.hstack([matches, totals, rng.integers(1, 12, (n, 1))])


def pool_of(lists: list[list[Line]], seed: int = 0, *, scale: float = 1.0) -> Pool:
    """Lists of lines, each list a document; slopes are the feature, scores are fixed."""
    lines = np.array([line for of_list in lists for line in of_list], float).reshape(-1, 2)
    offsets = np.cumsum([0, *map(len, lists)])
    statistics = counts(np.random.default_rng(seed), len(lines))
    statistics[:, 8] = 7 + lines[:, 1]  # tells the slopes apart
    documents = np.arange(len(lists))
    return Pool(offsets, lines[:, 1:] * scale, statistics, lines[:, 0].copy(), documents)


def point_on(pool: Pool, goal: SearchGoal = BLEU_GOAL, weight: float = 0.0) -> PoolPoint:
    for array in (pool.features, pool.fixed, pool.statistics):
        array.flags.writeable = False
    return PoolPoint(Axes.of(pool), np.full(pool.features.shape[1], weight), goal)


def steps_between(lists: list[list[Line]]) -> list[Fraction]:
    """A step between two neighbouring meetings of lines of a list, and one beyond each end."""
    result = {
        Fraction(a[0] - b[0], b[1] - a[1])
        for of_list in lists
        for a, b in combinations(of_list, 2)
        if a[1] != b[1]
    }
    places = sorted(result) or [Fraction(0)]
    return [places[0] - 1, *((a + b) / 2 for a, b in pairwise(places)), places[-1] + 1]


def sums_at(pool: Pool, lists: list[list[Line]], step: Fraction) -> NDArray[np.int64]:
    """Statistics (D, 9) of the first of the highest lines at a step; heights are exact."""
    rows = []
    for begin, of_list in zip(pool.offsets.tolist(), lists, strict=False):
        heights = [score + slope * step for score, slope in of_list]
        rows.append(begin + heights.index(max(heights)))
    return np.asarray(pool.statistics[rows])


@settings(max_examples=20)
@given(st.lists(LISTS, min_size=1, max_size=3), SEEDS)
def test_every_interval_has_statistics_of_rescoring(lists: list[list[Line]], seed: int) -> None:
    pool = pool_of(lists, seed)
    point = point_on(pool)
    if not len(point.features):
        return
    line = point.line(0)
    breaks = line.breaks[line.order]
    for step in steps_between(lists):
        before = line.order[: np.searchsorted(breaks, float(step), side="right")]
        result = line.changes[before].sum(axis=0)
        assert result.tolist() == sums_at(pool, lists, step).sum(axis=0).tolist()


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
def test_envelopes_of_odd_lists(lines: list[Line], slopes: list[int], breaks: list[float]) -> None:
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
class Length:
    """An objective without a compiled pass: |words of the output − 12|, negated."""

    name: str = "length"

    def value(self, sums: NDArray[Any]) -> float:
        return -float(np.abs(sums[:, 4].sum() - 12))

    def along(self, changes: NDArray[Any]) -> Floats:
        rows = range(1, len(changes) + 1)
        return np.array([self.value(changes[:row].sum(axis=0)[None]) for row in rows])


def bleu(sums: NDArray[Any]) -> float:
    total = sums.sum(axis=0).tolist()
    counted = total[:4], total[4:8], total[4], total[8]
    return float(sacrebleu.BLEU.compute_bleu(*counted, smooth_method="exp").score)


def bleu_near(ratio: float, price: float) -> Any:
    """BLEU less a price for a length ratio that is off by 1."""

    def value(sums: NDArray[Any]) -> float:
        total = sums.sum(axis=0)
        own = total[4] / max(total[8], 1) if total[8] else 0.0  # as `length_ratio`
        return float(bleu(total[None]) - price * abs(own - ratio))

    return value


HELD = np.array([[0, 0, 0, 0, 90, 0, 0, 0, 50]])
GOALS = pytest.mark.parametrize(
    ("goal", "value"),
    [
        (BLEU_GOAL, bleu),
        (SearchGoal(Length()), Length().value),
        (SearchGoal(hold_length(CORPUS_BLEU)).at(HELD), bleu_near(1.8, 5)),
        (SearchGoal(hold_length(ObjectiveSum(((1.0, CORPUS_BLEU),)))).at(HELD), bleu_near(1.8, 5)),
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


# Documents: exact search for tuning
VECTORS = st.lists(st.integers(-2, 2), min_size=4, max_size=4).map(lambda q: np.array(q) / 4)


def document_of(seed: int, sizes: list[int], kinds: Sequence[tuple[int, Any]]) -> DocumentFeatures:
    """A feature of the list, a scorer of order 0, and one for each order and kind of number.

    Multiples of a quarter.
    """
    rng = np.random.default_rng(seed)
    orders = [0, *(order for order, _ in kinds)]
    sources = [FeatureSource(f"scorer{c}", order=order) for c, order in enumerate(orders)]
    space = FeatureSpace.of((Label("a", 1),), sources, total=False)
    static = np.zeros((sum(sizes), 1 + len(orders)))
    static[:, 0] = rng.integers(-2, 3, sum(sizes)) / 4
    problems: list[Any] = [Unary([rng.integers(-2, 3, size) / 4 for size in sizes])]
    for order, kind in kinds:
        shapes = [(*sizes[max(0, t - order) : t], size) for t, size in enumerate(sizes)]
        tables = [(rng.integers(-2, 3, shape) / 4).astype(kind) for shape in shapes]
        chain = [table.reshape(-1, size) for table, size in zip(tables, sizes, strict=True)]
        problems.append(Pairwise(chain) if order == 1 else HistoryTable(tables, order))
    offsets = np.cumsum([0, *sizes])
    return DocumentFeatures(
        "d", space, static, np.zeros(sum(sizes)), tuple(problems), offsets, np.arange(len(sizes))
    )


@pytest.mark.parametrize(
    "kinds",
    [
        ((1, np.float32),),
        ((1, np.float64), (1, np.float32)),
        ((2, np.float64),),
        ((3, np.float64), (1, np.float32)),
        ((1, np.float32), (2, np.float32)),
    ],
    ids=["one", "two", "order 2", "orders 3 and 1", "orders 1 and 2"],
)
@settings(max_examples=20)
@given(seed=SEEDS, sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), weights=VECTORS)
def test_tables_give_the_path_of_the_decoder_ties_included(
    kinds: Sequence[tuple[int, Any]], seed: int, sizes: list[int], weights: Floats
) -> None:
    document = document_of(seed, sizes, kinds)
    tables, weights = DocumentTables.of(document), weights[: 2 + len(kinds)]
    assert tables is not None
    assert tables.best(weights) == viterbi(document.problem(weights))[0].choices


def test_scores_that_are_not_tabulated_are_left_to_the_decoder() -> None:
    """A score of −inf, no score of pairs at all, and scores that are too many."""
    assert DocumentTables.of(document_of(1, [2, 2], ())) is None
    document = document_of(1, [2, 2], ((1, np.float64),))
    alone, pairs = document.problems
    assert isinstance(pairs, Pairwise)
    impossible = Pairwise([pairs.matrices[0], np.full((2, 2), -np.inf)])
    assert DocumentTables.of(replace(document, problems=(alone, impossible))) is None
    assert not tabular(HistoryTable([np.zeros(1), np.zeros((1, 1))], None))
    assert not tabular(document_of(1, [40] * 20, ((2, np.float32),)).problems[1])
