"""Feature columns of a document against sums written out by hand, and made-up scorers."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from support.lists import kbest_of_lines, kbest_without_candidates

from decoders.arrays import Pairwise, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.problem import DocumentProblem
from rerank.corpus.kbest import KBest
from rerank.corpus.labels import Label
from rerank.errors import InputError
from rerank.scorers import FeatureSource, ScoredDocument
from rerank.scorers.features import DocumentFeatures, FeatureSpace, prepare

COUNTS = (2, 0, 3, 2)  # candidates of each sentence
LINES = (
    "0 ||| a ||| LM0= -1 TM0= -2 -3 ||| -10",
    "0 ||| b ||| LM0= -1.5 TM0= -1 -4 tag_x= 2 ||| -11",
    "2 ||| c ||| LM0= -2 TM0= -2 -1 ||| -12",
    "2 ||| d ||| LM0= -0.5 TM0= -2.5 -3 tag_x= 1 tag_y= -1 ||| -13",
    "2 ||| e ||| LM0= -4 TM0= 0 0 ||| -14",
    "3 ||| f ||| LM0= -3 TM0= -1 -2 ||| -15",
    "3 ||| g ||| LM0= -2.25 TM0= -1 -1 tag_y= 4 ||| -16",
)
DENSE = np.column_stack(
    [
        (-1, -1.5, -2, -0.5, -4, -3, -2.25),
        (-2, -1, -2, -2.5, 0, -1, -1),
        (-3, -4, -1, -3, 0, -2, -1),
    ]
)
TOTALS = np.array([-10.0, -11, -12, -13, -14, -15, -16])
SPARSE: tuple[dict[str, float], ...] = (
    {},
    {"tag_x": 2},
    {},
    {"tag_x": 1, "tag_y": -1},
    {},
    {},
    {"tag_y": 4},
)
FIRST_ROWS = (0, 2, 5)  # of the sentences that have candidates
RNG = np.random.default_rng(5)
PAIRS = [-RNG.integers(0, 64, shape) / 8 for shape in ((1, 2), (2, 3), (3, 2))]
ALONE = [-RNG.integers(0, 64, k) / 8 for k in (2, 3, 2)]
PATHS: list[tuple[int, ...]] = [*product(range(2), range(3), range(2))]


class Made(FeatureSource):
    """A source whose problem and columns are given."""

    def __init__(
        self,
        name: str,
        problem: DocumentProblem,
        static: NDArray[np.float64],
        columns: Sequence[str] = (),
    ) -> None:
        super().__init__(name)
        self.columns, self.order = columns, problem.order
        self._scored = ScoredDocument(problem, static)

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        return [self._scored for _ in documents]


PAIR = Made("pair", Pairwise(PAIRS), np.arange(7.0)[:, None], ("pairoov",))
PLAIN = Made("plain", Unary(ALONE), np.zeros((7, 0)))


def kbest(lines: Sequence[str] = LINES) -> KBest:
    return kbest_of_lines(lines, 4)


def prepared(
    *scorers: Made, total: bool = False, sparse: Mapping[str, float] | None = None
) -> DocumentFeatures:
    lists = kbest()
    space = FeatureSpace.of(lists.labels, scorers, total=total)
    return prepare([("evening", lists)], scorers, space, sparse or {})[0]


def by_hand(path: Sequence[int]) -> NDArray[np.float64]:
    """Features (3, 7) of a path's candidates: list, total, pair, pairoov, plain."""
    rows = [first + choice for first, choice in zip(FIRST_ROWS, path, strict=True)]
    before = (0, *path)
    pair = [PAIRS[s][before[s], path[s]] for s in range(3)]
    plain = [ALONE[s][path[s]] for s in range(3)]
    return np.column_stack([DENSE[rows], TOTALS[rows], pair, np.array(rows, float), plain])


def test_columns_are_the_lists_own_then_the_total_then_each_scorers() -> None:
    space = FeatureSpace.of(kbest().labels, [PAIR, PLAIN], total=True)
    names = [label.name for label in space.labels]
    assert names == ["LM0", "TM0", "total", "pair", "pairoov", "plain"]
    assert (space.width, space.list_width, space.contextual) == (7, 4, (4, 6))


