"""The direction in which a document is searched, by what its sentences depend on."""

from __future__ import annotations

from enum import StrEnum


class Direction(StrEnum):
    """How the sentences of a document are searched.

    FORWARD: from the first to the last; REVERSED: from the last to the first, where a sentence
    depends on later ones alone; BOTH: in no order, where it depends on earlier and on later ones.
    """

    FORWARD = "forward"
    REVERSED = "reversed"
    BOTH = "both"
