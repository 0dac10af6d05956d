"""F1 of the words of a class against references, from clipped counts.

A class finds its words in a sentence: those of a list, names, or content words of some frequency.
A row of statistics is `[matches, words of the hypothesis, words of the reference]`, with matches
clipped: the sum over words of the smaller of their two counts, in a sentence. Precision, recall and
F1 are of the sums. The word F-measure of compare-mt (Neubig et al. 2019,
https://aclanthology.org/N19-4007) is the same for a single reference.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.errors import InputError, shown
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.files.signature import signature
from rerank.metrics import CorpusScore, Rows
from rerank.notices import Notices

CLOSED = ("pronouns", "auxiliaries", "function")
"""Built-in lists, of closed classes: the other function words are determiners, prepositions, …."""
BINS = ((0, 0), (1, 9), (10, 99), (100, 999), (1000, None))
"""Frequencies of content words: least and greatest count."""

LISTS = Path(__file__).parent / "word_lists"
_MOST_BYTES = 64 << 20  # of counts, unpacked
_LIST_BYTES = 16 << 20
_ENDS = frozenset('.!?…:"“”„«»')  # a sentence or a quotation may begin behind them


@dataclass(frozen=True, slots=True)
class WordClass:
    """A kind of words: its name, and the words of a sentence that belong to it, as compared."""

    name: str
    members: Callable[[Sequence[str]], list[str]]


def listed_words(name: str, words: frozenset[str]) -> WordClass:
    """The words of a list, whatever their case."""
    return WordClass(name, lambda line: [word for word in map(str.lower, line) if word in words])


def names_of(words: Sequence[str], excluded: frozenset[str]) -> list[str]:
    """Words with a capital that do not begin a sentence, but for those of a list, such as `I`.

    Lines without a lower-case letter have no names.
    """
    if not any(letter.islower() for word in words for letter in word):
        return []
    names, begins = [], True
    for word in words:
        if not any(map(str.isalnum, word)):
            begins = begins or not _ENDS.isdisjoint(word)
            continue
        if word[0].isupper() and not begins and word.lower() not in excluded:
            names.append(word)
        begins = False
    return names


def content_words(
    words: Sequence[str],
    closed: frozenset[str],
    counts: Mapping[str, int],
    least: int = 0,
    most: int | None = None,
) -> list[str]:
    """Words with a letter, outside closed classes, with a count from `least` to `most`."""
    return [
        word
        for word in map(str.lower, words)
        if word not in closed and any(map(str.isalpha, word))
        if least <= counts.get(word, 0) <= (math.inf if most is None else most)
    ]


def closed_classes(
    lists: Mapping[str, frozenset[str]], notices: Notices
) -> dict[str, frozenset[str]]:
    """The words of each class of `CLOSED`: of the list of its name, or else the English ones."""
    return {
        name: lists[name] if name in lists else read_words(LISTS / f"{name}.en", notices)
        for name in CLOSED
    }


def english_classes(
    lists: Mapping[str, frozenset[str]], frequencies: Mapping[str, int] | None, notices: Notices
) -> list[WordClass]:
    """The lists of `CLOSED`, by default English, then names and content words, then other lists.

    frequencies: counts of words, with which content words are divided into `BINS`, too
    """
    closed = closed_classes(lists, notices)
    union = frozenset[str]().union(*closed.values())
    classes = {name: listed_words(name, words) for name, words in closed.items()}
    classes["names"] = WordClass("names", partial(names_of, excluded=closed["pronouns"]))
    content = partial(content_words, closed=union, counts=frequencies or {})
    classes["content"] = WordClass("content", content)
    for least, most in BINS if frequencies is not None else ():
        span = f"{least}+" if most is None else f"{least}" if most == least else f"{least}-{most}"
        name = f"content {span}"
        classes[name] = WordClass(name, partial(content, least=least, most=most))
    return [
        *(classes | {name: listed_words(name, words) for name, words in lists.items()}).values()
    ]


def read_words(path: str | Path, notices: Notices) -> frozenset[str]:
    """Words of a file, one a line, in lower case; InputError for a line with more, or for none."""
    source, entries = display(path), set[str]()
    for line, content in enumerate(read_lines(path, notices, max_bytes=_LIST_BYTES), 1):
        words = content.decode().split()
        if len(words) > 1:
            raise InputError(
                f"expected one word a line, found {len(words)}: {shown(content)}; write each on a "
                "line of its own",
                source=source,
                line=line,
            )
        entries.update(html.unescape(word).lower() for word in words)
    if not entries:
        raise InputError("expected a word a line, found no word", source=source)
    return frozenset(entries)


def read_frequencies(path: str | Path, notices: Notices) -> dict[str, int]:
    """Counts of lower-case words, from lines of a word and a count; repeated words are added up.

    InputError for another line.
    """
    counts = Counter[str]()
    for line, content in enumerate(read_lines(path, notices, max_bytes=_MOST_BYTES), 1):
        parts = content.decode().split()
        if len(parts) != 2 or not (parts[1].isascii() and parts[1].isdigit()):
            raise InputError(
                f"expected a word and its count, found {shown(content)}; write them with a space "
                "between them",
                source=display(path),
                line=line,
            )
        counts[html.unescape(parts[0]).lower()] += int(parts[1][:18])
    return dict(counts)


def class_statistics(
    classes: Sequence[WordClass],
    hypotheses: Iterable[Sequence[bytes]],
    references: Iterable[Sequence[bytes]],
    split: Callable[[bytes], list[str]],
) -> NDArray[np.int64]:
    """Statistics (n, C, 3) of the n hypotheses of T sentences. O(words · classes) time.

    split: words of a line, in which escapes of Moses are undone here. Of several references that
    counts with which a hypothesis has the greatest F1 of a class in its sentence, the first of
    equal ones; where both have no word of the class, F1 is 1.
    """

    def counted(line: bytes) -> list[Counter[str]]:
        words = [html.unescape(word) if "&" in word else word for word in split(line)]
        return [Counter(one.members(words)) for one in classes]

    rows = []
    for group, lines in zip(hypotheses, references, strict=True):
        targets = [counted(line) for line in lines]
        for line in group:
            for c, words in enumerate(counted(line)):
                rows_of_targets = (
                    ((words & target[c]).total(), words.total(), target[c].total())
                    for target in targets
                )
                rows.append(max(rows_of_targets, key=_f1))
    return np.array(rows, dtype=np.int64).reshape(-1, len(classes), 3)


def _f1(row: tuple[int, int, int]) -> float:
    matches, *both = row
    return 2 * matches / sum(both) if any(both) else 1.0


class WordF1(CorpusScore):
    """F1, 0 to 100, of summed statistics of a class of words."""

    def __init__(self, name: str) -> None:
        self.name = name

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """F1 (…) of summed statistics (…, 3); 0 where neither side has a word."""
        words = summed[..., 1] + summed[..., 2]
        return np.asarray(200 * summed[..., 0] / np.maximum(words, 1))

    def signature(self, n_references: int) -> str:
        """`rerank|metric:word-f1|class:pronouns|nrefs:1|v:0.1.0`."""
        return signature({"metric": "word-f1", "class": self.name, "nrefs": n_references})
