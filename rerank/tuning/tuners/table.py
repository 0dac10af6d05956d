"""The tuners beside MERT by name. A new one is one file, one row of `ALGORITHMS` and one test."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from rerank.errors import UsageError
from rerank.registry import attribute

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rerank.tuning.pools.pool import Pool


class Tuner(Protocol):
    """A search for weights with a better corpus BLEU on a pool, on one thread.

    The weights are finite, of any norm, and never worse than `start` (F,), which is returned where
    nothing better is found or BLEU does not depend on the weights. Features that vary in no list
    keep their weight. An all-zero start without fixed scores may be replaced by any weights. The
    units of the features do not matter, except for rounding.
    """

    def __call__(
        self, pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The weights (F,)."""
        ...


AUTO, MERT, PRO = "auto", "mert", "pro"
ALGORITHMS: Mapping[str, str] = {
    PRO: "rerank.tuning.tuners.pro:pro",
    "expected-bleu": "rerank.tuning.tuners.expected_bleu:expected_bleu",
}
"""Where the function of each is; it is imported when it is used."""


def load(name: str) -> Tuner:
    """The tuner of this name; UsageError with the nearest name for an unknown one."""
    if name not in ALGORITHMS:
        near = difflib.get_close_matches(name, ALGORITHMS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no tuning algorithm is called {name!r}; {hint}there are "
            f"{', '.join([MERT, *ALGORITHMS])}"
        )
    tuner: Tuner = attribute(ALGORITHMS[name])
    return tuner
