"""BLEU of real statistics: sacrebleu's where both are defined, finite differences, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.metrics import bleu_statistics

from rerank.metrics.bleu import corpus_bleu
from rerank.tuning.tuners.sentence_bleu import SHARP, bleu_plus_one, log_bleu

HYPOTHESES = ["the cat sat on the mat", "a cat on the mat", "no such words", "the", ""]
REFERENCES = ["the cat sat on a mat today"]


def sums(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Sums of a corpus of some hundred words, of a length ratio between 0.8 and 1.25."""
    rng = np.random.default_rng(seed)
    length = rng.uniform(100, 1000)
    totals = length * np.array([1.0, 0.9, 0.8, 0.7])
    matches = totals * np.cumprod(rng.uniform(0.1, 0.9, size=4))
    return np.concatenate([matches, totals, [length / rng.uniform(0.8, 1.25)]])


@given(st.integers(0, 2**32 - 1))
def test_log_bleu_is_that_of_sacrebleu_but_for_the_kink(seed: int) -> None:
    counts = np.ceil(sums(seed))
    value = log_bleu(counts, np.empty(9))
    truth = math.log(float(corpus_bleu(counts.astype(np.int64))) / 100)
    assert truth - math.log(2) / SHARP - 1e-12 <= value <= truth + 1e-12
    if abs(1 - counts[8] / counts[4]) > 0.03:
        assert value == pytest.approx(truth, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_its_gradient_is_that_of_finite_differences(seed: int, at_the_kink: bool) -> None:
    here, gradient, unused = sums(seed), np.empty(9), np.empty(9)
    if at_the_kink:
        here[8] = here[4] * (1 + 1e-4)
    log_bleu(here, gradient)
    for k in range(9):
        step = 1e-7 * here[k]
        up, down = here.copy(), here.copy()
        up[k] += step
        down[k] -= step
        slope = (log_bleu(up, unused) - log_bleu(down, unused)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4 / here[k])


def test_bleu_plus_one_by_hand() -> None:
    """The mat: 5 of 6 words, 3 of 5, 2 of 4, 1 of 3; a reference of 7. The last two: 1 and 0."""
    rows = bleu_statistics(HYPOTHESES, REFERENCES)
    assert rows[0].tolist() == [5, 3, 2, 1, 6, 5, 4, 3, 7]
    truth = math.exp(1 - 7 / 6) * (5 / 6 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25
    found = bleu_plus_one(rows)
    assert found[0] == pytest.approx(truth, rel=1e-12)
    assert found[2:].tolist() == [0, 0 if rows[3, 0] == 0 else pytest.approx(math.exp(-6)), 0]
