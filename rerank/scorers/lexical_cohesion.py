"""Lexical cohesion as features: words that a document repeats, and translations that it changes.

`document-cache`: the score of a candidate is Σ_w log(1 − λ + λ V c(w) / n) over its words, where c
counts the n words of the document's earlier sentences on the path, and V = 10,000: what a document
cache adds to the log-probability under p(w) = (1 − λ) / V + λ c(w) / n, and 0 in the first
sentence. Words are split on ASCII space.

`consistency`: −(the number of translations that a candidate gives to source words which have
another one in the document so far), so that a path sums to −Σ_w max(0, n(w) − 1), with n(w)
distinct translations of source word w. After Ding, Utiyama & Sumita 2014,
https://aclanthology.org/2014.amta-researchers.9, whose feature is the token-type ratio; the number
of types, unlike a ratio, is a sum over sentences. Alignments are those of the list (`0-0 1-2` of
words, as of Moses and Marian, or `0-1=0-2 2=3` of phrases, positions from 0); without any,
translations are found in the document itself (`implied_translations`).
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Array, DocumentProblem, Indices
from rerank.corpus.kbest import Document, KBest, split_words
from rerank.errors import InputError, UsageError
from rerank.files.encoding import NUMBER
from rerank.metrics.discourse import SOURCE_RUN, TARGET_RUN, links_of, runs_of, script_tokens
from rerank.scorers.agreement import votes_of

SHARE, VOCABULARY = 0.5, 10_000
Pair: TypeAlias = tuple[bytes, bytes]  # a source word or phrase, and its translation
Marks: TypeAlias = NDArray[Any]  # (N, M) what N histories have used

_WORDS = re.compile(rb"\s*\d+-\d+(?:\s+\d+-\d+)*\s*")
_PHRASES = re.compile(rb"\s*\d+(?:-\d+)?=\d+(?:-\d+)?(?:\s+\d+(?:-\d+)?=\d+(?:-\d+)?)*\s*")
_COVERED = 0.5  # of the votes in sentences with a source item say something for it
_FIRST = 2  # columns before are id and text


class CohesionProblem(DocumentProblem):
    """Scores by what a history has used; a state is a batch of histories, rows of marks (N, M)."""

    lengths: tuple[int, ...] = ()
    order: int | None = None

    @abstractmethod
    def _lists(self, states: Marks, t: int) -> Array:
        """Scores (N, K_t) of all candidates of sentence t."""

    @abstractmethod
    def _candidates(self, states: Marks, t: int, choices: Indices) -> Array:
        """Scores (N,) of one candidate of sentence t in each history."""

    @abstractmethod
    def _add(self, states: Marks, t: int, choices: Indices) -> None:
        """Add the marks of one candidate of sentence t to each history."""

    def extend(self, states: Marks, t: int) -> tuple[Array, tuple[Marks, int]]:
        """Scores (N, K_t) after each of N histories; O(N · words of the list) time and memory."""
        return self._lists(states, t), (states, t)

    def select(self, successors: tuple[Marks, int], parents: Indices, choices: Indices) -> Marks:
        """The histories with the chosen candidates."""
        states, t = successors
        after = states[parents]
        self._add(after, t, choices)
        return after

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path; O(words of the paths) time."""
        sums, states = np.zeros(len(paths)), np.repeat(self.initial(), len(paths), axis=0)
        for s in range(min(t + horizon + 1, len(self.lengths))):
            if s >= t:
                sums += self._candidates(states, s, paths[:, s])
            self._add(states, s, paths[:, s])
        return sums


# Repeated words


class DocumentCache:
    """The scorer `document-cache`, of unbounded order; share: λ, or its text in the shell."""

    order = None

    def __init__(self, share: float | str = SHARE) -> None:
        number = not isinstance(share, str) or NUMBER.fullmatch(os.fsencode(share))
        self.share = float(share) if number else 0.0
        if not 0 < self.share < 1:
            raise UsageError(
                "expected a weight of the document cache above 0 and below 1, found "
                f"{share!r:.60}; give document-cache:{SHARE}"
            )

    def score(self, document: Document) -> CacheProblem:
        """Scores of a document's candidates after each history."""
        return CacheProblem([document.texts[t] for t in document.present], self.share)


