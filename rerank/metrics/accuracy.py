"""How sure an accuracy is, and a difference of two accuracies on the same items.

Wilson (1927), https://doi.org/10.1080/01621459.1927.10502953; McNemar (1947),
https://doi.org/10.1007/BF02295996, in its exact form, which is the sign test.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_LEVEL = 0.95


def wilson_interval(successes: float, n: int) -> tuple[float, float]:
    """Ends of the 95% score interval of a proportion of n > 0 independent items.

    successes: 0…n; an item may count ½, which makes the interval wider than it need be.
    """
    z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    p, weight = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / weight
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / weight
    return max(0.0, centre - half), min(1.0, centre + half)


def sign_test(better: int, worse: int) -> float:
    """Two-sided p of so uneven a split if an item were as likely to be better as worse.

    Items that are neither do not count; 1 if all are. With outcomes right and wrong this is the
    exact test of McNemar.
    """
    if not better + worse:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(better, better + worse).pvalue)