def test_columns_without_total_and_scorers_are_the_lists() -> None:
    space = FeatureSpace.of((Label("LM0", 1), Label("TM0", 2)), [], total=False)
    assert (space.width, space.list_width, space.contextual) == (3, 3, ())


@pytest.mark.parametrize("path", PATHS[::3], ids=str)
def test_features_under_a_path_are_those_written_out(path: tuple[int, ...]) -> None:
    document = prepared(PAIR, PLAIN, total=True)
    features = document.under(path)
    np.testing.assert_array_equal(features[document.rows(path)], by_hand(path))


def test_all_candidates_of_a_sentence_are_scored_after_the_same_prefix() -> None:
    features = prepared(PAIR).under((1, 2, 0))
    np.testing.assert_array_equal(features[:, 3], [*PAIRS[0][0], *PAIRS[1][1], *PAIRS[2][2]])


def test_features_under_a_path_leave_the_document_as_it_was() -> None:
    document = prepared(PAIR)
    document.static.flags.writeable = False
    document.under((1, 1, 1))
    np.testing.assert_array_equal(document.static[:, 3], 0.0)


def test_features_along_paths_are_sums_of_those_under_them() -> None:
    for scorers in ([PAIR], [PLAIN, PAIR]):
        document = prepared(*scorers)
        along = document.along(np.array(PATHS))
        for path, sums in zip(PATHS, along, strict=True):
            np.testing.assert_allclose(sums, document.under(path)[document.rows(path)].sum(axis=0))


def test_the_score_of_every_path_is_weights_times_features_and_sparse_features() -> None:
    """Dyadic numbers: sums are exact in any order."""
    weights = np.array([0.5, 0.25, -0.125, 0.5, 2, -0.25, 1])
    sparse = {"tag_x": 0.5, "tag_y": -2.0, "tag_elsewhere": 64.0}
    document = prepared(PAIR, PLAIN, total=True, sparse=sparse)
    expected = {}
    for path in PATHS:
        rows = document.rows(path)
        named = sum(sparse[name] * value for row in rows for name, value in SPARSE[row].items())
        expected[path] = float((by_hand(path) @ weights).sum()) + named
        assert path_score(document.problem(weights), path) == expected[path]
    (best,) = exhaustive(document.problem(weights))
    assert (best.score, expected[best.choices]) == (max(expected.values()),) * 2


def test_sentences_without_candidates_are_left_out() -> None:
    document = prepared()
    assert document.present.tolist() == [0, 2, 3]
    assert document.offsets.tolist() == [0, 2, 5, 7]
    assert document.first() == (0, 0, 0)
    assert document.rows((1, 2, 0)).tolist() == [1, 4, 5]


def test_a_scorer_of_weight_zero_does_not_count_for_the_order() -> None:
    document = prepared(PAIR)
    assert document.problem(np.array([1.0, 1, 1, 0, 0.5])).order == 0
    assert document.problem(np.array([1.0, 1, 1, 0.5, 0])).order == 1


def test_sparse_features_without_weights_count_nothing() -> None:
    assert not prepared().sparse.any()


def test_a_total_that_is_used_must_be_there() -> None:
    lists = kbest([LINES[0], *(line.rpartition(" |||")[0] for line in LINES[1:])])
    space = FeatureSpace.of(lists.labels, [], total=True)
    with pytest.raises(InputError, match=r"dev\.kbest:1: expected a total .*'total'.*found none"):
        prepare([("evening", lists)], [], space, {})


def test_a_document_without_candidates_has_one_path() -> None:
    empty = kbest_without_candidates(2)
    scorer = Made("pair", Pairwise([]), np.zeros((0, 1)), ("pairoov",))
    space = FeatureSpace.of(empty.labels, [scorer], total=False)
    (document,) = prepare([("y", empty)], [scorer], space, {"tag_x": 1.0})
    assert document.under(document.first()).shape == (0, space.width)
    assert path_score(document.problem(np.ones(space.width)), ()) == 0.0
