"""Lexical consistency: source words that a document translates in more than one way.

The score of a candidate is −(the number of translations that it gives to source words which have
another translation in the document so far), so that a path sums to −Σ_w max(0, n(w) − 1), where
n(w) counts the distinct translations of source word w in the document. After Ding, Utiyama & Sumita
2014, https://aclanthology.org/2014.amta-researchers.9, whose feature is the token-type ratio of the
translations of source words; the number of types, unlike a ratio, is a sum over sentences.
Alignments are those of the list (`rerank.scorers.alignments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Array, DocumentProblem, Indices
from rerank.corpus.kbest import Document, split_words
from rerank.errors import InputError, UsageError
from rerank.scorers.alignments import Pair, translations

Mask = NDArray[np.bool_]
Seen = tuple[Mask, Mask]  # (N, P) pairs and (N, U) source words that each of N histories has had


class Consistency:
    """The scorer `consistency`, of unbounded order; needs the source sentences (`--source`).

    ignored: file of source words that do not count, such as function words, one on a line.
    """

    order = None
    side_information = ("source",)

    def __init__(self, ignored: str = "") -> None:
        self.ignored: frozenset[bytes] = frozenset()
        if ignored:
            try:
                self.ignored = frozenset(Path(ignored).read_bytes().split())
            except OSError as fault:
                raise UsageError(
                    f"{ignored}: expected a file of source words to ignore, one on a line: "
                    f"{fault.strerror}"
                ) from None

    def score(self, document: Document) -> ConsistencyProblem:
        """Scores of a document's candidates after each history; InputError without alignments."""
        kbest = document.kbest
        if kbest is None or kbest.lines is None:
            raise InputError(
                "lexical consistency needs the alignments of a k-best list that was read from a "
                "file, this document was made in memory; read it with rerank.read"
            )
        lists: list[list[list[Pair]]] = []
        for t in document.present:
            source = split_words(kbest.side["source"][t])
            own = [translations(kbest, row, source) for row in kbest.rows(t)]
            line = kbest.line_number(kbest.rows(t)[0])  # None of a source in place of hypotheses
            if all(pairs is None for pairs in own) and source and line is not None:
                raise InputError(
                    "expected a column of alignments (0-0 1-2) or of phrase segmentation (0-1=0-2) "
                    "after the total, found none; have Moses write it with "
                    "-print-alignment-info-in-n-best",
                    source=kbest.source,
                    line=line,
                )
            lists.append(
                [[pair for pair in pairs or () if pair[0] not in self.ignored] for pairs in own]
            )
        return ConsistencyProblem(lists)


class ConsistencyProblem(DocumentProblem):
    """Scores by translations seen so far; a state is the pairs and words that were seen.

    lists: pairs of source word and translation of each candidate of each sentence. Memory: a byte
    for each history, and each of the P pairs and U words of the document.
    """

    lengths: tuple[int, ...] = ()
    order: int | None = None

    def __init__(self, lists: Sequence[Sequence[Sequence[Pair]]]) -> None:
        self.lengths = tuple(map(len, lists))
        pairs = {pair: None for own in lists for one in own for pair in one}
        places = {pair: n for n, pair in enumerate(pairs)}
        words = {word: n for n, word in enumerate(dict.fromkeys(word for word, _ in pairs))}
        self._sizes = len(places), len(words)
        self._pairs = [[_distinct(places[pair] for pair in one) for one in own] for own in lists]
        self._words = [[_distinct(words[w] for w, _ in one) for one in own] for own in lists]

    def initial(self) -> Seen:
        """Nothing seen."""
        pairs, words = self._sizes
        return np.zeros((1, pairs), np.bool_), np.zeros((1, words), np.bool_)

    def extend(self, states: Seen, t: int) -> tuple[Array, tuple[Seen, int]]:
        """Scores (N, K_t) after each of N histories; O(N · pairs of the list) products."""
        new_pairs = _counts(~states[0], self._pairs[t])
        new_words = _counts(~states[1], self._words[t])  # whose first translation is free
        return new_words - new_pairs, (states, t)

    def select(self, successors: tuple[Seen, int], parents: Indices, choices: Indices) -> Seen:
        """The histories with the translations of the chosen candidates."""
        (pairs, words), t = successors
        return self._with((pairs[parents], words[parents]), t, choices)

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path; O(pairs of the paths)."""
        n, sums = len(paths), np.zeros(len(paths))
        pairs, words = self._sizes
        states = np.zeros((n, pairs), np.bool_), np.zeros((n, words), np.bool_)
        for s in range(min(t + horizon + 1, len(self.lengths))):
            if s >= t:
                for i, k in enumerate(paths[:, s].tolist()):
                    old = states[0][i, self._pairs[s][k]], states[1][i, self._words[s][k]]
                    sums[i] += int((~old[1]).sum()) - int((~old[0]).sum())
            states = self._with(states, s, paths[:, s])
        return sums

    def _with(self, states: Seen, t: int, choices: Indices) -> Seen:
        """Changes states, which are copies, by candidates of sentence t."""
        for i, k in enumerate(choices.tolist()):
            states[0][i, self._pairs[t][k]] = True
            states[1][i, self._words[t][k]] = True
        return states


def _distinct(places: Iterable[int]) -> Indices:
    """Distinct places, in order."""
    return np.unique(np.fromiter(places, np.intp))


def _counts(marked: Mask, candidates: Sequence[Indices]) -> Array:
    """How many of each candidate's places (K) are marked in each of N rows, (N, K)."""
    own = np.unique(np.concatenate([np.zeros(0, np.intp), *candidates]))
    member = np.zeros((len(own), len(candidates)))
    for k, places in enumerate(candidates):
        member[np.searchsorted(own, places), k] = 1
    return np.asarray(marked[:, own].astype(np.float64) @ member, np.float64)
