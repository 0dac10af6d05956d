"""Signs of how a text was prepared: tokenised, cut into subwords, cased, marked; and their counts.

A profile counts in how many lines of a text each sign stands: words, characters, marks of tools,
codes of languages, case, spaces before punctuation, and what stands at the ends of all lines.
`rerank.corpus.preparation` compares profiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

MOST_LINES = 2000  # lines of a text that are counted
MANY, SOME, PAIRED = 0.5, 0.05, 0.01  # shares of the lines of a text
STRAY = 0.002  # of the lines: (nearly) none
ENOUGH = 10  # lines, for signs that texts may also have by chance
_LONGEST = 10_000  # characters of a line that are looked at
_END = 80  # characters at the ends of a line that are kept


class Mark(NamedTuple):
    """What a tool leaves in texts: a pattern, what it is, and how to undo it.

    instead: what the other text has in its place; not needed where a tool alone writes the mark.
    """

    pattern: re.Pattern[str]
    name: str
    cure: str
    instead: re.Pattern[str] | None = None


MARKS = (
    Mark(
        re.compile(r"\S@@(?= |$)"),
        "words that end in @@ (subwords of subword-nmt)",
        r"join them with: sed -E 's/@@ ([^|])/\1/g; s/@@( \|\|\||$)/\1/g'",
    ),
    Mark(
        re.compile("[\u2581\u0120]"),
        "words that begin with \u2581 or \u0120 (pieces of SentencePiece or of GPT-2)",
        "join them, and write a space for each \u2581 or \u0120",
    ),
    Mark(
        re.compile(r"(?:^| )(?:##|@@)\w"),
        "words that begin with ## or @@ (subwords of WordPiece or in its manner)",
        "join them to the words before them",
    ),
    Mark(
        re.compile("\uffed"),
        "words with \uffed (joiners of OpenNMT's Tokenizer)",
        "join the words at these marks",
    ),
    Mark(
        re.compile(r"(?:^| )\|\d+-\d+(?:,\S*)?\|(?= |$)"),
        "words such as |0-1| (Moses' -report-segmentation)",
        "run Moses without -report-segmentation, or remove them",
    ),
    Mark(
        re.compile(r"[^\s|]\|[^\s|]"),
        "words with a bar inside (factors of Moses)",
        "keep the first factor of each word",
    ),
    Mark(
        re.compile("\u2985[^\u2985\u2986]*\u2986|__[A-Z]+_?[0-9]+__"),
        "words such as \u2985ent\uff030\u2986 or __TERM_0__ (placeholders)",
        "put back what they stand for",
    ),
    Mark(
        re.compile(r" @-@ "),
        "@-@ (hyphens of the Moses tokenizer)",
        "write - for each, without the spaces beside it",
        re.compile(r"\w-\w"),
    ),
    Mark(
        re.compile(r"(?:^| )(?:``|-[LR]RB-)(?= |$)"),
        "`` or -LRB- (quotation marks and brackets of the Penn Treebank)",
        'write " and brackets for them',
        re.compile(r'["(]'),
    ),
    Mark(
        re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrt\"])"),
        r"escapes such as \n or \u2019 (strings of JSON or Python)",
        "read the file as JSON, and write its texts",
    ),
    Mark(
        re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2(?:\u20ac|\u0080)"),
        "\u00c3\u00a9 or \u00e2\u20ac\u2122 (UTF-8 that was read as Windows-1252)",
        "write the text again, and read it as UTF-8",
    ),
)
SUBWORDS = MARKS[:3]
_TAG = re.compile(
    r"</?([A-Za-z][\w.:-]*)(?: [\w.:-]+=[^<>]*)?/?>"
    r"|<\|[^|\s]+\|>|\[(?:SEP|CLS|EOS|BOS|PAD|MASK|UNK)\]"
)
_LANGUAGE = re.compile(
    r"__[a-z]{2,3}(?:_[A-Za-z]+)?__|[a-z]{3}_[A-Z][a-z]{3}|\[?[a-z]{2}_[A-Z]{2}\]?|<2[A-Za-z_]{2,8}>"
    r"|>>[a-z]{2,3}(?:_[A-Za-z]+)?<<"
)
_ATTACHED = re.compile(r"[^\s.,!?;:\"')\]][.!?]$")  # `word.`
_APART = re.compile(r"(?:^|\s)[.!?]$")  # `word .`
_SCRIPTS = {  # without spaces between words: characters a word that no segmentation reaches
    "Han": (re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"), 3),
    "kana": (re.compile("[\u3041-\u30ff]"), 3),
    "Thai, Lao, Burmese or Khmer": (
        re.compile("[\u0e01-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17d3]"),
        8,
    ),
}


@dataclass(slots=True)
class TextProfile:
    """In how many of the first `MOST_LINES` lines of a text each sign of its preparation stands.

    counts: by sign (kind, value), such as ("word", "the") or ("capitals", ""), and characters and
    words of scripts without spaces; ends: first and last characters of each line; attached: number
    of the first line that ends like `word.`
    """

    lines: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    ends: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    attached: int | None = None
    _frequent: tuple[int, list[tuple[str, str, int]]] = (0, [])  # at how many lines, their signs

    def add(self, lines: Iterable[bytes]) -> None:
        """Count lines that are not blank. O(bytes) time of those that are counted."""
        for number, line in enumerate(islice(lines, MOST_LINES - self.lines), self.lines + 1):
            words = line[:_LONGEST].decode(errors="replace").split()
            if words:
                self.lines += 1
                self.counts.update(set(_signs(words)))
                text = " ".join(words)
                self.ends[0].append(text[:_END])
                self.ends[1].append(text[-_END:])
                others = [word for word in words if not word.isascii()]
                for script, (pattern, _) in _SCRIPTS.items() if others else ():
                    sizes = [n for word in others if (n := len(pattern.findall(word)))]
                    self.counts["characters", script] += sum(sizes)
                    self.counts["words", script] += len(sizes)
                    self.counts["lines", script] += bool(sizes)
                if self.attached is None and _ATTACHED.search(words[-1]):
                    self.attached = number

    def share(self, kind: str, value: str = "") -> float:
        """The share of the lines with a sign."""
        return self.counts[kind, value] / max(1, self.lines)

    def lacks(self, kind: str, value: str = "") -> bool:
        """Whether (nearly) no line has a sign."""
        return self.share(kind, value) <= STRAY

    @property
    def most(self) -> float:
        """A share that a sample of one half exceeds once in a hundred times (Hoeffding)."""
        return MANY + 1.5 / sqrt(max(1, self.lines))

    def of_kind(self, kind: str, least: float) -> list[tuple[str, int]]:
        """Signs of a kind in at least such a share of the lines, and of two; most lines first."""
        lines, frequent = self._frequent
        if lines != self.lines:
            rare = max(2, PAIRED * self.lines)
            frequent = [(*sign, n) for sign, n in self.counts.items() if n >= rare]
            self._frequent = self.lines, frequent
        most = max(2, least * self.lines)
        signs = [(value, n) for name, value, n in frequent if name == kind and n >= most]
        return sorted(signs, key=lambda sign: (-sign[1], sign[0]))

    @property
    def unsegmented(self) -> str | None:
        """The script whose words are not parted by spaces, if most lines are of one."""
        for script in reversed(_SCRIPTS):
            longest = _SCRIPTS[script][1] * self.counts["words", script]
            many = self.counts["lines", script] >= MANY * self.lines
            if many and self.counts["characters", script] > longest:
                return script
        return None

    def ids(self, place: int) -> list[str]:
        """The words at the first place (0) or the last one (1), if they look like ids of lines.

        They have digits and (nearly) no two lines the same; several references of a line have one
        id. Numbers alone are ids from ten lines on.
        """
        words = dict.fromkeys(end.split()[-place] for end in self.ends[place])
        if not all(any(map(str.isdigit, word)) for word in words):
            return []
        enough = self.lines >= ENOUGH or not any(map(str.isdigit, words))
        return [*words] if len(words) > max(1, self.lines // 20) and enough else []

    def affix(self, place: int) -> str:
        """What (nearly) all lines that begin (0) or end (1) as most do have there."""
        lines, affix, least = [x[:: 1 - 2 * place] for x in self.ends[place]], "", self.most
        while lines:
            beginning = itemgetter(slice(len(affix) + 1))
            ((longer, n),) = Counter(map(beginning, lines)).most_common(1)
            if n < least * self.lines or len(longer) == len(affix):
                break
            least = least if affix else (1 - SOME) * n / self.lines
            affix, lines = longer, [x for x in lines if x.startswith(longer)]
        return affix[:: 1 - 2 * place].strip()

    def others(
        self, profiles: Sequence[TextProfile], total: Mapping[tuple[str, str], int]
    ) -> TextProfile:
        """The profile of all texts but this one, of which `total` sums the counts."""
        others = [profile for profile in profiles if profile is not self]
        counts = Counter({sign: n - self.counts.get(sign, 0) for sign, n in total.items()})
        first, last = ([end for profile in others for end in profile.ends[i]] for i in (0, 1))
        return TextProfile(sum(profile.lines for profile in others), counts, (first, last))


def profile_of(lines: Iterable[bytes]) -> TextProfile:
    """The profile of a text."""
    profile = TextProfile()
    profile.add(lines)
    return profile


def _signs(words: list[str]) -> Iterator[tuple[str, str]]:
    """The signs of a line with words."""
    text = " ".join(words)
    yield from zip(repeat("word"), {*words})
    yield from zip(repeat("character"), {*text})
    rest = text
    if "<" in text or "[" in text:
        yield from (("tag", tag) for tag in _tags(text))
        rest = _TAG.sub(" ", text)
    for mark in MARKS:
        if mark.pattern.search(rest):
            yield "mark", mark.name
        if mark.instead and mark.instead.search(rest):
            yield "instead", mark.name
    yield from (("language", word) for word in words if _LANGUAGE.fullmatch(word))
    yield from _cases(words, text)
    if any(len(word) > 2 for word in words):
        yield "long", ""
    if _ATTACHED.search(text):
        yield "attached", ""
    elif _APART.search(text):
        yield "apart", ""


def _tags(text: str) -> Iterator[str]:
    """The tags of a text; those of one name with attributes, or with an end, as `<g …>`."""
    by_name: dict[str, set[str]] = {}
    for match in _TAG.finditer(text):
        by_name.setdefault(match[1] or match[0], set()).add(match[0])
    for name, (tag, *more) in by_name.items():
        yield f"<{name} …>" if more or " " in tag else tag


def _cases(words: list[str], text: str) -> Iterator[tuple[str, str]]:
    """The signs of a line of which letters are large or small."""
    lower, upper = text.lower(), text.upper()
    if lower == upper:
        return
    yield "cased", ""
    if text != lower and any(len(word) > 1 and word != word.lower() for word in words):
        yield "capitals", ""
    if text != upper:
        yield "small", ""
        yield from (("small words", "") for word in words[1:] if word[0].islower())
        if next(filter(str.isalpha, text), "A").islower():
            yield "small first", ""
