"""What was chosen so far in a document, as a model sees it: contexts, and keys to know them by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Indices

if TYPE_CHECKING:
    from torch import Tensor

KEY_BYTES = 16
FIRST = bytes(KEY_BYTES)  # key of the empty history


@dataclass(slots=True, eq=False)
class Histories:
    """N histories before sentence t.

    contexts: (N, C), rows of it meaningful where `known` (N,) says so, None if none is;
    origin: the histories before, and of each the parent among them and the choice, None if
    all are known. Contexts that were made up for are entered.
    """

    t: int
    keys: list[bytes]
    contexts: Tensor | None
    known: NDArray[np.bool_]
    origin: tuple[Histories, Indices, Indices] | None = None

    def enter(self, rows: Indices, contexts: Tensor) -> None:
        """Make the contexts (M, C) of some rows known."""
        if self.contexts is None:
            self.contexts = contexts.new_zeros(len(self.keys), contexts.shape[1])
        self.contexts[rows], self.known[rows] = contexts, True
        if self.known.all():
            self.origin = None  # which would keep all earlier histories in memory


@dataclass(frozen=True, slots=True, eq=False)
class Extended:
    """Histories with what their candidates make of them.

    rows: (N,) of each history in `contexts` (M, C) and `summary` (M, K, U), −1 where the
    scores were remembered; these are None where all were.
    """

    histories: Histories
    rows: Indices
    contexts: Tensor | None = None
    summary: Tensor | None = None
