"""Sizes of models by name: what `train-lm --size` stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """Columns of the embeddings, units of each hidden layer, number of layers."""

    embed: int
    hidden: int
    layers: int


# small: for a CPU; medium: for hours of a CPU; large: for a GPU, near the 650 units and two
# layers of the "medium" LSTM of Zaremba et al. 2014, with tied embeddings
SIZES: Mapping[str, Size] = {
    "small": Size(128, 256, 1),
    "medium": Size(256, 512, 1),
    "large": Size(512, 1024, 2),
}