class CacheProblem(CohesionProblem):
    """Scores under document caches: counts (N, W + 2) of words, the last of all of them.

    W words can come again; the column behind them stands for the others, and for the end of a
    candidate, and stays 0. lists: texts of the candidates of each sentence. Memory: 4 bytes for
    each history and each of the W words.
    """

    def __init__(self, lists: Sequence[Sequence[str]], share: float) -> None:
        self.lengths, self.share = tuple(map(len, lists)), share
        words = [[[w for w in text.split(" ") if w] for text in texts] for texts in lists]
        sentences = Counter(chain(*(set(chain(*of_list)) for of_list in words)))
        again = {word: i for i, word in enumerate(w for w, n in sentences.items() if n > 1)}
        self._other = end = len(again)
        self._tokens = [
            [np.array([*(again.get(w, end) for w in text), end], np.intp) for text in texts]
            for texts in words
        ]

    def initial(self) -> Marks:
        """One empty cache."""
        return np.zeros((1, self._other + 2), np.int32)

    def _lists(self, states: Marks, t: int) -> Array:
        words, sizes = _joined(self._tokens[t])
        return self._sums(states[:, words], states[:, -1:], sizes)

    def _candidates(self, states: Marks, t: int, choices: Indices) -> Array:
        words, sizes = _joined([self._tokens[t][k] for k in choices.tolist()])
        rows = np.repeat(np.arange(len(choices)), sizes)
        return self._sums(states[rows, words], states[rows, -1], sizes)

    def _sums(self, counts: Marks, totals: Marks, sizes: Indices) -> Array:
        """Sums (…, K) of log(1 − λ + λ V c / n), 0 where n is 0, of words of K candidates."""
        gains = np.log1p(self.share * (VOCABULARY * (counts / np.maximum(totals, 1)) - 1))
        gains = np.where(totals > 0, gains, 0.0)
        ends = np.cumsum(sizes)
        gains[..., ends - 1] = 0.0
        return np.add.reduceat(gains, ends - sizes, axis=-1)

    def _add(self, states: Marks, t: int, choices: Indices) -> None:
        words, sizes = _joined([self._tokens[t][k] for k in choices.tolist()])
        np.add.at(states, (np.repeat(np.arange(len(choices)), sizes), words), 1)
        states[:, self._other] = 0
        states[:, -1] += sizes - 1


def _joined(candidates: Sequence[Indices]) -> tuple[Indices, Indices]:
    """The words of all candidates, and how many each has, its end included."""
    return np.concatenate(candidates), np.array([*map(len, candidates)])


# Changed translations


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
        """Scores of a document's candidates after each history.

        InputError where some sentences have alignments, and others have none.
        """
        kbest, present, sources = document.kbest, document.present, document.side["source"]
        lists = None if kbest is None else self._aligned(kbest, present)
        if lists is None:
            votes = [np.ones(len(texts)) for texts in document.sentences]
            if kbest is not None:
                votes = np.split(votes_of(kbest), kbest.offsets[1:-1])
            lists = implied_translations(
                [sources[t] for t in present],
                [document.texts[t] for t in present],
                [votes[t] for t in present],
            )
        # a source word or phrase is ignored, or its characters without spaces are
        counts = [
            [
                [p for p in pairs if not self.ignored & {p[0], p[0].replace(b" ", b"")}]
                for pairs in of
            ]
            for of in lists
        ]
        return ConsistencyProblem(counts)

    def _aligned(self, kbest: KBest, present: Sequence[int]) -> list[list[list[Pair]]] | None:
        """Pairs of each candidate by the alignments of the list; None if it has none."""
        lists, unaligned = list[list[list[Pair]]](), list[int | None]()
        for t in present:
            source = split_words(kbest.side["source"][t])
            candidates = [translations(kbest, row, source) for row in kbest.rows(t)]
            if source and all(pairs is None for pairs in candidates):
                unaligned.append(kbest.line_number(kbest.rows(t)[0]))  # None of a source line
            lists.append([pairs or [] for pairs in candidates])
        if not any(map(any, lists)):
            return None
        if missing := [line for line in unaligned if line is not None]:
            raise InputError(
                "expected a column of alignments (0-0 1-2) or of phrase segmentation (0-1=0-2) "
                "after the total, as other sentences have, found none; have Moses write it with "
                "-print-alignment-info-in-n-best",
                source=kbest.source,
                line=missing[0],
            )
        return lists


