"""Searches for weights on a pool: `mert` and, by name in `ALGORITHMS`, the tuners beside it.

A new tuner is a function as `rerank.tuning.pool_search.Tuner`, one row of `ALGORITHMS` and one
test.
"""

from __future__ import annotations

from collections.abc import Mapping

MERT = "mert"
ALGORITHMS: Mapping[str, str] = {
    "pro": "rerank.tuning.tuners.gradient:pro",
    "expected-bleu": "rerank.tuning.tuners.gradient:expected_bleu",
}
"""Where the function of each is; it is imported when it is used."""
