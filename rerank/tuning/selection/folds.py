"""Cross-validation folds of a pool: whole documents, or blocks of lines where documents are few."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.pools.pool import Pool

FOLDS = 5
FEWEST = 4  # documents; with fewer, blocks of lines are held out
BLOCKS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Folds:
    """A pool whose lists belong to U units, each of which is held out once.

    pool: its `documents` are the units, so that sums of statistics are those of units; unit: what
    a unit is, for people; parts: the units of each fold, ascending
    """

    pool: Pool
    unit: str
    parts: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, pool: Pool, rng: np.random.Generator) -> Folds | None:
        """Five folds of documents drawn by `rng`; of blocks of lines under four documents.

        None where there are fewer than four lists with candidates. O(S) time.
        """
        unit = "documents"
        if pool.documents is None or pool.n_documents < FEWEST:
            pool, unit = _in_blocks(pool), "blocks of lines"
        if pool.n_documents < FEWEST:
            return None
        units = rng.permutation(pool.n_documents)
        number = min(FOLDS, len(units))
        parts = tuple(np.sort(units[fold::number]) for fold in range(number))
        return cls(pool, unit, parts)

    @property
    def n_units(self) -> int:
        """U."""
        return self.pool.n_documents

    def split(self, part: NDArray[np.int64]) -> tuple[Pool, Pool]:
        """The pool of all units but those of a fold, and the pool of these. O(n F) memory."""
        held = np.isin(self.pool.places, part)
        return self.pool.take(~held), self.pool.take(held)


def _in_blocks(pool: Pool) -> Pool:
    """The pool with blocks of lines, in the order of the documents, in the place of documents."""
    n_lists = len(pool.offsets) - 1
    blocks = np.zeros(n_lists, dtype=np.int64)
    order = np.arange(n_lists)
    if pool.documents is not None:
        order = np.argsort(pool.documents, kind="stable")
    filled = order[np.diff(pool.offsets)[order] > 0]
    number = min(BLOCKS, len(filled))
    blocks[filled] = np.arange(len(filled)) * number // max(len(filled), 1)
    return replace(pool, documents=blocks)