class ConsistencyProblem(CohesionProblem):
    """Scores by the items (N, P + U) that histories have had: pairs, and their source words.

    A new pair of word and translation costs 1, a new word gains 1: its first translation is free.
    lists: pairs of each candidate of each sentence. Memory: a byte for each history, and each of
    the P pairs and U words of the document.
    """

    def __init__(self, lists: Sequence[Sequence[Sequence[Pair]]]) -> None:
        self.lengths = tuple(map(len, lists))
        pairs = dict.fromkeys(chain(*chain(*lists)))
        words = dict.fromkeys(word for word, _ in pairs)
        places: dict[object, int] = {item: n for n, item in enumerate([*pairs, *words])}
        self._gains = np.repeat([-1.0, 1.0], [len(pairs), len(words)])
        self._items = [  # the pairs of a candidate, and their words
            [np.array(sorted(places[x] for x in {*pairs, *dict(pairs)}), np.intp) for pairs in own]
            for own in lists
        ]

    def initial(self) -> Marks:
        """Nothing seen."""
        return np.zeros((1, len(self._gains)), np.bool_)

    def _lists(self, states: Marks, t: int) -> Array:
        candidates = self._items[t]
        of_list = np.unique(np.concatenate(candidates))
        gains = np.zeros((len(of_list), len(candidates)))
        for k, items in enumerate(candidates):
            gains[np.searchsorted(of_list, items), k] = self._gains[items]
        return np.asarray((~states[:, of_list]).astype(np.float64) @ gains + 0.0)  # no −0.0

    def _candidates(self, states: Marks, t: int, choices: Indices) -> Array:
        chosen = enumerate(self._items[t][k] for k in choices.tolist())
        return np.array([self._gains[items[~states[i, items]]].sum() for i, items in chosen])

    def _add(self, states: Marks, t: int, choices: Indices) -> None:
        for i, k in enumerate(choices.tolist()):
            states[i, self._items[t][k]] = True


# Translations without alignments


def implied_translations(
    sources: Sequence[str], lists: Sequence[Sequence[str]], votes: Sequence[NDArray[np.float64]]
) -> list[list[list[Pair]]]:
    """Repeated source words and phrases, and what each candidate of a document says for them.

    sources: (S,) sentences; lists: texts of the K candidates of each; votes: (K,) of each.

    Source items s are runs of up to 4 tokens (`rerank.metrics.discourse`; of characters in
    Chinese) with letters or digits, but no single characters, in N(s) sentences, two at least and
    half of all at most; target items g are runs of up to 3 tokens in candidates of at least two
    sentences that have s. With p(g) the sum over all sentences of the share of votes whose texts
    have g, and p(s, g) that over the sentences with s, g is taken for a translation of s if
    p(s, g) ≥ 0.8 p(g): it rarely stands elsewhere. Each g translates one s alone, that of the
    greatest Dice coefficient 2 p(s, g) / (N(s) + p(g)), of equal ones the longest; and a candidate
    gives s one translation, that of its items of the greatest coefficient. Of these, alternatives
    count: translations that in two sentences at least stand beside others of s, given by other
    candidates, if candidates with half of the votes have any. What one sentence alone has is not
    found.

    After competitive linking (Melamed 2000, https://aclanthology.org/J00-2004). O(tokens of all
    candidates) time and memory, and a product of two sparse matrices: 0.1 s for a document of 100
    sentences and 4 systems.
    """
    items = [runs_of(script_tokens(source), SOURCE_RUN) for source in sources]
    texts = [[runs_of(script_tokens(text), TARGET_RUN) for text in of_list] for of_list in lists]
    weights = [(of_list / of_list.sum()).tolist() for of_list in votes]
    shares = [Counter[str]() for _ in texts]
    for of_list, list_weights, of_sentence in zip(texts, weights, shares, strict=True):
        for runs, weight in zip(of_list, list_weights, strict=True):
            for run in runs:
                of_sentence[run] += weight
    links = links_of(items, shares)
    best: list[list[list[Pair]]] = [
        [_best(here, runs, links) for runs in of_list]
        for here, of_list in zip(items, texts, strict=True)
    ]
    # what are alternatives, in sentences with more than one translation of an item
    covered, sentences = Counter[bytes](), Counter[Pair]()
    for candidates, list_weights in zip(best, weights, strict=True):
        distinct = set(chain(*candidates))
        times = Counter(s for s, _ in distinct)
        sentences.update(pair for pair in distinct if times[pair[0]] > 1)
        for pairs, weight in zip(candidates, list_weights, strict=True):
            for s, _ in pairs:
                covered[s] += weight
    counts = Counter(run.encode() for run in chain(*items))
    kept = {
        pair
        for pair, n in sentences.items()
        if n > 1 and covered[pair[0]] >= _COVERED * counts[pair[0]]
    }
    return [[[pair for pair in pairs if pair in kept] for pairs in own] for own in best]


