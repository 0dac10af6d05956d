"""The learning rate over a stage of training, below its peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

SIGNIFICANT = 1.003  # ratio of an epoch's loss to the next one's; of Mikolov's toolkit
MOST_HALVINGS = 2


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stage is: updates made, updates of all its epochs, and the share of the budget."""

    update: int
    updates: int
    share_done: float
    halvings: int


class Schedule:
    """Base of the schedules: a constant rate.

    halves: whether the rate is halved after an epoch that has gained little, and the stage ends
    after the second one; the validation text is then read after every epoch.
    """

    halves: ClassVar[bool] = False

    def rate(self, peak: float, at: Position) -> float:
        """Rate of the next update."""
        return peak


class Annealed(Schedule):
    """Rises over the first 2 % of the updates (or 200), then falls to zero linearly."""

    def rate(self, peak: float, at: Position) -> float:
        """A ramp of the updates times a ramp of the budget, which may be time."""
        warm = min(1.0, (at.update + 1) / min(200.0, 0.02 * at.updates + 1))
        return peak * warm * max(1.0 - at.share_done, 1e-3)


class Halving(Schedule):
    """Half the rate after each epoch whose validation loss has not fallen significantly.

    Lin et al. 2015, §4.2, with what counts as significant, and the end after the second such
    epoch, of Mikolov's toolkit.
    """

    halves = True

    def rate(self, peak: float, at: Position) -> float:
        """The peak, halved as often as said."""
        return peak * 0.5**at.halvings


def fell(before: float | None, now: float) -> bool:
    """Whether an epoch's loss is significantly below that of the epoch before, if there is one."""
    return before is None or now * SIGNIFICANT < before


SCHEDULES: Mapping[str, Schedule] = {
    "annealed": Annealed(),
    "constant": Schedule(),
    "halving": Halving(),
}
