"""Side information: a source sentence, a label or a number for each sentence of a text.

Each kind is a text parallel to the target text, with another vocabulary: the source sentences, or
labels, which are sentences of a single word. It is not searched, so that it never raises the order
of a model. Kinds may be derived from others: what another sentence has. `next-target` is derived
from the target text itself: a context that needs it depends on later sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm.composition import fact
from lm.vocabulary import SPECIAL

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lm.sentences import Rows

# kinds, and the field of `lm.composition.Config` that holds the size of a kind's vocabulary
KINDS: Mapping[str, str] = {
    "source": "source_words",
    "relations": "relation_labels",
    "topics": "topic_labels",
}
LABELS = frozenset({"relations", "topics"})  # kinds whose sentences are one word
NUMBERS = frozenset({"parents"})  # kinds whose sentences are the number of a sentence, or nothing
TARGET = "target"  # the text itself, which no file gives


def information_of(context: Any, *, training: bool = True) -> tuple[str, ...]:
    """Kinds that a context, or its maker, needs of every sentence; those of training if asked."""
    needed = list(fact(context, "side_information") or ())
    needed += (fact(context, "training_information") or ()) if training else ()
    sources = (DERIVED[kind].sources if kind in DERIVED else (kind,) for kind in needed)
    return tuple(dict.fromkeys(chain(*sources)))


def is_causal(context: Any) -> bool:
    """Whether a context, or what a maker makes, needs no later sentences of its text."""
    needed = fact(context, "side_information") or ()
    return all(DERIVED[kind].kind != TARGET for kind in needed if kind in DERIVED)


@dataclass(frozen=True, slots=True, eq=False)
class SideText:
    """S sentences of word ids, in the columns of `lm.corpus.Corpus`.

    tokens: (N,) int32 ids; sentences: (S + 1,) offsets into tokens.
    """

    tokens: NDArray[np.int32]
    sentences: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.int64], device: torch.device | None = None) -> Tensor:
        """Words (B, M) of sentences, −1 for none: 1 + id, and zeros behind shorter sentences."""
        import torch

        starts, lengths = self.sentences[chosen], np.diff(self.sentences)[chosen] * (chosen >= 0)
        columns = np.arange(int(lengths.max(initial=0)))
        within = columns < lengths[:, None]
        words = np.zeros(within.shape, dtype=np.int64)
        words[within] = self.tokens[(starts[:, None] + columns)[within]] + 1
        return torch.from_numpy(words).to(device)

    def take(self, chosen: NDArray[np.int64]) -> SideText:
        """The sentences `chosen`, in this order."""
        lengths = np.diff(self.sentences)[chosen]
        sentences = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.sentences[chosen] - sentences[:-1], lengths)
        return SideText(self.tokens[np.arange(sentences[-1]) + moved], sentences)


class SentenceNumbers(SideText):
    """For each of S sentences the index of another, as its only word, or nothing."""

    __slots__ = ()

    @classmethod
    def of(cls, indices: NDArray[np.int64]) -> SentenceNumbers:
        """Columns of (S,) indices, −1 for none."""
        known = indices >= 0
        return cls(indices[known].astype(np.int32), np.concatenate([[0], np.cumsum(known)]))

    @property
    def indices(self) -> NDArray[np.int64]:
        """(S,) indices, −1 for none."""
        known = np.diff(self.sentences) > 0
        indices = np.full(len(known), -1, dtype=np.int64)
        indices[known] = self.tokens
        return indices

    def take(self, chosen: NDArray[np.int64]) -> SentenceNumbers:
        """The sentences `chosen`, in this order, in which they are counted; none for others."""
        places = np.full(len(self.sentences) - 1, -1, dtype=np.int64)
        places[chosen] = np.arange(len(chosen))
        indices = self.indices[chosen]
        return self.of(np.where(indices >= 0, places[indices], -1))


SideTexts = Mapping[str, SideText]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Derived:
    """What another sentence has of a kind.

    sources: kinds that it needs; other: (B,) the other sentence of each of the sentences chosen
    (B,), −1 for none, by the side information and (D + 1,) the documents.
    """

    kind: str
    sources: tuple[str, ...]
    other: Callable[[SideTexts, Indices, Indices], Indices]


def _next(side: SideTexts, chosen: Indices, documents: Indices) -> Indices:
    """The next sentence of the same document."""
    end = documents[np.searchsorted(documents, chosen, side="right")]
    return np.where(chosen + 1 < end, chosen + 1, -1)


def _parents(side: SideTexts, chosen: Indices, documents: Indices) -> Indices:
    """The sentence of which each is a satellite."""
    parents = side["parents"]
    return SentenceNumbers(parents.tokens, parents.sentences).indices[chosen]


DERIVED: Mapping[str, Derived] = {
    "next-source": Derived("source", ("source",), _next),
    "parent-source": Derived("source", ("source", "parents"), _parents),
    "next-target": Derived(TARGET, (), _next),
}


def rows_of(
    side: SideTexts,
    kinds: Sequence[str],
    chosen: Indices,
    documents: Indices,
    device: torch.device | None = None,
) -> Rows:
    """Side information (B rows) of the sentences `chosen`; documents: (D + 1,) offsets."""
    from lm.sentences import Rows

    tensors = []
    for kind in kinds:
        derived, others = DERIVED.get(kind), chosen
        if derived is not None:
            kind, others = derived.kind, derived.other(side, chosen, documents)
        tensors.append(side[kind].rows(others, device))
    return Rows.of(*tensors)


def labels_of(rows: Tensor) -> Tensor:
    """Labels (B,) of `SideText.rows` of a kind of `LABELS`: 0 for special words, then others."""
    return (rows[:, 0] - len(SPECIAL)).clamp(min=0)


def n_labels(words: int) -> int:
    """Number of labels that `labels_of` gives, for a vocabulary of so many words."""
    return words - len(SPECIAL) + 1


def words_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Ids (B, M) of `SideText.rows`, padded at the beginning instead, and a mask of the words."""
    import torch

    m = rows.shape[1]
    index = torch.arange(m, device=rows.device) - (m - (rows > 0).sum(dim=1, keepdim=True))
    mask = index >= 0
    return (rows.gather(1, index.clamp(min=0)) - 1) * mask, mask
