"""Documents in the tokens of a causal language model: candidates, and contexts of sentences.

Every sentence is tokenised on its own, together with its newline or the space before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lm.causal.engine import CausalContext, Tree, trees_of
from lm.causal.folder import UNLIMITED, CausalModel
from lm.trie import Candidates
from rerank.scorers.causal_options import CausalOptions

Choices = tuple[int, ...]


class CausalTexts:
    """The candidates of a document's T lists.

    lines: their texts; too_long: makes the error of a list t with a candidate of so many tokens;
    cut: is called for each context that the model's positions cut.
    """

    def __init__(
        self,
        model: CausalModel,
        lines: Sequence[Sequence[str]],
        options: CausalOptions,
        *,
        too_long: Callable[[int, int], Exception],
        cut: Callable[[], None],
    ) -> None:
        self.model, self.options = model, options
        self._lines, self._too_long, self._cut = lines, too_long, cut
        self._trees: dict[tuple[int, bool], list[Tree]] = {}

    def _encoded(self, before: str, after: str) -> Candidates:
        texts = [before + one + after if one or after else "" for own in self._lines for one in own]
        tokens = iter(self.model.encode(texts))
        return Candidates.of([[next(tokens) for _ in own] for own in self._lines])

    @cached_property
    def first(self) -> Candidates:
        """The candidates as sentences without context."""
        return self._encoded("", "\n" if self.options.join == "newline" else "")

    @cached_property
    def following(self) -> Candidates:
        """The candidates as sentences after others."""
        return self.first if self.options.join == "newline" else self._encoded(" ", "")

    @cached_property
    def _sizes(self) -> list[NDArray[np.int64]]:
        """(K_t,) tokens of the candidates of each list, in the longer of the two forms."""
        both = [np.diff(own.offsets) for own in (self.first, self.following)]
        return np.split(np.maximum(*both), self.first.lists[1:-1])

    def sentence(self, t: int, k: int, *, first: bool) -> tuple[int, ...]:
        """The tokens of a candidate."""
        own = self.first if first else self.following
        row = int(own.lists[t]) + k
        return tuple(own.tokens[own.offsets[row] : own.offsets[row + 1]].tolist())

    def forms(self, t: int, context: CausalContext) -> Candidates:
        """The list t, as it stands after a context."""
        own = self.following if len(context.ids) > 1 else self.first
        return own.part(t, t + 1)

    def trees(self, t: int, context: CausalContext) -> list[Tree]:
        """Prefix trees of list t, as it stands after a context."""
        name = t, len(context.ids) > 1
        if name not in self._trees:
            self._trees[name] = trees_of(self.forms(t, context))
        return self._trees[name]

    def context(self, t: int, choices: Choices) -> CausalContext:
        """The context of sentence t after the choices of the sentences just before it.

        Of these the last ones that are within the window and, with the longest candidate of list
        t, within the model's positions: whole sentences. O(tokens).
        """
        longest = int(self._sizes[t].max(initial=0))
        room = self.model.positions - longest  # the last token of a candidate is never read
        if room < 0:
            raise self._too_long(t, longest)
        window = UNLIMITED if self.options.tokens is None else self.options.tokens
        sizes = [int(self._sizes[t - 1 - i][k]) for i, k in enumerate(reversed(choices))]
        wanted, fitting = np.searchsorted(
            np.cumsum(np.array(sizes, np.int64)), [window, room], side="right"
        ).tolist()
        if fitting < wanted:
            self._cut()
        begin, found = t - min(wanted, fitting), CausalContext((self.model.begin,))
        for s in range(begin, t):
            tokens = self.sentence(s, choices[s - t], first=len(found.ids) == 1)
            found = found.after(tokens)
        return found
