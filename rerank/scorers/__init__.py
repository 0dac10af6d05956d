"""Scorers: features of candidates that may depend on the document's other sentences.

Whoever writes a scorer writes a `Scorer`: its order and one function. A run holds a
`features.FeatureSource` for every scorer: language models (`language_model`), scores in files
(`score_files`), and `plugin`, which wraps caching, timing, reports and checks around any `Scorer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from decoders.problem import DocumentProblem
    from rerank.corpus.kbest import Document

TOTAL = "total"  # the feature that is the list's total
Scores: TypeAlias = "Sequence[ArrayLike] | DocumentProblem"
"""What a scorer returns for a document of T sentences, K_t candidates of sentence t.

Order 0: T arrays (K_t,). Order 1: T matrices (K_{t-1}, K_t), the first (1, K_0). Order n: T arrays
(K_{t-n}, …, K_t), with 1 for each sentence before the first. The sentences before are the nearest
earlier ones that have candidates; what stands for a sentence without candidates is not read. Any
order, and None: a `DocumentProblem` over the sentences that have candidates. Larger is better; −inf
is a score, NaN and +inf are faults.
"""

PlainScorer: TypeAlias = "Callable[[Document], Sequence[ArrayLike]]"
"""A scorer of order 0 as a function."""


class Scorer(Protocol):
    """What the author of a scorer writes; see `rerank.scorers.plugin` for optional attributes."""

    @property
    def order(self) -> int | None:
        """Number of earlier sentences that a score depends on; None if unbounded."""
        ...

    def score(self, document: Document) -> Scores:
        """Scores of all candidates of a document."""
        ...


AnyScorer: TypeAlias = "Scorer | PlainScorer | str"
"""A scorer in Python: an object, a function, or a value of `--scorer`."""
