"""Line search over documents, against decoding at many steps, and line search on pools."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Pairwise, Unary
from decoders.viterbi import viterbi
from decoders.weighted import WeightedSum
from rerank.bleu import ORDER, WIDTH, corpus_bleu
from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_line_search import ChainSet, Step, document_line_search
from rerank.tuning.envelope import Direction, Scratch
from rerank.tuning.line_search import line_search
from rerank.tuning.pool import Pool

GAPS = np.array([0] * 8 + [3])  # a sentence without candidates counts as an empty line


def chain_of(rng: np.random.Generator, sizes: list[int], *, contextual: int = 1) -> DocumentChain:
    """Two static features, then contextual ones; candidates of any quality."""
    n, n_pairs = sum(sizes), sum(a * b for a, b in zip([1, *sizes], sizes, strict=False))
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
    found = documents.gaps.copy()
    for chain in documents.chains:
        unary, sizes = chain.unary(weights), np.diff(chain.offsets).tolist()
        parts: list[tuple[float, Unary | Pairwise]] = [
            (1.0, Unary([unary[a:b] for a, b in pairwise(chain.offsets)]))
        ]
        ends = np.cumsum([a * b for a, b in zip([1, *sizes], sizes, strict=False)])
        for feature, flat in zip(chain.contextual, chain.pairs, strict=True):
            blocks = zip(np.split(flat, ends[:-1]), sizes, strict=False)
            part = Pairwise([m.reshape(-1, k) for m, k in blocks])
            parts.append((float(weights[feature]), part))
        best = np.array(viterbi(WeightedSum(parts))[0].choices, dtype=np.int64)
        found += chain.statistics[chain.offsets[:-1] + best].sum(axis=0)
    return float(corpus_bleu(found))


def search(
    documents: ChainSet,
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    *,
    floor: float = 0.0,
    most: int = 10**6,
) -> Step:
    """Line search from weights (F,), none of whose arguments is written to."""
    unaries = documents.unaries(weights)
    for array in (weights, direction, documents.gaps, documents.spreads, *unaries):
        array.flags.writeable = False
    return document_line_search(documents, unaries, weights, direction, floor=floor, most=most)


WEIGHTS = np.array([0.75, -0.5, 0.5])


@pytest.mark.parametrize("feature", [0, 2], ids=["static", "contextual"])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_step_decodes_to_the_bleu_predicted_and_no_step_beats_it(
    seed: int, feature: int
) -> None:
    documents, direction = documents_of(seed), np.eye(3)[feature]
    found = search(documents, WEIGHTS, direction)
    assert bleu_at(documents, WEIGHTS + found.step * direction) == found.bleu
    assert abs(found.step) < found.reach
    for step in np.linspace(-found.reach, found.reach, 201):
        assert bleu_at(documents, WEIGHTS + step * direction) <= found.bleu


@pytest.mark.parametrize("seed", range(4))
def test_any_direction_is_searched_and_its_length_does_not_matter(seed: int) -> None:
    documents = documents_of(seed, contextual=2)
    weights, direction = np.array([1.0, 0.5, -0.25, 0.5]), np.array([0.5, -1.0, 0.25, 1.0])
    found = search(documents, weights, direction)
    assert bleu_at(documents, weights + found.step * direction) == found.bleu
    longer = search(documents, weights, 4 * direction)
    assert (longer.step * 4, longer.reach * 4, longer.bleu, longer.breaks) == pytest.approx(
        (found.step, found.reach, found.bleu, found.breaks), rel=1e-12
    )


def test_the_box_ends_where_the_direction_adds_what_the_weights_are() -> None:
    documents, direction = documents_of(1), np.array([0.0, 2.0, 1.0])
    reach = search(documents, WEIGHTS, direction).reach
    moved = np.linalg.norm(reach * direction * documents.spreads)
    assert moved == pytest.approx(np.linalg.norm(WEIGHTS * documents.spreads))
    from_nothing = search(documents, np.zeros(3), direction).reach
    assert np.linalg.norm(from_nothing * direction * documents.spreads) == pytest.approx(1)


def test_without_an_interval_above_the_floor_there_is_no_step() -> None:
    documents, direction = documents_of(2), np.eye(3)[0]
    best = search(documents, WEIGHTS, direction)
    again = search(documents, WEIGHTS, direction, floor=best.bleu)
    assert (again.step, again.bleu) == (0.0, best.bleu)


def test_a_feature_that_varies_nowhere_leaves_no_step() -> None:
    rng = np.random.default_rng(3)
    chain = chain_of(rng, [3, 3])
    columns = chain.columns.copy()
    columns[1] = 0.1
    constant = DocumentChain(
        chain.offsets, columns, chain.fixed, chain.statistics, chain.contextual, chain.pairs
    )
    documents = ChainSet.of([constant], GAPS)
    assert search(documents, WEIGHTS, np.eye(3)[1], floor=1.5) == Step(0.0, 1.5, 0.0, 0)


def test_a_range_with_too_many_breaks_is_halved_and_it_says_so() -> None:
    documents, direction = documents_of(4), np.eye(3)[0]
    everything = search(documents, WEIGHTS, direction)
    some = search(documents, WEIGHTS, direction, most=everything.breaks // 4)
    halvings = np.log2(everything.reach / some.reach)
    assert halvings == int(halvings) > 0
    assert 0 < some.breaks < everything.breaks
    assert abs(some.step) < some.reach
    assert bleu_at(documents, WEIGHTS + some.step * direction) == some.bleu


@pytest.mark.parametrize("seed", range(4))
def test_without_context_it_finds_what_line_search_on_the_pool_finds(seed: int) -> None:
    documents = documents_of(seed, contextual=0, sizes=9)
    weights, direction = np.array([0.75, -0.5]), np.array([1.0, 0.0])
    found = search(documents, weights, direction)
    chains = documents.chains
    ends = np.cumsum([0, *(len(chain.fixed) for chain in chains)])
    offsets = [chain.offsets[:-1] + start for chain, start in zip(chains, ends, strict=False)]
    statistics = np.concatenate([*(chain.statistics for chain in chains), GAPS[None]])
    scores = np.concatenate([*(chain.unary(weights) for chain in chains), [0.0]])
    slopes = np.concatenate([*(chain.columns[0] for chain in chains), [0.0]])
    all_offsets = np.concatenate([*offsets, [ends[-1], ends[-1] + 1]])
    pool = Pool(all_offsets, slopes[:, None], statistics.reshape(-1, WIDTH), scores)
    along = Direction.of(pool, slopes)
    step, bleu = line_search(pool, scores, pool.choices(scores), along, Scratch(pool), floor=0.0)
    if abs(step) < found.reach:  # the pool is searched without end
        assert (found.step, found.bleu) == (pytest.approx(step, rel=1e-9), bleu)
    else:
        assert found.bleu <= bleu


def test_decoded_statistics_are_those_of_the_decoder() -> None:
    documents = documents_of(5)
    assert corpus_bleu(documents.decoded(WEIGHTS)) == bleu_at(documents, WEIGHTS)
