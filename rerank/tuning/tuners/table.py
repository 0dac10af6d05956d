"""The tuners beside MERT by name: description, publication, and the function itself.

Each is called as `tune(pool, start, rng=rng)` and returns weights (F,): see `Tuner`. A new one is
one file, one row of `ALGORITHMS` and one test. `load` imports the function when it is needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from rerank.errors import UsageError

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


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the table: `target` is "module:attribute", `source` the publication."""

    name: str
    target: str
    description: str
    source: str

    def load(self) -> Tuner:
        """The function itself."""
        module, _, attribute = self.target.partition(":")
        function: Tuner = getattr(import_module(module), attribute)
        return function


MERT = "mert"
ALGORITHMS: Mapping[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm(
            name="mira",
            target="rerank.tuning.tuners.mira:mira",
            description="batch MIRA: hope and fear candidates, best averaged weights",
            source="Cherry and Foster (2012), https://aclanthology.org/N12-1047",
        ),
        Algorithm(
            name="pro",
            target="rerank.tuning.tuners.pro:pro",
            description="pairwise ranking: logistic regression on pairs of candidates by BLEU+1",
            source="Hopkins and May (2011), https://aclanthology.org/D11-1125",
        ),
        Algorithm(
            name="expected-bleu",
            target="rerank.tuning.tuners.expected_bleu:expected_bleu",
            description="gradient ascent on BLEU of expected statistics, annealed",
            source="Rosti et al. (2011), https://aclanthology.org/W11-2119",
        ),
    )
}


def named(name: str, table: Mapping[str, Algorithm] = ALGORITHMS) -> Algorithm:
    """The row of this name; UsageError with the nearest name for an unknown one."""
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no tuning algorithm is called {name!r}; {hint}there are {MERT}, {', '.join(table)}"
        )
    return table[name]
