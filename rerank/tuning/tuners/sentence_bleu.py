"""BLEU of expected statistics, with its gradient, and BLEU of single sentences.

Rows of statistics are those of `rerank.metrics.bleu`: matches, n-grams, reference length.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

SHARP = 1000.0  # at the kink of the brevity penalty log BLEU is lower by log 2 ÷ SHARP


@njit(cache=True, nogil=True, error_model="numpy")
def log_bleu(sums: NDArray[np.float64], gradient: NDArray[np.float64]) -> float:
    """Natural logarithm of BLEU (0..1) of positive sums (9,); fills in its gradient (9,).

    The logarithm of the brevity penalty, min(0, x) with x = 1 − reference length ÷ length, is
    replaced by −log(1 + exp(−SHARP · x)) ÷ SHARP, which has a derivative everywhere: optima often
    lie on the kink. Precisions are not smoothed.
    """
    value = 0.0
    for n in range(4):
        value += (math.log(sums[n]) - math.log(sums[4 + n])) / 4
        gradient[n], gradient[4 + n] = 0.25 / sums[n], -0.25 / sums[4 + n]
    excess = 1 - sums[8] / sums[4]
    power = math.exp(-SHARP * abs(excess))
    value += min(excess, 0.0) - math.log1p(power) / SHARP
    slope = (power if excess > 0 else 1.0) / (1 + power)
    gradient[4] += slope * sums[8] / sums[4] ** 2
    gradient[8] = -slope / sums[4]
    return float(value)


@njit(cache=True, nogil=True, error_model="numpy")
def bleu_plus_one(rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """BLEU+1 (0..1) of each sentence (n, 9): one more match and n-gram of the orders 2, 3 and 4.

    Lin and Och (2004), https://aclanthology.org/C04-1072. 0 without a matching word.
    """
    values = np.zeros(len(rows))
    for i in range(len(rows)):
        if rows[i, 0] > 0:
            precisions = rows[i, 0] / rows[i, 4]
            for n in range(1, 4):
                precisions *= (rows[i, n] + 1.0) / (rows[i, 4 + n] + 1.0)
            brevity = math.exp(min(0.0, 1 - rows[i, 8] / rows[i, 4]))
            values[i] = math.sqrt(math.sqrt(precisions)) * brevity
    return values
