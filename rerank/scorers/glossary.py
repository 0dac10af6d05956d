"""Terms of a glossary as a feature: how many of the terms of its source a candidate misses.

A file has a line for each term: the source term, a TAB, and its translations, with `|` between
them. The score of a candidate is −(number of terms of the source sentence none of whose
translations it has), of order 0; a term that a sentence has several times counts once there.

Texts are compared as tokens (`script_tokens`), after NFKC and, unless `case=yes`,
without regard to case: terms match parts of texts in Chinese and other scripts without spaces, and
whole words elsewhere. With `inflection=yes` a word of four letters or more matches, in source and
target, whatever begins as it does up to the last two letters, at least the first four, and goes on
with up to four letters: `city` in `cities`, `город` in `городами`, and `term` in `terminal`, too.

In a source sentence the longest terms come first, of equally long ones the leftmost, and what a
term covers is in no other: of `New York Times` and `York`, only the former.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from decoders.arrays import Unary
from decoders.problem import DocumentProblem
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, UsageError, printable
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.plain_texts import text_lines
from rerank.formats.tokens import Place
from rerank.metrics.discourse import script_tokens
from rerank.notices import Notices
from rerank.scorers.features import FeatureSource
from rerank.scorers.model_options import GLOSSARY, glossary_value
from rerank.table import Column, Table

WEIGHT = 10.0  # beside agreement, whose chrF is in points
MOST_ROWS = 15  # of the printed table
_STEM, _CUT, _ENDING = 4, 2, 4  # letters that stay, that may be cut off, that may follow
_MOST_BYTES = 64 << 20
_COLUMNS = (
    *(Column("term"), Column("translations")),
    *(Column("sentences", "d"), Column("kept", "d"), Column("possible", "d")),
)


@dataclass(frozen=True, slots=True)
class Term:
    """A source term and its translations, as a glossary has them."""

    source: str
    targets: tuple[str, ...]


TermRecord: TypeAlias = tuple[str, str, bool]
"""A term of a sentence in a trace: source, translations, and whether the choice has one of them."""


@dataclass(slots=True)
class _Words:
    """Terms that begin with the same words: those that end here, and by stem how they go on.

    next: the pattern of a word with this stem, and what follows it.
    """

    terms: list[int] = field(default_factory=list)
    next: dict[str, tuple[re.Pattern[str], _Words]] = field(default_factory=dict)


class Glossary:
    """Terms, found in source sentences, and looked for in their translations.

    case, inflection: as the module says.
    """

    def __init__(
        self, terms: Sequence[Term], *, case: bool = False, inflection: bool = False
    ) -> None:
        self.terms, self._case, self._inflection = tuple(terms), case, inflection
        self._first = _Words()
        for i, term in enumerate(terms):
            node = self._first
            for word in self.tokens(term.source):
                pattern = re.compile(self._ending(word))
                _, node = node.next.setdefault(self._stem(word), (pattern, _Words()))
            node.terms.append(i)
        self._targets = [
            [re.compile(_joined(map(self._ending, self.tokens(text)))) for text in term.targets]
            for term in terms
        ]

    @classmethod
    def read(cls, path: FilePath, value: str, notices: Notices) -> Glossary:
        """The glossary in a file; value: of `--glossary`, with its keys. InputError for a fault."""
        empty, place = cls((), **glossary_value(value)[1]), Place(display(path), notices, 0)
        terms, lines_of = list[Term](), dict[tuple[str, ...], int]()
        for line in place.numbered(read_lines(path, notices, max_bytes=_MOST_BYTES)):
            if not line.strip():
                continue
            columns, fault = [part.strip() for part in line.decode().split("\t")], ""
            source, targets = columns[0], columns[1].split("|") if len(columns) == 2 else []
            words = tuple(empty.tokens(source))
            if len(columns) != 2:
                fault = (
                    "expected a source term, a TAB and its translations, with | between these, "
                    f"found {len(columns)} column{'s' * (len(columns) > 1)}; "
                    + ("leave out the others" if columns[2:] else "put a TAB between the two")
                )
            elif not words:
                fault = "expected a source term before the TAB, found none; leave out the line"
            elif not all(map(empty.tokens, targets)):
                fault = (
                    f"expected translations of {_shown(source)}, with | between them, found an "
                    "empty one; leave out the | beside it, or the line"
                )
            elif words in lines_of:
                fault = (
                    f"expected a term once, found {_shown(source)} again, as on line "
                    f"{lines_of[words]}; put all its translations on that line, with | between them"
                )
            if fault:
                place.refuse(InputError(fault))
                continue
            lines_of[words] = place.line
            terms.append(Term(source, tuple(text.strip() for text in targets)))
        if not terms:
            raise InputError(
                "expected lines of a source term, a TAB and its translations, found none",
                source=place.source,
            )
        return cls(terms, case=empty._case, inflection=empty._inflection)

    def tokens(self, text: str) -> list[str]:
        """Tokens of a text, as they are compared."""
        return script_tokens(text, case=self._case)

    def found_in(self, source: str) -> list[int]:
        """Terms of a source sentence, by number, in rising order.

        Longer terms first, without words that a longer one has. O(words · words of the longest
        term), however many terms there are.
        """
        words, matches = self.tokens(source), list[tuple[int, int, int]]()
        for start in range(len(words)):
            nodes = [self._first]
            for end, word in enumerate(words[start:], start + 1):
                ends = range(_STEM, len(word)) if self._inflection else ()
                stems = [word, *(word[:n] for n in ends)]
                steps = (node.next[stem] for node in nodes for stem in stems if stem in node.next)
                nodes = [node for pattern, node in steps if pattern.fullmatch(word)]
                if not nodes:
                    break
                matches += [(start - end, start, i) for node in nodes for i in node.terms]
        covered, terms = set[int](), set[int]()
        for size, start, i in sorted(matches):
            if covered.isdisjoint(places := range(start, start - size)):
                covered.update(places)
                terms.add(i)
        return sorted(terms)

    def kept(self, terms: Sequence[int], text: str) -> list[bool]:
        """Whether a text has any translation of each of some terms."""
        joined = _joined(self.tokens(text))
        return [any(target.search(joined) for target in self._targets[i]) for i in terms]

    def _stem(self, word: str) -> str:
        """What words of other endings begin with: the word itself where there are none."""
        inflected = self._inflection and len(word) >= _STEM and word.isalpha()
        return word[: max(_STEM, len(word) - _CUT)] if inflected else word

    def _ending(self, word: str) -> str:
        stem = self._stem(word)
        more = f"[^\\W\\d_]{{0,{_ENDING}}}" if self._inflection and len(word) >= _STEM else ""
        return re.escape(stem) + (more if word.isalpha() else "")


def _joined(words: Iterable[str]) -> str:
    """Words with a TAB, which is in no token, before and behind each."""
    return "\t".join(["", *words, ""])


def _shown(text: str) -> str:
    return repr(printable(text[:60]))


class GlossaryScores(FeatureSource):
    """The feature `glossary` of candidates beside their source sentences.

    O(characters) time a candidate of a sentence with terms; `count` adds up the terms that the
    choices keep.
    """

    side_information = ("source",)
    preset = WEIGHT

    def __init__(self, glossary: Glossary, source: str, digest: str) -> None:
        super().__init__(GLOSSARY)
        self.glossary, self.source, self.digest = glossary, source, digest
        self._seen, self._terms = set[int](), lru_cache(1 << 16)(glossary.found_in)
        self._kept = lru_cache(1 << 16)(lambda terms, text: glossary.kept(terms, text))
        self.sentences, self.kept, self.possible = Counter[int](), Counter[int](), Counter[int]()

    @classmethod
    def read(cls, path: FilePath, value: str, notices: Notices) -> GlossaryScores:
        """The feature of a glossary in a file; value: of `--glossary`."""
        glossary = Glossary.read(path, value, notices)
        identity = repr((glossary_value(value)[1], glossary.terms))
        return cls(glossary, display(path), hashlib.sha256(identity.encode()).hexdigest())

    def choose(self, lists: Iterable[KBest]) -> str:
        """UsageError if the lists have the feature already."""
        first = next(iter(lists), None)
        if first is not None and any(label.name == GLOSSARY for label in first.labels):
            raise UsageError(
                f"--{GLOSSARY}: {first.source} already has the feature {GLOSSARY!r}; leave the "
                "option out"
            )
        return ""

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Scores of a document."""
        return Unary(
            [-(~kept).sum(axis=1, dtype=np.float64) + 0.0 for _, kept in self._kept_terms(kbest)]
        )

    def count(self, kbest: KBest, choices: Sequence[int]) -> dict[str, list[list[TermRecord]]]:
        """Add the terms of a document: in its sentences, in its choices, and in any candidates.

        `terms` of each sentence that has candidates, and whether its choice keeps them.
        """
        records = list[list[TermRecord]]()
        for (terms, kept), choice in zip(self._kept_terms(kbest), choices, strict=True):
            records.append([])
            for i, by_candidate in zip(terms, kept.T.tolist(), strict=True):
                self.sentences[i] += 1
                self.kept[i] += by_candidate[choice]
                self.possible[i] += any(by_candidate)
                records[-1].append((*self._shown_term(i), by_candidate[choice]))
        return {"terms": records}

    def _shown_term(self, i: int) -> tuple[str, str]:
        term = self.glossary.terms[i]
        return term.source, "|".join(term.targets)

    def _kept_terms(self, kbest: KBest) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Terms of each sentence that has candidates, and which candidate keeps each, (K, …)."""
        sources, texts = kbest.side["source"], kbest.texts.to_list()
        for t, (a, b) in enumerate(pairwise(kbest.offsets.tolist())):
            if a < b:
                terms = tuple(self._terms(sources[t].decode()))
                self._seen.update(terms)
                rows = [self._kept(terms, text.decode()) for text in texts[a:b] if terms]
                yield terms, np.array(rows, np.bool_).reshape(b - a, len(terms))

    def finish(self, source: str, notices: Notices) -> None:
        """A warning of terms that no source sentence has."""
        if self._seen:
            warn_of_unused(self.glossary, self._seen, self.source, notices)

    def report(self) -> str:
        """How many terms the choices kept, and a table of those that they missed most.

        `glossary: 4 of 4 terms found, at 40 places; kept by the choice at 31, by any …`.
        """
        line = f"{GLOSSARY}: {len(self._seen):,} of {len(self.glossary.terms):,} terms found"
        if not self.sentences:
            return line
        line += (
            f", at {self.sentences.total():,} places; kept by the choice at {self.kept.total():,}, "
            f"by any candidate at {self.possible.total():,}"
        )
        missed = [row for row in self.rows() if row[3] < row[2]]
        if not missed:
            return line
        more = f"\n… and {len(missed) - MOST_ROWS:,} others" * (len(missed) > MOST_ROWS)
        table = Table(_COLUMNS, missed[:MOST_ROWS]).to_text().removesuffix("\n")
        return f"{line}; missed:\n{table}{more}"

    def rows(self) -> list[tuple[str, str, int, int, int]]:
        """Term, translations, sentences that have it, in how many of them kept, and possible.

        Those that are missed most come first.
        """
        order = sorted(self.sentences, key=lambda i: (self.kept[i] - self.sentences[i], i))
        return [
            (*self._shown_term(i), self.sentences[i], self.kept[i], self.possible[i]) for i in order
        ]

    def provenance(self) -> dict[str, object]:
        """The file, and the digest of its terms."""
        return {GLOSSARY: {"file": Path(self.source).name, "digest": self.digest}}

    def summary(self) -> dict[str, object]:
        """All rows as JSON values."""
        names = ("source", "targets", "sentences", "kept", "possible")
        terms = [
            {**dict(zip(names, row, strict=True)), "targets": row[1].split("|")}
            for row in self.rows()
        ]
        counts = self.sentences, self.kept, self.possible
        totals = {name: own.total() for name, own in zip(names[2:], counts, strict=True)}
        return {GLOSSARY: {**totals, "terms": terms}}


def warn_of_unused(
    glossary: Glossary, seen: Collection[int], source: str, notices: Notices
) -> None:
    """A warning of the terms, but those seen, that no source sentence has."""
    unused = [_shown(term.source) for i, term in enumerate(glossary.terms) if i not in seen]
    if unused:
        notices.add("unused-term", source=source, names=unused)


def check_terms(value: str, source: FilePath, notices: Notices, of_source: Notices) -> str:
    """Faults of a glossary and of a source, and a warning of terms that no line of it has.

    Returns how many lines have each term, in words.
    """
    path, _ = glossary_value(value)
    glossary = Glossary.read(path, value, notices)
    lines = text_lines(source, of_source, "source")
    seen = Counter(i for line in lines for i in glossary.found_in(line.decode()))
    warn_of_unused(glossary, seen, display(path), notices)
    counts = [f"{glossary.terms[i].source} {n:,}" for i, n in seen.most_common(MOST_ROWS)]
    found = f"{display(path)}: {len(seen):,} of {len(glossary.terms):,} terms found"
    return f"{found}; in so many lines: {', '.join(counts)}" if counts else found
