"""Averages of a model's weights over the updates of a run."""

from __future__ import annotations

from copy import deepcopy

import torch

from lm.model import DocumentLM
from lm.training.optimisers import sparse_parameters


class WeightAverage:
    """Polynomial-decay average of Shamir & Zhang 2013 (https://arxiv.org/abs/1212.1824).

    After update t: average += (weights − average) / (1 + share · (t − 1)), an exponential average
    over about the last `share` of the updates so far; share 1 is the mean of all of them. It does
    not depend on the run's end, which a time limit leaves open. `model` has the averaged weights.
    """

    def __init__(self, model: DocumentLM, share: float) -> None:
        # sparse tables are shared with the model, not averaged: an update reads little of them
        shared: dict[int, object] = {id(p): p for p in sparse_parameters(model)}
        self.share, self.model = share, deepcopy(model, shared)

    @torch.no_grad()
    def add(self, model: DocumentLM, update: int) -> None:
        """Take in the weights after an update; updates count from 1. O(parameters) time."""
        both = zip(self.model.parameters(), model.parameters(), strict=True)
        pairs = [(mine.data, theirs.data) for mine, theirs in both if mine is not theirs]
        mine, theirs = ([pair[i] for pair in pairs] for i in (0, 1))
        torch._foreach_lerp_(mine, theirs, 1 / (1 + self.share * (update - 1)))
