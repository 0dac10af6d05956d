import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from scipy.stats import foldnorm

from rerank.metrics import significance
from rerank.metrics.bleu import Bleu, corpus_bleu
from rerank.metrics.significance import (
    Statistics,
    bootstrap,
    bootstrap_p_value,
    percentile_interval,
    sign_flip_p_value,
    sign_test_p_value,
)


def documents(seed: int, n: int, *, quality: float = 0.5) -> Statistics:
    """Random BLEU statistics of n documents, (n, 9); every n-gram matches with `quality`."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 60, size=n)
    totals = lengths[:, None] - np.arange(4)
    matches = rng.binomial(totals, quality ** np.arange(1, 5))
    return np.column_stack([matches, totals, lengths + rng.integers(-3, 4, size=n)])


def brute_force_p(system: Statistics, baseline: Statistics) -> float:
    """Sign-flip p-value from its definition, one pattern after another, in plain Python."""

    def difference(swaps: tuple[bool, ...]) -> float:
        sums = [[0] * 9, [0] * 9]
        for swap, ours, theirs in zip(swaps, system.tolist(), baseline.tolist(), strict=True):
            for total, row in zip(sums, (theirs, ours) if swap else (ours, theirs), strict=True):
                total[:] = [a + b for a, b in zip(total, row, strict=True)]
        ours, theirs = (float(corpus_bleu(np.array(total))) for total in sums)
        return abs(ours - theirs)

    observed = difference((False,) * len(system))
    patterns = list(itertools.product((False, True), repeat=len(system)))
    return sum(difference(pattern) >= observed for pattern in patterns) / len(patterns)


@pytest.mark.parametrize("seed", [1, 2])
def test_p_value_of_ten_documents_equals_brute_force(seed: int) -> None:
    system, baseline = documents(seed, 10), documents(seed + 100, 10, quality=0.45)
    expected = brute_force_p(system, baseline)
    rng = np.random.default_rng(0)
    assert sign_flip_p_value(system, baseline, corpus_bleu, rng=rng) == expected


def first_column(summed: Statistics) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A metric that is a plain sum, so that closed forms hold."""
    return summed[..., 0].astype(np.float64)


@settings(max_examples=20)
@given(st.lists(st.integers(-3, 3), min_size=10, max_size=13))
def test_p_value_of_a_sum_equals_counting_signs(gains: list[int]) -> None:
    system = np.array(gains)[:, None]
    signs = itertools.product((-1, 1), repeat=len(gains))
    as_far = sum(
        abs(sum(s * g for s, g in zip(pattern, gains, strict=True))) >= abs(sum(gains))
        for pattern in signs
    )
    p = sign_flip_p_value(system, np.zeros_like(system), first_column, rng=np.random.default_rng(0))
    assert p == as_far / 2 ** len(gains)


def test_twenty_documents_that_all_gain_alike_have_the_least_p() -> None:
    system = np.ones((20, 1), dtype=np.int64)
    p = sign_flip_p_value(system, 0 * system, first_column, rng=np.random.default_rng(0))
    assert p == 2 / 2**20  # the observed pattern and its mirror image


def test_sampled_p_value_is_never_zero() -> None:
    system = np.ones((60, 1), dtype=np.int64)
    p = sign_flip_p_value(system, 0 * system, first_column, rng=np.random.default_rng(0))
    assert p == 1 / 10_001


def test_sampled_p_value_equals_the_exact_one_but_for_sampling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system, baseline = documents(3, 14), documents(103, 14, quality=0.46)
    exact = sign_flip_p_value(system, baseline, corpus_bleu, rng=np.random.default_rng(0))
    monkeypatch.setattr(significance, "MOST_EXACT", 10)
    sampled = sign_flip_p_value(system, baseline, corpus_bleu, rng=np.random.default_rng(0))
    assert exact is not None
    assert sampled is not None
    # four standard errors of a share of 10,000 draws
    assert abs(sampled - exact) < 4 * math.sqrt(exact * (1 - exact) / 10_000)


@pytest.mark.parametrize("n", [10, 25])
def test_a_system_against_itself_has_p_one_and_sides_do_not_matter(n: int) -> None:
    system, baseline = documents(4, n), documents(104, n)
    same = sign_flip_p_value(system, system, corpus_bleu, rng=np.random.default_rng(0))
    assert same == 1
    there = sign_flip_p_value(system, baseline, corpus_bleu, rng=np.random.default_rng(0))
    back = sign_flip_p_value(baseline, system, corpus_bleu, rng=np.random.default_rng(0))
    assert there == back


def test_nine_documents_have_no_p_value() -> None:
    few = documents(5, 9)
    assert sign_flip_p_value(few, few, corpus_bleu, rng=np.random.default_rng(0)) is None


def test_bootstrap_equals_resampling_document_by_document() -> None:
    statistics = np.stack([documents(6, 7), documents(106, 7)])
    scores = bootstrap(statistics, corpus_bleu, rng=np.random.default_rng(9), resamples=50)
    assert scores.shape == (2, 50)
    drawn = np.random.default_rng(9).integers(7, size=(50, 7)).tolist()
    for system, ours in zip(statistics.tolist(), scores.tolist(), strict=True):
        for picks, score in zip(drawn, ours, strict=True):
            total = [sum(system[d][i] for d in picks) for i in range(9)]
            assert score == float(corpus_bleu(np.array(total)))


