"""K-best lists in memory: candidates of many sentences as columns.

T source sentences, K candidates of a sentence, n candidates of all of them, F dense feature
values. Logarithms are natural; larger scores are better.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.corpus.columns import SparseColumns, TextColumn, offsets_of, places_of, reversed_lists
from rerank.corpus.labels import Label
from rerank.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class KBest:
    """Candidates of T consecutive source sentences, best first.

    Candidates of a file have line numbers and the lines themselves, which only the file's format
    can read; candidates made in memory (`of`) have neither. The candidate that takes the place of
    missing ones (`rerank.corpus.missing`) has the number 0, and its text as its line.
    """

    source: str  # file name for messages
    first: int  # number of the first of the T sentences, from 0, in the source
    offsets: NDArray[np.int64]  # (T+1,): sentence t has the rows offsets[t]:offsets[t + 1]
    texts: TextColumn  # (n,) hypotheses, without blanks around them
    ranks: NDArray[np.int64]  # (n,) places in the lists of the file, from 0; rising in each list
    labels: tuple[Label, ...]  # their widths sum to F
    dense: NDArray[np.float64]  # (n, F)
    sparse: SparseColumns
    totals: NDArray[np.float64] | None = None  # (n,); None if any line of the document has none
    lines: TextColumn | None = None  # (n,) as they are in the file
    line_numbers: NDArray[np.int64] | None = None  # (n,) in the file, from 1; 0: not in the file
    side: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # (T,) lines of each kind

    @classmethod
    def of(
        cls,
        lists: Sequence[Sequence[tuple[str, Mapping[str, float]]]],
        *,
        source: str = "",
        sparse: Collection[str] = (),
    ) -> KBest:
        """K-best lists in memory: the candidates of each sentence, a text and its features each.

        >>> KBest.of([[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], []]).counts.tolist()
        [2, 0]

        Every candidate has the features of the first one; each becomes a label of one value.
        sparse: names of features that are 0 in a candidate without them. `InputError`, which
        counts sentences and candidates from 0, for other features, for values that are not finite
        numbers, and for a text of several lines.
        """
        rows = [candidate for candidates in lists for candidate in candidates]
        names = [name for _, features in rows[:1] for name in features if name not in sparse]
        for t, candidates in enumerate(lists):
            for k, (text, features) in enumerate(candidates):
                if fault := _fault(text, features, names, sparse):
                    raise InputError(f"sentence {t}, candidate {k}: {fault}", source=source)
        counts = np.array([len(candidates) for candidates in lists], np.int64)
        dense = [[features[name] for name in names] for _, features in rows]
        others = [{n: v for n, v in features.items() if n in sparse} for _, features in rows]
        return cls(
            source=source,
            first=0,
            offsets=offsets_of(counts),
            texts=TextColumn.of([text.strip(" ").encode() for text, _ in rows]),
            ranks=places_of(counts),
            labels=tuple(Label(name, 1) for name in names),
            dense=np.array(dense, np.float64).reshape(len(rows), len(names)),
            sparse=SparseColumns.of(others),
        )

    def __len__(self) -> int:
        """T, sentences without candidates included."""
        return len(self.offsets) - 1

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.texts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """K of each sentence, (T,)."""
        return np.diff(self.offsets)

    def rows(self, t: int) -> range:
        """Rows of the candidates of sentence t."""
        return range(int(self.offsets[t]), int(self.offsets[t + 1]))

    def tokens(self, row: int) -> list[bytes]:
        """Words of a candidate: what ASCII spaces separate."""
        return split_words(self.texts[row])

    def text(self, row: int) -> bytes:
        """Words of a candidate, joined by single spaces."""
        return b" ".join(self.tokens(row))

    def chosen(self, choices: Sequence[int]) -> list[bytes]:
        """Text of each sentence, (T,): of a path's candidate, empty where there is none."""
        path = iter(choices)
        rows = (self.rows(t) for t in range(len(self)))
        return [self.text(found[next(path)]) if found else b"" for found in rows]

    def line(self, row: int) -> bytes:
        """The line of a candidate as it is in the file; ValueError for one made in memory."""
        if self.lines is None:
            raise ValueError("candidates that were made in memory have no lines")
        return self.lines[row]

    def line_number(self, row: int) -> int | None:
        """Number of a candidate's line in the file, from 1; None for one that is in no file."""
        return None if self.line_numbers is None else int(self.line_numbers[row]) or None

    def head(self, sentences: int) -> KBest:
        """The lists of the first sentences."""
        counts = self.counts[:sentences]
        side = {kind: lines[:sentences] for kind, lines in self.side.items()}
        return replace(self._with(counts, np.arange(counts.sum())), side=side)

    def sentence(self, t: int) -> KBest:
        """The list of sentence t alone."""
        rows = np.arange(*self.offsets[t : t + 2].tolist())
        side = {kind: lines[t : t + 1] for kind, lines in self.side.items()}
        return replace(self._with(self.counts[t : t + 1], rows), first=self.first + t, side=side)

    def with_last(self, texts: Sequence[bytes]) -> KBest:
        """Each list that has candidates with one more, its text (T,); the features of these are 0.

        As of candidates in memory, there are neither lines nor totals.
        """
        present = np.flatnonzero(self.counts)
        places = self.offsets[present + 1]
        own = self.texts.to_list()
        joined = [
            line
            for t, start, stop in zip(present.tolist(), self.offsets[present], places, strict=True)
            for line in (*own[start:stop], texts[t])
        ]
        nothing = np.zeros((len(places), self.dense.shape[1]))
        return replace(
            self,
            offsets=offsets_of(self.counts + (self.counts > 0)),
            texts=TextColumn.of(joined),
            ranks=np.insert(self.ranks, places, self.ranks[places - 1] + 1),
            dense=np.insert(self.dense, places, nothing, axis=0),
            sparse=SparseColumns.empty(len(joined)),
            totals=None,
            lines=None,
            line_numbers=None,
        )

    def reversed(self) -> KBest:
        """The lists from the last sentence to the first; `first` stays that of the source."""
        side = {kind: lines[::-1] for kind, lines in self.side.items()}
        return replace(self._with(self.counts[::-1], reversed_lists(self.counts)), side=side)

    def _with(self, counts: NDArray[np.int64], rows: NDArray[np.int64]) -> KBest:
        """Lists of these sizes, of candidates in some rows; side information as it was."""
        return replace(
            self,
            offsets=offsets_of(counts),
            texts=self.texts.take(rows),
            ranks=self.ranks[rows],
            dense=self.dense[rows],
            sparse=self.sparse.take(rows),
            totals=None if self.totals is None else self.totals[rows],
            lines=None if self.lines is None else self.lines.take(rows),
            line_numbers=None if self.line_numbers is None else self.line_numbers[rows],
        )


def split_words(text: bytes) -> list[bytes]:
    """Words of a hypothesis: what ASCII spaces separate."""
    return [word for word in text.split(b" ") if word]


def _fault(
    text: str, features: Mapping[str, float], names: Sequence[str], sparse: Collection[str]
) -> str:
    """What is wrong with a candidate made in memory; empty if nothing is."""
    if "\n" in text:
        return f"expected a text of one line, found {text!r}; replace the line ends by spaces"
    found = [name for name in features if name not in sparse]
    if len(found) != len(names) or any(name not in features for name in names):
        return (
            f"expected the features {', '.join(names) or '(none)'}, as the first candidate has, "
            f"found {', '.join(found) or '(none)'}; give every candidate the same features, or "
            "name those that may be missing as sparse"
        )
    for name, value in features.items():
        if not isinstance(value, Real) or not abs(value) <= LARGEST:
            limit = f"a finite number up to {LARGEST:g}"
            return f"expected {limit} for the feature {name!r}, found {value!r}"
    return ""
