"""The scale: closed forms, planted scales and the laws of maximum likelihood are the truth."""

import math
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.files.arrays import ArrayStore
from rerank.metrics.bleu import corpus_bleu
from rerank.notices import Notices
from rerank.tuning import scale
from rerank.tuning.scale import Scale, fit_scale, fit_scale_to_bleu

Lists = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def fitted(*lists: tuple[list[float], list[float]]) -> tuple[Scale | None, list[str]]:
    """The scale of lists of (scores, quality), and the notices."""
    notices = Notices()
    scores, quality = (np.array([*chain(*columns)]) for columns in zip(*lists, strict=True))
    offsets = np.cumsum([0, *(len(own) for own, _ in lists)])
    return fit_scale(scores, quality, offsets, notices), notices.lines()


def sampled(seed: int, alpha: float, n_lists: int = 1000) -> Lists:
    """Lists of 2 to 12 candidates, of which one, drawn at a scale, is good."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 13, n_lists)
    scores = [10 * rng.standard_normal() + rng.standard_normal(size) for size in sizes]
    quality = []
    for own in scores:
        powers = np.exp(alpha * own - (alpha * own).max())
        quality.append(rng.multinomial(1, powers / powers.sum()).astype(float))
    return np.concatenate(scores), np.concatenate(quality), np.cumsum([0, *sizes])


def log_likelihood(alpha: float, lists: Lists) -> float:
    """By its definition, one list after the other."""
    scores, quality, offsets = lists
    total = 0.0
    for a, b in pairwise(offsets):
        own = scores[a:b].tolist()
        best = [k for k in range(b - a) if quality[a + k] == quality[a:b].max()]
        if len(best) < b - a:
            total += sum(alpha * own[k] for k in best) / len(best)
            total -= float(np.logaddexp.reduce([alpha * score for score in own]))
    return total


@pytest.mark.parametrize(("n", "m"), [(3, 1), (99, 1), (51, 49)])
@pytest.mark.parametrize("gap", [1e-3, 1.0, 250.0])
def test_with_two_candidates_the_odds_are_those_of_the_better_one_on_top(
    n: int, m: int, gap: float
) -> None:
    """Closed form: σ(α gap) = n / (n + m); its error is that of a logit, ÷ gap."""
    found, notices = fitted(*[([gap, 0.0], [1.0, 0.0])] * n, *[([gap, 0.0], [0.0, 1.0])] * m)
    assert found is not None
    assert found.alpha == pytest.approx(math.log(n / m) / gap, rel=1e-9)
    assert found.error == pytest.approx(math.sqrt(1 / n + 1 / m) / gap, rel=1e-9)
    assert (found.n_lists, notices) == (n + m, [])


@pytest.mark.parametrize("alpha", [0.2, 0.8, 20.0])
def test_a_planted_scale_is_found_within_its_error(alpha: float) -> None:
    """z-values of 40 samples: their root mean square is 1, give or take 1/√80."""
    z = []
    for seed in range(40):
        found = fit_scale(*sampled(seed, alpha), Notices())
        assert found is not None
        z.append((found.alpha - alpha) / found.error)
    assert 1 - 4 / math.sqrt(80) < math.sqrt(np.mean(np.square(z))) < 1 + 4 / math.sqrt(80)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 3), st.floats(1.01, 4))
def test_no_other_scale_is_more_likely(seed: int, alpha: float, factor: float) -> None:
    lists = sampled(seed, alpha, 30)
    found = fit_scale(*lists, Notices())
    assume(found is not None)
    assert found is not None
    top = log_likelihood(found.alpha, lists)
    assert log_likelihood(found.alpha * factor, lists) < top
    assert log_likelihood(found.alpha / factor, lists) < top


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(-40, 40))
def test_weights_times_a_factor_have_the_scale_over_that_factor(seed: int, power: int) -> None:
    scores, quality, offsets = sampled(seed, 0.7, 50)
    found = fit_scale(scores, quality, offsets, Notices())
    other = fit_scale(scores * 2.0**power, quality, offsets, Notices())
    assert found is not None
    assert other is not None
    assert other.alpha == pytest.approx(found.alpha / 2.0**power, rel=1e-9)
    assert other.error == pytest.approx(found.error / 2.0**power, rel=1e-9)


def test_scores_may_begin_anywhere() -> None:
    """Dyadic scores, whose differences are exact however far from 0 they are."""
    lists = [([0.5, 0.25, 0.0], [3.0, 2.0, 1.0]), ([0.0, 0.5], [1.0, 0.0])]
    moved = [([score - 2.0**40 for score in scores], quality) for scores, quality in lists]
    assert fitted(*lists) == fitted(*moved)


def test_candidates_as_good_share_the_likelihood_whatever_their_order() -> None:
    lists = [([1.0, 0.0, 0.5, -1.0], [2.0, 2.0, 1.0, 0.0]), ([0.0, 1.0], [1.0, 0.0])]
    found, _ = fitted(*lists, ([2.0, 0.0], [1.0, 0.0]))
    turned = [(scores[::-1], quality[::-1]) for scores, quality in lists]
    again, _ = fitted(*turned, ([2.0, 0.0], [1.0, 0.0]))
    assert found is not None
    assert again is not None
    assert found.alpha == pytest.approx(again.alpha, rel=1e-12)
    whole = (
        np.array([1.0, 0.0, 0.5, -1.0, 0.0, 1.0, 2.0, 0.0]),
        np.array([2.0, 2.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
        np.array([0, 4, 6, 8]),
    )
    steps = [log_likelihood(found.alpha + h, whole) for h in (-1e-4, 0.0, 1e-4)]
    assert steps[1] > max(steps[0], steps[2])


def test_lists_that_say_nothing_are_left_out() -> None:
    lists = [([1.0, 0.0], [1.0, 0.0])] * 3 + [([1.0, 0.0], [0.0, 1.0])]
    silent = [([5.0, 1.0], [2.0, 2.0]), ([3.0, 3.0], [1.0, 0.0]), ([7.0], [1.0])]
    empty: list[tuple[list[float], list[float]]] = [([], [])]
    impossible = [([1.0, -math.inf], [0.0, 1.0]), ([-math.inf], [1.0])]
    assert fitted(*lists, *silent, *empty, *impossible) == fitted(*lists)


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ([([1.0, 0.0], [1.0, 0.0]), ([0.0, 2.0, 1.0], [0.0, 9.0, 3.0])], "highest, at any scale"),
        ([([1.0, 0.0], [0.0, 1.0])] * 3, "do not score above the others"),
        ([([1.0, 0.0], [0.0, 1.0]), ([1.0, 0.0], [1.0, 0.0])], "do not score above the others"),
        ([([1.0, 0.0], [1.0, 1.0]), ([1.0, 1.0], [0.0, 1.0])], "in no list"),
    ],
    ids=["always on top", "always below", "no tendency", "silent"],
)
def test_an_optimum_at_the_edge_is_told_and_is_no_value(
    lists: list[tuple[list[float], list[float]]], told: str
) -> None:
    found, notices = fitted(*lists)
    assert found is None
    assert len(notices) == 1
    assert notices[0].startswith("1 x no alpha is fitted: ")
    assert told in notices[0]


def test_the_scale_is_told_with_its_error() -> None:
    text = Scale(0.8312, 0.0241, 230).to_text()
    assert text == "alpha 0.831 ± 0.024 (likelihood of the best candidates of 230 lists)"


@pytest.mark.parametrize("exponent", [-1000, -600, 300, 900])
def test_the_scale_is_that_of_scores_of_any_size_times_their_factor(exponent: int) -> None:
    """Powers of two, which round nothing; squares of such scores are beyond float64."""
    scores, quality, offsets = sampled(3, 0.5, 40)
    alone = fit_scale(scores, quality, offsets, Notices())
    found = fit_scale(np.ldexp(scores, exponent), quality, offsets, Notices())
    assert alone is not None
    assert found == Scale(
        math.ldexp(alone.alpha, -exponent), math.ldexp(alone.error, -exponent), alone.n_lists
    )


def test_bleu_may_judge_whatever_is_counted_beside_it() -> None:
    rng = np.random.default_rng(4)
    matches = np.sort(rng.integers(0, 9, (40, 4)), axis=1)[:, ::-1]
    counts = np.hstack([matches, np.tile([8, 7, 6, 5, 8], (40, 1))])
    scores, offsets = matches[:, 0] + rng.standard_normal(40), np.arange(0, 41, 5)
    truth = fit_scale(scores, corpus_bleu(counts, effective_order=True), offsets, Notices())
    assert truth is not None
    wider = np.hstack([counts, rng.standard_normal((40, 3))])
    for statistics in (counts, counts.astype(np.int16), wider):
        assert fit_scale_to_bleu(scores, statistics, offsets, Notices()) == truth
    assert truth.to_provenance() == {"alpha_error": truth.error, "alpha_lists": truth.n_lists}


@pytest.mark.parametrize("most", [1, 5, 64])
def test_a_scale_does_not_depend_on_how_many_candidates_are_held_at_once(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = sampled(8, 0.7, 40)
    found = fit_scale(*lists, Notices())
    monkeypatch.setattr(scale, "_BLOCK", most)
    monkeypatch.setattr("rerank.files.arrays.SMALL", 0)
    assert fit_scale(*lists, Notices(), ArrayStore(0)) == found