def test_results_do_not_depend_on_how_much_is_held_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def results() -> list[object]:
        rng = np.random.default_rng(7)
        pairs = [(documents(8, n), documents(108, n)) for n in (12, 30)]
        return [
            *(sign_flip_p_value(a, b, corpus_bleu, rng=rng, draws=101) for a, b in pairs),
            bootstrap(pairs[0][0], corpus_bleu, rng=rng, resamples=101).tolist(),
        ]

    at_once = results()
    monkeypatch.setattr(significance, "_BLOCK", 64)
    assert results() == at_once


def test_percentile_interval_cuts_two_and_a_half_percent_off_each_end() -> None:
    scores = np.arange(1001.0)[::-1]
    assert percentile_interval(scores) == (25.0, 975.0)


def test_arguments_are_not_changed() -> None:
    system, baseline = documents(9, 25), documents(109, 25)
    system.flags.writeable = baseline.flags.writeable = False
    rng = np.random.default_rng(0)
    assert sign_flip_p_value(system, baseline, corpus_bleu, rng=rng, draws=10) is not None
    assert bootstrap(system, corpus_bleu, rng=rng, resamples=10).shape == (10,)


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (11, 0, 2 / 2**11), (8, 2, 112 / 1024), (1, 9, 22 / 1024)],
)
def test_the_sign_test_has_the_values_of_the_binomial_distribution(
    better: int, worse: int, p: float
) -> None:
    assert sign_test_p_value(better, worse) == pytest.approx(p, rel=1e-15)


def corrupted(
    seed: int, *, keep: tuple[float, float] = (0.8, 0.77)
) -> tuple[list[str], list[tuple[str, Sequence[str]]], list[Statistics]]:
    """A reference, two systems, and their BLEU statistics; each of the 40 lines is a document."""
    rng = np.random.default_rng(seed)
    words = list("abcdefg")
    reference = [" ".join(rng.choice(words, size=12)) for _ in range(40)]
    systems: list[tuple[str, Sequence[str]]] = [
        (name, [" ".join(w if rng.random() < share else "x" for w in r.split()) for r in reference])
        for name, share in zip(("base", "ours"), keep, strict=True)
    ]
    targets = [[line.encode()] for line in reference]
    rows = [Bleu().statistics([[line.encode()] for line in text], targets) for _, text in systems]
    return reference, systems, rows


def p_of_sacrebleu(
    reference: list[str], systems: list[tuple[str, Sequence[str]]], kind: str
) -> float:
    _, scores = PairedTest(systems, {"BLEU": BLEU(tokenize="none")}, [reference], kind)()
    return float(getattr(scores["BLEU"][1], "p_value"))  # noqa: B009 - of a union


@pytest.mark.parametrize("keep", [(0.8, 0.77), (0.7, 0.8), (0.8, 0.8)])
def test_the_p_of_the_bootstrap_is_that_of_sacrebleu(
    keep: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last digit: generators with one seed draw the same lines in both programs."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    reference, systems, rows = corrupted(1, keep=keep)
    base, ours = (float(corpus_bleu(own.sum(axis=0))) for own in rows)
    draws = bootstrap(np.stack(rows), corpus_bleu, rng=np.random.default_rng(7))
    found = bootstrap_p_value(ours, base, draws[1], draws[0])
    assert found == p_of_sacrebleu(reference, systems, "bs")


@settings(max_examples=25)
@given(st.lists(st.integers(-2, 2), min_size=10, max_size=14), st.integers(0, 9))
def test_the_p_of_the_bootstrap_counts_resamples_as_far_above_their_mean(
    gains: list[int], seed: int
) -> None:
    both = np.stack([np.array(gains), np.zeros(len(gains), dtype=np.int64)])[:, :, None]
    draws = bootstrap(both, first_column, rng=np.random.default_rng(seed), resamples=101)
    totals = [abs(total) for total in draws[0].astype(int).tolist()]
    as_far = sum(101 * total - sum(totals) >= 101 * abs(sum(gains)) for total in totals)
    there = bootstrap_p_value(sum(gains), 0, draws[0], draws[1])
    assert there == (as_far + 1) / 102
    assert bootstrap_p_value(0, sum(gains), draws[1], draws[0]) == there


def test_the_p_of_the_bootstrap_is_that_of_a_folded_normal_distribution() -> None:
    """Of a mean of many documents, whose resampled means are nearly normal."""
    gains = np.random.default_rng(11).normal(size=400)
    gains += 0.07 - gains.mean()
    both = np.stack([gains, np.zeros(400)])[:, :, None]
    draws = bootstrap(both, first_column, rng=np.random.default_rng(1), resamples=20_000)
    gain, sd = abs(float(gains.sum())), float(gains.std()) * math.sqrt(400)
    mean = foldnorm(gain / sd, scale=sd).mean()
    expected = foldnorm(gain / sd, scale=sd).sf(gain + mean)
    found = bootstrap_p_value(float(gains.sum()), 0.0, draws[0], draws[1])
    assert 0.01 < expected < 0.3
    # four standard errors of a share of 20,000 draws
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize("seed", range(3))
def test_the_sign_flip_test_is_approximate_randomisation_over_documents(seed: int) -> None:
    """sacrebleu swaps the systems' outputs of lines; here each line is a document."""
    reference, systems, rows = corrupted(seed)
    found = sign_flip_p_value(rows[1], rows[0], corpus_bleu, rng=np.random.default_rng(seed))
    assert found is not None
    # five standard errors of the difference of two shares of 10,000 draws
    expected = p_of_sacrebleu(reference, systems, "ar")
    assert abs(found - expected) < 5 * math.sqrt(2 * 0.25 / 10_000)
