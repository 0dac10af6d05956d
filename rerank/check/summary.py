"""Figures of k-best lists: sentences, documents, sizes, features, unknown words, and BLEU.

F feature values, T sentences, K candidates of a sentence, n candidates of a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label, offsets_of
from rerank.corpus.kbest import KBest

VARIES, IN_LISTS, EVERYWHERE = "no", "in each list", "yes"


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """A feature: its smallest and largest value, and whether it can order candidates at all."""

    name: str
    least: float
    most: float
    constant: str  # VARIES, IN_LISTS or EVERYWHERE

    def to_dict(self) -> dict[str, object]:
        """The feature as JSON values."""
        return {
            "name": self.name,
            "min": self.least,
            "max": self.most,
            "constant": self.constant == EVERYWHERE,
            "constant_in_lists": self.constant != VARIES,
        }


@dataclass(frozen=True, slots=True)
class Unknown:
    """Words of a list, of all its candidates, that a language model does not know."""

    model: str
    words: int
    oov: int
    most_frequent: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """The counts as JSON values."""
        return {
            "model": self.model,
            "words": self.words,
            "oov": self.oov,
            "most_frequent": list(self.most_frequent),
        }


@dataclass(frozen=True, slots=True)
class BleuScores:
    """BLEU of the first candidates and of the oracle, 0 to 100, and the metric's signature."""

    first: float
    oracle: float
    signature: str

    def to_dict(self) -> dict[str, object]:
        """The scores as JSON values."""
        return {"first": self.first, "oracle": self.oracle, "signature": self.signature}


@dataclass(frozen=True, slots=True)
class Summary:
    """What k-best lists hold.

    form: format of the list; documents: None where nothing tells them; lengths: of documents, in
    sentences; k: of each sentence (T,), 0 where there are no candidates.
    """

    name: str
    form: str
    documents: int | None
    lengths: tuple[int, ...]
    k: NDArray[np.int64]
    features: tuple[FeatureRange, ...]
    sparse: int
    duplicates: int
    empty: int
    unknown: tuple[Unknown, ...] = ()
    bleu: BleuScores | None = None

    @property
    def candidates(self) -> int:
        """Number of all candidates."""
        return int(self.k.sum())

    @property
    def sizes(self) -> tuple[int, float, int]:
        """Minimum, median and maximum of K over the sentences with candidates; zeros if none."""
        some = self.k[self.k > 0]
        if not len(some):
            return 0, 0.0, 0
        return int(some.min()), float(np.median(some)), int(some.max())

    def to_dict(self) -> dict[str, object]:
        """The summary as JSON values, numbers unrounded."""
        least, median, most = self.sizes
        return {
            "file": self.name,
            "format": self.form,
            "sentences": len(self.k),
            "without_candidates": int((self.k == 0).sum()),
            "documents": self.documents,
            "candidates": self.candidates,
            "k": {"min": least, "median": median, "max": most},
            "features": [feature.to_dict() for feature in self.features],
            "sparse_features": self.sparse,
            "duplicates": self.duplicates,
            "empty": self.empty,
            "oov": [one.to_dict() for one in self.unknown],
            "bleu": None if self.bleu is None else self.bleu.to_dict(),
        }

    def to_text(self) -> str:
        """The summary as a few lines and a table of the features."""
        from tabulate import tabulate

        least, median, most = self.sizes
        gaps = int((self.k == 0).sum())
        rows = [
            ("list", f"{self.name} ({self.form})"),
            ("sentences", f"{len(self.k):,}" + (f", {gaps:,} without hypotheses" if gaps else "")),
            ("documents", self._documents()),
            ("hypotheses", f"{self.candidates:,}; k min {least}, median {median:g}, max {most}"),
            ("duplicates", f"{self.duplicates:,}, empty hypotheses {self.empty:,}"),
        ]
        if self.bleu is not None:
            first, oracle = self.bleu.first, self.bleu.oracle
            rows.append(("BLEU", f"first {first:.2f}, oracle {oracle:.2f} ({self.bleu.signature})"))
        for one in self.unknown:
            words = f" ({', '.join(one.most_frequent)})" if one.most_frequent else ""
            share = one.oov / max(1, one.words)
            rows.append((f"OOV {one.model}", f"{share:.2%} of {one.words:,} words{words}"))
        lines = tabulate(rows, tablefmt="plain", disable_numparse=True)
        if not self.features:
            return f"{lines}\nfeatures    none\n"
        table = tabulate(
            [(f.name, f"{f.least:g}", f"{f.most:g}", f.constant) for f in self.features],
            headers=["feature", "min", "max", "constant"],
            colalign=["left", "right", "right", "left"],
            disable_numparse=True,
        )
        sparse = f"{self.sparse:,} sparse features\n" if self.sparse else ""
        return f"{lines}\n\n{table}\n{sparse}"

    def _documents(self) -> str:
        if self.documents is None:
            return "unknown; decode and tune-mert need --docs FILE or --no-docs each|one"
        shortest, longest = min(self.lengths, default=0), max(self.lengths, default=0)
        lengths = f"{shortest:,}" + (f" to {longest:,}" if longest > shortest else "")
        return f"{self.documents:,} of {lengths} sentences"


class Features:
    """Ranges of the features of lists that are read a document at a time."""

    def __init__(self) -> None:
        self._labels: tuple[Label, ...] = ()
        self._least: NDArray[np.float64] | None = None
        self._most: NDArray[np.float64] | None = None
        self._varies: NDArray[np.bool_] | None = None
        self._sparse: set[str] = set()

    def add(self, kbest: KBest) -> None:
        """Add a document's lists. O(n F)."""
        if not kbest.n:
            return
        starts = offsets_of(kbest.counts[kbest.counts > 0])[:-1]
        least = np.minimum.reduceat(kbest.dense, starts, axis=0)
        most = np.maximum.reduceat(kbest.dense, starts, axis=0)
        varies = np.asarray((least < most).any(axis=0))
        self._sparse.update(kbest.sparse.names)
        low, high = least.min(axis=0), most.max(axis=0)
        if self._least is None or self._most is None or self._varies is None:
            self._labels = kbest.labels
            self._least, self._most, self._varies = low, high, varies
        else:
            self._least = np.minimum(self._least, low)
            self._most = np.maximum(self._most, high)
            self._varies = self._varies | varies

    @property
    def sparse(self) -> int:
        """Number of sparse features."""
        return len(self._sparse)

    def ranges(self) -> tuple[FeatureRange, ...]:
        """Each value of each feature, in the order of the list."""
        from rerank.corpus.columns import column_names

        if self._least is None or self._most is None or self._varies is None:
            return ()
        names: Sequence[str] = column_names(self._labels)
        found = []
        for name, least, most, varies in zip(
            names, self._least.tolist(), self._most.tolist(), self._varies.tolist(), strict=True
        ):
            constant = VARIES if varies else EVERYWHERE if least == most else IN_LISTS
            found.append(FeatureRange(name, least, most, constant))
        return tuple(found)
