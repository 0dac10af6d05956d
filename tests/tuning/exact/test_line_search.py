"""Line search over documents, against decoding at many steps, and line search on pools."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.chains import decoded_statistics, pair_counts

from rerank.metrics.bleu import ORDER, WIDTH, corpus_bleu
from rerank.notices import Notices
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.line_search import ChainSet, document_line
from rerank.tuning.mert.envelope import Direction, Scratch
from rerank.tuning.mert.line import EVERYWHERE, SearchLine, Step
from rerank.tuning.mert.line_search import line_of
from rerank.tuning.objectives.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objectives.objective import DocumentMean
from rerank.tuning.pools.pool import Pool

# sentences without candidates count as empty lines
GAPS = np.array([[0] * 8 + [3], [0] * 8 + [1], [0] * 9])


def chain_of(rng: np.random.Generator, sizes: list[int], *, contextual: int = 1) -> DocumentChain:
    """Two static features, then contextual ones; candidates of any quality."""
    n, n_pairs = sum(sizes), pair_counts(sizes).sum()
    totals = rng.integers(4, 12, size=n)[:, None] - np.arange(ORDER)
    matches = np.minimum.accumulate(rng.integers(0, totals + 1), axis=1)
    references = np.repeat(rng.integers(4, 12, size=len(sizes)), sizes)
    statistics = np.column_stack([matches, totals, references])
    columns = np.vstack([rng.standard_normal((2, n)), np.zeros((contextual, n))])
    pairs = tuple(rng.standard_normal(n_pairs).astype(np.float32) for _ in range(contextual))
    which = np.arange(2, 2 + contextual)
    return DocumentChain(
        np.cumsum([0, *sizes]), columns, rng.standard_normal(n), statistics, which, pairs
    )


def documents_of(seed: int, *, contextual: int = 1, sizes: int = 6) -> ChainSet:
    """Three documents, one of them without sentences."""
    rng = np.random.default_rng(seed)
    lists = [rng.integers(1, sizes + 1, size).tolist() for size in (7, 0, 4)]
    return ChainSet.of([chain_of(rng, some, contextual=contextual) for some in lists], GAPS)


def bleu_at(documents: ChainSet, weights: NDArray[np.float64]) -> float:
    """BLEU of the paths that the decoder finds."""
    return float(corpus_bleu(decoded_statistics(documents, weights)))


def search(
    documents: ChainSet,
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    *,
    here: float = 0.0,
    goal: SearchGoal = BLEU_GOAL,
    span: tuple[float, float] = EVERYWHERE,
) -> Step:
    """Line search from weights (F,), none of whose arguments is written to."""
    unaries = documents.unaries(weights)
    for array in (weights, direction, documents.gaps, documents.spreads, *unaries):
        array.flags.writeable = False
    ahead = (weights, direction)
    return goal.best(document_line(documents, unaries, ahead, notices=Notices(), span=span), here)


def line(
    documents: ChainSet,
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    *,
    notices: Notices | None = None,
    most: int = 10**6,
) -> SearchLine:
    """The line that a search looks at."""
    unaries = documents.unaries(weights)
    return document_line(
        documents, unaries, (weights, direction), notices=notices or Notices(), most=most
    )


WEIGHTS = np.array([0.75, -0.5, 0.5])


@pytest.mark.parametrize("feature", [0, 2], ids=["static", "contextual"])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_step_decodes_to_the_bleu_predicted_and_no_step_beats_it(
    seed: int, feature: int
) -> None:
    documents, direction = documents_of(seed), np.eye(3)[feature]
    found, reach = search(documents, WEIGHTS, direction), line(documents, WEIGHTS, direction).span
    assert bleu_at(documents, WEIGHTS + found.size * direction) == found.value
    assert reach[0] < found.size < reach[1]
    for step in np.linspace(*reach, 201):
        assert bleu_at(documents, WEIGHTS + step * direction) <= found.value


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_of_documents_is_predicted_as_decoded(seed: int) -> None:
    """The objective that needs to know which document a break changes."""
    documents, direction = documents_of(seed), np.array([0.5, 0.5, 1.0])
    goal = SearchGoal(DocumentMean())
    found = search(documents, WEIGHTS, direction, goal=goal)
    weights = WEIGHTS + found.size * direction
    assert goal.value(documents.decode(weights), weights) == pytest.approx(found.value)
    assert found.size != 0


@pytest.mark.parametrize("seed", range(4))
def test_any_direction_is_searched_and_its_length_does_not_matter(seed: int) -> None:
    documents = documents_of(seed, contextual=2)
    weights, direction = np.array([1.0, 0.5, -0.25, 0.5]), np.array([0.5, -1.0, 0.25, 1.0])
    found = search(documents, weights, direction)
    assert bleu_at(documents, weights + found.size * direction) == found.value
    longer = search(documents, weights, 4 * direction)
    assert (longer.size * 4, longer.value) == pytest.approx((found.size, found.value), rel=1e-12)


def test_the_box_ends_where_the_direction_adds_what_the_weights_are() -> None:
    documents, direction = documents_of(1), np.array([0.0, 2.0, 1.0])
    low, high = line(documents, WEIGHTS, direction).span
    moved = np.linalg.norm(high * direction * documents.spreads)
    assert moved == pytest.approx(np.linalg.norm(WEIGHTS * documents.spreads))
    assert low == -high
    high = line(documents, np.zeros(3), direction).span[1]
    assert np.linalg.norm(high * direction * documents.spreads) == pytest.approx(1)


def test_a_span_given_is_kept_to() -> None:
    documents, direction = documents_of(1), np.eye(3)[0]
    best = search(documents, WEIGHTS, direction)
    low, high = sorted((best.size / 4, best.size / 2))
    found = search(documents, WEIGHTS, direction, span=(min(low, 0.0), max(high, 0.0)))
    assert abs(found.size) <= abs(best.size) / 2
    assert bleu_at(documents, WEIGHTS + found.size * direction) == found.value <= best.value


def test_without_an_interval_better_than_here_there_is_no_step() -> None:
    documents, direction = documents_of(2), np.eye(3)[0]
    best = search(documents, WEIGHTS, direction)
    again = search(documents, WEIGHTS, direction, here=best.value)
    assert again == Step(0.0, best.value)


def test_a_range_with_too_many_changes_is_halved_and_it_says_so() -> None:
    documents, direction, notices = documents_of(4), np.eye(3)[0], Notices()
    everything = line(documents, WEIGHTS, direction)
    most = int(np.bincount(everything.documents).max()) // 2
    some = line(documents, WEIGHTS, direction, notices=notices, most=most)
    halvings = np.log2(everything.span[1] / some.span[1])
    assert halvings == int(halvings) > 0
    (notice,) = notices
    assert notice.count == halvings
    inside = (everything.breaks > some.span[0]) & (everything.breaks < some.span[1])
    np.testing.assert_allclose(
        np.sort(some.breaks)[3:], np.sort(everything.breaks[inside]), rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_without_context_it_finds_what_line_search_on_the_pool_finds(seed: int) -> None:
    documents = documents_of(seed, contextual=0, sizes=9)
    weights, direction = np.array([0.75, -0.5]), np.array([1.0, 0.0])
    found = search(documents, weights, direction)
    span = line(documents, weights, direction).span
    chains = documents.chains
    ends = np.cumsum([0, *(len(chain.fixed) for chain in chains)])
    starts = [chain.offsets[:-1] + start for chain, start in zip(chains, ends, strict=False)]
    columns = np.concatenate([chain.columns for chain in chains], axis=1)
    pool = Pool(
        np.concatenate([*starts, ends[-1] + np.arange(4)]),
        np.vstack([columns.T, np.zeros((3, 2))]),
        np.concatenate([*(chain.statistics for chain in chains), GAPS]),
        np.concatenate([*(chain.fixed for chain in chains), np.zeros(3)]),
    )
    scores = pool.scores(weights)
    slopes, choices = Direction.of(pool, pool.features[:, 0].copy()), pool.choices(scores)
    same = line_of(
        pool, scores, choices, slopes, Scratch(pool), weights=weights, vector=direction, span=span
    )
    expected = BLEU_GOAL.best(same, 0.0)
    assert found.value == expected.value
    assert found.size == pytest.approx(expected.size, rel=1e-9)


def test_decoded_statistics_are_those_of_the_decoder() -> None:
    documents = documents_of(5)
    found = documents.decode(WEIGHTS)
    assert found.shape == (3, WIDTH)
    np.testing.assert_array_equal(found[1], GAPS[1])  # a document without candidates
    assert corpus_bleu(found.sum(axis=0)) == bleu_at(documents, WEIGHTS)


def test_gaps_of_other_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="gaps of 3, 1 documents"):
        ChainSet.of([chain_of(np.random.default_rng(0), [2])], np.repeat(GAPS[:1], 3, axis=0))