def _best(
    here: Collection[str], runs: Mapping[str, int], links: Mapping[str, tuple[float, str]]
) -> list[Pair]:
    """Pairs of the source items here, and their translations among the runs of a candidate."""
    best: dict[str, tuple[float, int, str]] = {}
    for run in runs.keys() & links.keys():
        dice, item = links[run]
        if item in here:
            best[item] = max(best.get(item, (0.0, 0, "")), (dice, runs[run], run))
    return [(s.encode(), run.encode()) for s, (_, _, run) in sorted(best.items())]


# Alignments


def translations(kbest: KBest, row: int, source: Sequence[bytes]) -> list[Pair] | None:
    """Pairs of source word and translation of a candidate; None if its line has no such column.

    The translation of a word is the words aligned to it, in order. Without a word alignment the
    pairs are those of the segmentation, of phrases. source: words of the source sentence.
    InputError for positions that are not in the sentences.
    """
    columns = [] if kbest.lines is None else kbest.lines[row].split(b"|||")[_FIRST:]
    target = kbest.tokens(row)
    for pattern, read in ((_WORDS, _aligned), (_PHRASES, _segmented)):
        for column in reversed(columns):
            if pattern.fullmatch(column):
                try:
                    return list(read(column, source, target))
                except IndexError:
                    raise InputError(
                        f"alignment {column.strip().decode()[:60]!r}: expected positions in "
                        f"a source sentence of {len(source)} words and a hypothesis of "
                        f"{len(target)}; are --source and the list of the same, tokenised text?",
                        source=kbest.source,
                        line=kbest.line_number(row),
                    ) from None
    return None


def _aligned(column: bytes, source: Sequence[bytes], target: Sequence[bytes]) -> Iterator[Pair]:
    """Aligned words by source position."""
    links: dict[int, set[int]] = {}
    for link in column.split():
        first, _, second = link.partition(b"-")
        links.setdefault(int(first), set()).add(int(second))
    for s, aligned in sorted(links.items()):
        yield source[s], b" ".join(target[t] for t in sorted(aligned))


def _segmented(column: bytes, source: Sequence[bytes], target: Sequence[bytes]) -> Iterator[Pair]:
    """Phrases and their translations."""
    for pair in column.split():
        ours, _, theirs = pair.partition(b"=")
        yield _phrase(ours, source), _phrase(theirs, target)


def _phrase(span: bytes, words: Sequence[bytes]) -> bytes:
    first, _, last = span.partition(b"-")
    end = int(last or first)
    words[end]  # IndexError where it ends outside of the sentence
    return b" ".join(words[int(first) : end + 1])
