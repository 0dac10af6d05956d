"""Searches for weights on a pool: `mert` and, by name in `ALGORITHMS`, the tuners beside it.

A new tuner is one file with a function as `rerank.tuning.pool_search.Tuner`, one row of
`ALGORITHMS` and one test.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from rerank.errors import UsageError

MERT = "mert"
ALGORITHMS: Mapping[str, str] = {
    "pro": "rerank.tuning.tuners.pro:pro",
    "expected-bleu": "rerank.tuning.tuners.expected_bleu:expected_bleu",
}
"""Where the function of each is; it is imported when it is used."""


def check_algorithm(name: str) -> None:
    """UsageError with the nearest name for a tuner that there is not."""
    if name != MERT and name not in ALGORITHMS:
        near = difflib.get_close_matches(name, ALGORITHMS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no tuning algorithm is called {name!r}; {hint}there are "
            f"{', '.join([MERT, *ALGORITHMS])}"
        )
