"""The features that are tuned: their start weights and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.errors import UsageError
from rerank.formats.weights import Weights, fitted_to, vector
from rerank.scorers.features import TOTAL, FeatureSpace
from rerank.tuning.bounds import Bounds
from rerank.tuning.system_start import Alternatives


@dataclass(frozen=True, slots=True)
class TunedFeatures:
    """Which features are tuned, from which start weights, and within which ranges.

    names: of the tuned features, empty for all; given: start weights, 0 for features
    without one, and `source`, where they come from; ranges: least and greatest weight, by the name
    of a feature or of one of its columns; option: of the shell that names them, for messages;
    alternatives: features one of which alone is the start, where no weights are given
    """

    names: Sequence[str] = ()
    given: Weights | None = None
    source: str = "start"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    option: str = "--features"
    alternatives: Alternatives = field(default_factory=Alternatives)

    @property
    def total(self) -> bool:
        """Whether the list's total is a feature."""
        return TOTAL in self.names or (self.given is not None and TOTAL in self.given.dense)

    @property
    def sparse(self) -> Mapping[str, float]:
        """Weights of sparse features, which are not tuned."""
        return {} if self.given is None else self.given.sparse

    def other_sparse(self, space: FeatureSpace) -> Mapping[str, float]:
        """Those weights of sparse features that are not start weights of dense ones."""
        if self.given is None:
            return {}
        return fitted_to(self.given, space.labels, source=self.source).sparse

    def start(self, space: FeatureSpace) -> NDArray[np.float64]:
        """Start weights (F,)."""
        if self.given is None:
            return np.zeros(space.width)
        return vector(self.given, space.labels, default=0.0, source=self.source)

    def columns(self, space: FeatureSpace) -> NDArray[np.int64]:
        """The tuned columns (G,); UsageError for the name of an unknown feature."""
        known = [label.name for label in space.labels]
        for name in self.names:
            if name not in known:
                raise UsageError(
                    f"{self.option} {name}: no such feature; there are {', '.join(known)}"
                )
        tuned = [name in self.names or not self.names for name in known]
        return np.flatnonzero(np.repeat(tuned, [label.width for label in space.labels]))

    def bounds(self, space: FeatureSpace) -> Bounds:
        """Ranges of all weights (F,); UsageError for an unknown name or a start weight outside."""
        names, start = column_names(space.labels), self.start(space)
        owners = [label.name for label in space.labels for _ in range(label.width)]
        bounds = Bounds.none(space.width)
        tuned = set(self.columns(space).tolist())
        for name, (low, high) in self.ranges.items():
            columns = [f for f, both in enumerate(zip(names, owners, strict=True)) if name in both]
            if not columns:
                raise UsageError(f"--range {name}=…: no such feature; there are {', '.join(names)}")
            if not tuned.intersection(columns):
                raise UsageError(
                    f"--range {name}=…: this weight is not tuned; name its feature in {self.option}"
                )
            if not (np.isinf(bounds.low[columns]) & np.isinf(bounds.high[columns])).all():
                raise UsageError(f"--range {name}=…: a second range of one weight")
            bounds.low[columns], bounds.high[columns] = low, high
            for f in columns:
                if not low <= start[f] <= high:
                    raise UsageError(
                        f"--range {name}={low:g}:{high:g}: the start weight of {names[f]} is "
                        f"{start[f]:g}; give one within by --start"
                    )
        return bounds

    def check(self, space: FeatureSpace, announce: Callable[[str], None]) -> None:
        """Refuse unknown names, bad ranges and start weights; report features that begin at 0."""
        self.bounds(space)
        start = self.start(space)
        for f in np.flatnonzero(~np.isfinite(start))[:1]:
            name = column_names(space.labels)[f]
            raise UsageError(f"start weight of {name}: expected a finite number, found {start[f]}")
        if self.given is None:
            return
        known = fitted_to(self.given, space.labels, source=self.source).dense
        missing = [label.name for label in space.labels if label.name not in known]
        if missing:
            announce(f"features without a weight in {self.source} begin at 0: {', '.join(missing)}")
