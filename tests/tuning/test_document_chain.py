"""Documents as chains: the same scores as decoders see, and bounds on what context can change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from decoders.chains import Pairwise, Unary
from decoders.problem import DocumentProblem
from rerank.corpus.labels import Label
from rerank.metrics.bleu import WIDTH
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.document_chain import Couplings, DocumentChain, flattened

SIZES = (3, 1, 4, 2)
OFFSETS = np.cumsum([0, *SIZES])


def matrices(rng: np.random.Generator) -> list[NDArray[np.float32]]:
    """Pairs of a document whose sentences have `SIZES` candidates, views of one array."""
    ends = np.cumsum([a * b for a, b in zip((1, *SIZES), SIZES, strict=False)])
    flat = rng.standard_normal(ends[-1]).astype(np.float32)
    return [m.reshape(-1, k) for m, k in zip(np.split(flat, ends[:-1]), SIZES, strict=True)]


def document(*problems: DocumentProblem) -> DocumentFeatures:
    """Two features of the list and a column of each scorer."""
    rng = np.random.default_rng(1)
    labels = (Label("a", 2), *(Label(f"scorer{i}", 1) for i in range(len(problems))))
    contextual = tuple(range(2, 2 + len(problems)))
    static = np.zeros((OFFSETS[-1], 2 + len(problems)))
    static[:, :2] = rng.standard_normal((OFFSETS[-1], 2))
    return DocumentFeatures(
        "d",
        FeatureSpace(labels, contextual, 2, False),
        static,
        rng.standard_normal(OFFSETS[-1]),
        problems,
        OFFSETS,
        np.arange(len(SIZES)),
    )


STATISTICS = np.zeros((OFFSETS[-1], WIDTH), dtype=np.int64)


def test_a_chain_scores_paths_as_the_documents_problem_does() -> None:
    rng = np.random.default_rng(2)
    unary = Unary([rng.standard_normal(k) for k in SIZES])
    shown = document(unary, Pairwise(matrices(rng)))
    chain, weights = DocumentChain.of(shown, STATISTICS), np.array([0.5, -1.0, 0.25, 2.0])
    np.testing.assert_array_equal(chain.contextual, [3])
    choices = (2, 0, 3, 1)
    found = chain.unary(weights)[shown.rows(choices)].sum()
    begin = 0
    for t, (before, size) in enumerate(zip((1, *SIZES), SIZES, strict=False)):
        j = choices[t - 1] if t else 0
        found += weights[3] * chain.pairs[0][begin + j * size + choices[t]]
        begin += before * size
    paths = np.array([choices])
    expected = shown.problem(weights).rescore(paths, 0, len(SIZES))[0]
    assert found == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(chain.slopes(weights), chain.unary(weights) - shown.sparse)


def test_a_scorer_of_higher_order_is_refused() -> None:
    second = Pairwise(matrices(np.random.default_rng(0)))
    object.__setattr__(second, "order", 2)
    with pytest.raises(ValueError, match="order 0 or 1, found 2"):
        DocumentChain.of(document(second), STATISTICS)


def test_pairs_that_lie_one_after_another_are_not_copied() -> None:
    views = matrices(np.random.default_rng(3))
    flat = flattened(views)
    assert np.shares_memory(flat, views[0])
    np.testing.assert_array_equal(flat, np.concatenate([m.ravel() for m in views]))
    part = flattened(views[1:3])
    np.testing.assert_array_equal(part, np.concatenate([m.ravel() for m in views[1:3]]))


@pytest.mark.parametrize("change", ["cut", "apart", "turned"])
def test_other_pairs_are_copied(change: str) -> None:
    views = matrices(np.random.default_rng(4))
    if change == "cut":
        views[2] = views[2][:, :3]
    elif change == "apart":
        views[1] = views[1].copy()
    else:
        views = views[::-1]
    np.testing.assert_array_equal(flattened(views), np.concatenate([m.ravel() for m in views]))


def test_no_matrices_are_no_pairs() -> None:
    assert flattened([]).shape == (0,)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_couplings_bound_what_a_candidate_adds_in_any_surroundings(kind: type) -> None:
    """All surroundings of two candidates are tried: differences lie between the bounds."""
    views = matrices(np.random.default_rng(5))
    found = Couplings.of(OFFSETS, [flattened(views).astype(kind)])
    assert (found.low <= 0).all()
    assert (found.high >= 0).all()
    for t, (start, end) in enumerate(pairwise(OFFSETS.tolist())):
        after = views[t + 1] if t + 1 < len(SIZES) else np.zeros((end - start, 1))
        added = views[t].T[:, :, None] + after[:, None, :]  # (K_t, K_{t−1}, K_{t+1})
        upper = (found.centre + found.high)[0, start:end]
        lower = (found.centre + found.low)[0, start:end]
        for k in range(end - start):
            for other in range(end - start):
                if other != k:
                    most = (added[k] - added[other]).max()
                    assert most <= upper[k] - lower[other] + 1e-6


def test_couplings_of_pairs_that_add_up_are_none() -> None:
    """p[j, k] = a[j] + b[k]: nothing depends on what is around."""
    rng = np.random.default_rng(6)
    parts = [rng.integers(-8, 9, (a, 1)) + rng.integers(-8, 9, b) for a, b in ((1, 4), (4, 2))]
    found = Couplings.of(np.array([0, 4, 6]), [np.concatenate([m.ravel() for m in parts]) / 4])
    np.testing.assert_array_equal([found.low, found.high], 0)


def test_squares_are_those_of_the_distances_from_the_mean_of_a_sentence() -> None:
    views = matrices(np.random.default_rng(7))
    chain = DocumentChain.of(document(Pairwise(views)), STATISTICS)
    found = chain.squares()
    for f in range(2):
        parts = np.split(chain.columns[f], OFFSETS[1:-1])
        assert found[f] == pytest.approx(sum(p.var() * p.size for p in parts))
    assert found[2] == pytest.approx(sum(m.var() * m.shape[1] for m in views), rel=1e-5)


def test_a_feature_that_is_constant_in_each_sentence_has_no_squares() -> None:
    columns = np.repeat([0.1, 0.7, -3.3, 1e9], SIZES)[None]
    nothing, fixed = np.zeros(0, dtype=np.int64), np.zeros(OFFSETS[-1])
    chain = DocumentChain(OFFSETS, columns, fixed, STATISTICS, nothing, ())
    np.testing.assert_array_equal(chain.squares(), [0.0])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"offsets": np.array([0, 3, 3, 10])}, "do not divide 10 candidates"),
        ({"fixed": np.zeros(9)}, "10 candidates, fixed scores"),
        ({"pairs": (np.zeros(5),)}, "expected 18 pairs of 1 features"),
        ({"pairs": ()}, "expected 18 pairs of 1 features"),
        ({"fixed": np.full(10, np.nan)}, "not finite"),
        ({"pairs": (np.full(18, -np.inf),)}, "not finite"),
    ],
    ids=["empty sentence", "fixed", "few pairs", "no pairs", "NaN", "infinity"],
)
def test_arrays_that_do_not_fit_are_refused(fault: dict[str, object], message: str) -> None:
    given: dict[str, object] = {
        "offsets": OFFSETS,
        "columns": np.zeros((2, 10)),
        "fixed": np.zeros(10),
        "statistics": STATISTICS,
        "contextual": np.array([1]),
        "pairs": (np.zeros(18),),
    }
    with pytest.raises(ValueError, match=message):
        DocumentChain(**{**given, **fault})  # type: ignore[arg-type]
