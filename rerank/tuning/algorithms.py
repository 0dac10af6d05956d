"""The tuners by name: what each maximises, and where it was published; and the choice of one.

All are called alike, `tune(pool, start, rng=rng)`, and return weights (F,): see `Tuner`. A new one
is one file, one row of `ALGORITHMS` and one test. The table holds names of functions; `load`
imports them.
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

    from rerank.tuning.pool import Pool


class Tuner(Protocol):
    """A search for weights with a better corpus BLEU on a pool, on one thread.

    The weights are finite, of any norm, and never worse than `start` (F,), which comes back where
    nothing better is found or BLEU says nothing. Features that vary in no list keep their weight.
    Zeros with nothing fixed are no weights: from there any others may come back. The units of the
    features do not matter, but for rounding.
    """

    def __call__(
        self, pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """The weights (F,)."""
        ...


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the table: `target` is "module:attribute", `source` what to cite."""

    name: str
    target: str
    description: str
    source: str

    def load(self) -> Tuner:
        """The function itself."""
        module, _, attribute = self.target.partition(":")
        function: Tuner = getattr(import_module(module), attribute)
        return function


ALGORITHMS: Mapping[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm(
            name="mira",
            target="rerank.tuning.mira:mira",
            description="batch MIRA: hope and fear candidates, best averaged weights",
            source="Cherry and Foster (2012), https://aclanthology.org/N12-1047",
        ),
        Algorithm(
            name="pro",
            target="rerank.tuning.pro:pro",
            description="pairwise ranking: logistic regression on pairs of candidates by BLEU+1",
            source="Hopkins and May (2011), https://aclanthology.org/D11-1125",
        ),
        Algorithm(
            name="expected-bleu",
            target="rerank.tuning.expected_bleu:expected_bleu",
            description="gradient ascent on BLEU of expected statistics, annealed",
            source="Rosti et al. (2011), https://aclanthology.org/W11-2119",
        ),
        Algorithm(
            name="random",
            target="rerank.tuning.random_search:random_search",
            description="about 1,900 random points and the best of them, a baseline",
            source="Bergstra and Bengio (2012), https://jmlr.org/papers/v13/bergstra12a.html",
        ),
    )
}


def named(name: str, table: Mapping[str, Algorithm] = ALGORITHMS) -> Algorithm:
    """The row of this name; UsageError with the nearest name where there is none."""
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no tuning algorithm is called {name!r}; {hint}there are {', '.join(table)}"
        )
    return table[name]
