"""An objective whose values and standard errors are those of a textbook."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.objective import Sums


@dataclass(frozen=True)
class Mean:
    """The mean over units of the first statistic: its jackknife is the usual standard error."""

    name: str = "mean"

    def value(self, sums: Sums) -> float:
        return float(sums[:, 0].mean())

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> NDArray[np.float64]:
        raise AssertionError
