"""How texts are prepared, and what two texts that should be prepared alike differ in.

Hypotheses and references, a system and the others, a training and a validation text are compared
word by word: they should be tokenised, cut into subwords, cased and marked alike. A profile counts
in how many lines of a text each sign of its preparation stands. What many lines of one text have
and no line of the other one is named, with its likely cause and a cure. Escapes and normal forms,
of which a single one counts, are found by `rerank.corpus.spelling`, lines that are not where they
should be by `rerank.corpus.alignment`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import sqrt
from shlex import quote
from typing import NamedTuple
from unicodedata import decimal, name, normalize

from rerank.corpus.alignment import note_alignment
from rerank.corpus.spelling import Spelling, note_spelling
from rerank.notices import Notices

MOST_LINES = 2000  # lines of a text that are counted
_LONGEST = 10_000  # characters of a line that are looked at
_MANY, _SOME, _PAIRED, _STRAY = 0.5, 0.05, 0.01, 0.002  # shares of the lines of a text
_ENOUGH = 10  # lines, for signs that texts may also have by chance
_END = 80  # characters at the ends of a line that are kept
_NAMED = 3  # signs in one message


class Mark(NamedTuple):
    """What a tool leaves in texts: a pattern, what it is, and a filter of lines that undoes it.

    instead: what the other text has in its place; not needed where a tool alone writes the mark.
    """

    pattern: re.Pattern[str]
    name: str
    filter: str
    instead: re.Pattern[str] | None = None


_MARKS = (
    Mark(
        re.compile(r"\S@@(?= |$)"),
        "words that end in @@ (subwords of subword-nmt)",
        r"sed -E 's/@@ ([^|])/\1/g; s/@@( \|\|\||$)/\1/g'",
    ),
    Mark(
        re.compile("[\u2581\u0120]"),
        "words that begin with \u2581 or \u0120 (pieces of SentencePiece or of GPT-2)",
        r"""awk -F ' [|][|][|] ' -v OFS=' ||| ' '{t = NF > 1 ? 2 : 1; gsub(/ /, "", $t); """
        """gsub(/\u2581|\u0120/, " ", $t); sub(/^ /, "", $t)} 1'""",
    ),
    Mark(
        re.compile(r"(?:^| )(?:##|@@)\w"),
        "words that begin with ## or @@ (subwords of WordPiece or in its manner)",
        "sed -E 's/ (##|@@)//g'",
    ),
    Mark(
        re.compile("\uffed"),
        "words with \uffed (joiners of OpenNMT's Tokenizer)",
        "sed 's/ \uffed//g; s/\uffed *//g'",
    ),
    Mark(
        re.compile(r"(?:^| )\|\d+-\d+(?:,\S*)?\|(?= |$)"),
        "words such as |0-1| (Moses' -report-segmentation)",
        r"sed -E 's/ \|[0-9]+-[0-9]+(,[^ ]*)?\|//g'",
    ),
    Mark(
        re.compile(r"[^\s|]\|[^\s|]"),
        "words with a bar inside (factors of Moses)",
        r"sed -E 's/([^ |])(\|[^ |]+)+/\1/g'",
    ),
    Mark(
        re.compile(r" @-@ "),
        "@-@ (hyphens of the Moses tokenizer)",
        "sed 's/ @-@ /-/g'",
        re.compile(r"\w-\w"),
    ),
    Mark(
        re.compile(r"(?:^| )(?:``|-[LR]RB-)(?= |$)"),
        "`` or -LRB- (quotation marks and brackets of the Penn Treebank)",
        """sed "s/\\`\\`\\|''/\\"/g; s/-LRB-/(/g; s/-RRB-/)/g\"""",
        re.compile(r'["(]'),
    ),
    Mark(
        re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrt\"])"),
        r"escapes such as \n or \u2019 (strings of JSON or Python)",
        r"""perl -CSD -pe 's/\\u([0-9a-fA-F]{4})/chr hex $1/ge; s/\\[nrt]/ /g; s/\\(["\\])/$1/g; """
        r"""s/ +$//'""",
    ),
    Mark(
        re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2(?:\u20ac|\u0080)"),
        "\u00c3\u00a9 or \u00e2\u20ac\u2122 (UTF-8 that was read as Windows-1252)",
        """python3 -c 'import sys; sys.stdout.buffer.writelines(c.encode("cp1252", "ignore") or """
        """c.encode("latin-1") for s in open(0, encoding="utf-8", newline="\\n") for c in s)'""",
    ),
)
_TAG = re.compile(r"</?[A-Za-z][\w.:-]*/?>|<\|[^|\s]+\|>|\[(?:SEP|CLS|EOS|BOS|PAD|MASK|UNK)\]")
_LANGUAGE = re.compile(
    r"__[a-z]{2,3}(?:_[A-Za-z]+)?__|[a-z]{3}_[A-Z][a-z]{3}|\[?[a-z]{2}_[A-Z]{2}\]?|<2[A-Za-z_]{2,8}>"
    r"|>>[a-z]{2,3}(?:_[A-Za-z]+)?<<"
)
_ATTACHED = re.compile(r"[^\s.,!?;:\"')\]][.!?]$")  # `word.`
_APART = re.compile(r"(?:^|\s)[.!?]$")  # `word .`
_ALIKE = ("\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d", "'\u2018\u2019\u201a`\u00b4",
          "-\u2010\u2011\u2012\u2013\u2014", ".\u3002", ",\u3001")  # fmt: skip
_GROUPS = {character: group[0] for group in _ALIKE for character in group} | {"\u00df": "ss"}
_SCRIPTS = {  # without spaces between words: characters a word that no segmentation reaches
    "Han": (re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"), 3),
    "kana": (re.compile("[\u3041-\u30ff]"), 3),
    "Thai, Lao, Burmese or Khmer": (
        re.compile("[\u0e01-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17d3]"),
        8,
    ),
}
_TOKENIZERS = {"Han": "zh", "kana": "ja-mecab, or char", "Thai, Lao, Burmese or Khmer": "char"}
_PACKED = (".gz", ".xz", ".bz2", ".zst")
_WORD = "[^[:space:]]+"
_CASES = {"capitals": ("capitals", "L"), "small": ("small letters", "U"), "small words": (
    "words that begin with small letters", "")}  # fmt: skip
_BEFORE_MARKS, _BETWEEN = "spaces before punctuation", "spaces between words"
_WHITE_SPACE = ("none", "13a", "intl")  # tokenizers that need spaces between words


@dataclass(slots=True)
class TextProfile:
    """In how many of the first `MOST_LINES` lines of a text each sign of its preparation stands.

    counts: by sign (kind, value), such as ("word", "the") or ("capitals", ""), and all characters
    of scripts without spaces between words, and the words that have them; ends: the first and
    the last characters of each line; attached: number of the first line that ends like `word.`
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
                self._count_scripts(words)
                if self.attached is None and _ATTACHED.search(words[-1]):
                    self.attached = number

    def _count_scripts(self, words: Iterable[str]) -> None:
        """Count characters of scripts without spaces, and their words."""
        for word in words:
            if not word.isascii():
                for script, (pattern, _) in _SCRIPTS.items():
                    if n := len(pattern.findall(word)):
                        self.counts["characters", script] += n
                        self.counts["words", script] += 1

    def share(self, kind: str, value: str = "") -> float:
        """The share of the lines with a sign."""
        return self.counts[kind, value] / max(1, self.lines)

    def lacks(self, kind: str, value: str = "") -> bool:
        """Whether (nearly) no line has a sign."""
        return self.share(kind, value) <= _STRAY

    @property
    def most(self) -> float:
        """A share of the lines that is more than half of them, beyond chance.

        That of a sample whose true share is one half is larger once in a hundred times (Hoeffding).
        """
        return _MANY + 1.5 / sqrt(max(1, self.lines))

    def of_kind(self, kind: str, least: float) -> list[tuple[str, int]]:
        """Signs of a kind in at least such a share of the lines, and of two; most lines first."""
        lines, frequent = self._frequent
        if lines != self.lines:
            rare = max(2, _PAIRED * self.lines)
            frequent = [(*sign, n) for sign, n in self.counts.items() if n >= rare]
            self._frequent = self.lines, frequent
        most = max(2, least * self.lines)
        found = [(value, n) for own, value, n in frequent if own == kind and n >= most]
        return sorted(found, key=lambda sign: (-sign[1], sign[0]))

    @property
    def unsegmented(self) -> str | None:
        """The script whose words are not parted by spaces, if most lines are of one."""
        for script in reversed(_SCRIPTS):
            words = self.counts["words", script]
            longest = _SCRIPTS[script][1] * words
            if words >= _MANY * self.lines and self.counts["characters", script] > longest:
                return script
        return None

    def ids(self, place: int) -> list[str]:
        """The words at the first place (0) or the last one (1), if they look like ids of lines.

        Every line has one with a digit, and (nearly) no two lines the same; several references of
        a line have one. Numbers alone are ids from ten lines on.
        """
        found = list(dict.fromkeys(end.split()[-place] for end in self.ends[place]))
        own = [word for word in found if any(map(str.isdigit, word))]
        enough = self.lines >= _ENOUGH or not any(map(str.isdigit, own))
        return found if len(own) == len(found) > max(1, self.lines // 20) and enough else []

    def affix(self, place: int) -> str:
        """What (nearly) all lines that begin (0) or end (1) as most do have there."""
        lines, found, least = [x[:: 1 - 2 * place] for x in self.ends[place]], "", self.most
        while lines:
            ((longer, n),) = Counter(x[: len(found) + 1] for x in lines).most_common(1)
            if n < least * self.lines or len(longer) == len(found):
                break
            least = least if found else (1 - _SOME) * n / self.lines
            found, lines = longer, [x for x in lines if x.startswith(longer)]
        return found[:: 1 - 2 * place].strip()

    def others(
        self, profiles: Sequence[TextProfile], total: Mapping[tuple[str, str], int]
    ) -> TextProfile:
        """The profile of all texts but this one, of which `total` sums the counts."""
        rest = [one for one in profiles if one is not self]
        counts = Counter({sign: n - self.counts.get(sign, 0) for sign, n in total.items()})
        found = TextProfile(sum(one.lines for one in rest), counts)
        first, last = ([word for one in rest for word in one.ends[i]] for i in (0, 1))
        found.ends = first, last
        return found


def profile_of(lines: Iterable[bytes]) -> TextProfile:
    """The profile of a text."""
    found = TextProfile()
    found.add(lines)
    return found


def _signs(words: list[str]) -> Iterator[tuple[str, str]]:
    """The signs of a line with words."""
    text = " ".join(words)
    yield from (("word", word) for word in words)
    yield from (("character", character) for character in text)
    rest = text
    if "<" in text or "[" in text:
        yield from (("tag", tag) for tag in _TAG.findall(text))
        rest = _TAG.sub(" ", text)
    for mark in _MARKS:
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


class Difference(NamedTuple):
    """What `lines` lines of one text have and none of the other one, and what to do about it.

    cure: in which {other} is what messages call the other text; filter: a shell command that undoes
    it in the lines of the text, if there is one; marked: whether a tool left it in the words, so
    that other signs tell nothing.
    """

    what: str
    lines: int
    cure: str = ""
    filter: str = ""
    marked: bool = False


def _marks(one: TextProfile, other: TextProfile, _of_list: bool) -> Iterator[Difference]:
    """Marks of tools, control words, codes of languages, texts in characters or without spaces."""
    seen = {value: n for value, n in one.of_kind("mark", _SOME) if other.lacks("mark", value)}
    for mark in _MARKS:
        if mark.name in seen and not (mark.instead and other.lacks("instead", mark.name)):
            yield Difference(mark.name, seen[mark.name], filter=mark.filter, marked=True)
            break  # a segmentation has bars, too
    for kind, cause in (("language", "a language code"), ("tag", "a control word")):
        for value, n in one.of_kind(kind, _SOME)[:_NAMED]:
            unknown = "unk" in value.lower()
            few = n < _MANY * one.lines and (kind == "language" or unknown)
            if other.lacks(kind, value) and not few:
                filter = f"sed -E {quote(f's/ *{_literal(value)} */ /g')}"
                what = f"{value} ({'unknown words' if unknown else cause})"
                yield Difference(what, n, filter=filter, marked=True)
    if other.lines >= _ENOUGH and not other.unsegmented:
        if one.share("long") >= one.most and other.lacks("long"):
            cure = "join the characters of the {other} to words, or give --tokenize char"
            yield Difference("words of several characters", one.lines, cure, marked=True)
        elif one.share("character", " ") >= one.most and other.lacks("character", " "):
            cure = "part the words of the {other}, or give --tokenize char"
            yield Difference("blanks between words", one.lines, cure, marked=True)


def _language(one: TextProfile, other: TextProfile, _of_list: bool) -> Iterator[Difference]:
    """Many of the most frequent words of both texts, which the other one never has in any case."""
    found = [_unknown_words(*pair) for pair in ((one, other), (other, one))]
    if min(map(len, found)) >= _ENOUGH and min(one.lines, other.lines) >= _ENOUGH * _ENOUGH:
        words = ", ".join(word for word, _ in found[0][:_NAMED])
        cure = "are both in the same language?"
        yield Difference(f"words such as {words}", found[0][0][1], cure, marked=True)


def _unknown_words(one: TextProfile, other: TextProfile) -> list[tuple[str, int]]:
    """Words in many lines of a text that the other one never has, in any case."""
    return [
        (word, n)
        for word, n in one.of_kind("word", _SOME)
        if word.isalpha()
        and all(other.lacks("word", x) for x in (word, word.lower(), word.title(), word.upper()))
    ]


def _literal(text: str) -> str:
    """An extended regular expression of sed for this text; bytes of what is not printable."""
    found = re.sub(r"([][\\/.*^$+?(){}|&])", r"\\\1", text)
    return "".join(
        c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in c.encode()) for c in found
    )


def _case(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """Letters of a case which the other text has nowhere, or not at the beginning of its lines."""
    if min(one.share("cased"), other.share("cased")) < _MANY:
        return
    words = one.of_kind("word", _MANY)
    alone = max(
        (n for w, n in words if w != w.lower() and other.lacks("word", w.lower())), default=0
    )
    for kind, (what, letters) in _CASES.items():
        own = one.counts[kind, ""] - alone * (kind == "capitals")  # but for those of one word
        comparable = kind != "small words" or not other.lacks("character", " ")
        comparable &= kind == "capitals" or not one.lacks("capitals")  # else named there
        if (
            one.share(kind) >= _MANY
            and own > _SOME * one.lines
            and other.lacks(kind)
            and comparable
        ):
            script = rf"s/\|\|\| [^|]*/\{letters}&/" if of_list else rf"s/.*/\{letters}&/"
            cure = "restore them in the {other}, or compare in lower case"
            filter = f"sed -E '{script}'" if letters else ""
            yield Difference(what, one.counts[kind, ""], cure, filter)
            return
    if (
        one.share("small first") - other.share("small first") >= _MANY
        and min(one.lines, other.lines) >= _ENOUGH
        and not ((one.affix(0) and not other.affix(0)) or one.lacks("capitals"))
    ):
        script = r"s/\|\|\| [^|[:alpha:]]*./\U&/" if of_list else r"s/^[^[:alpha:]]*./\U&/"
        what = "small letters at the beginning of lines"
        yield Difference(what, one.counts["small first", ""], filter=f"sed -E '{script}'")


def _tokens(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """White space before the mark at the end of a sentence, between words, and within them."""
    if one.share("apart") >= _MANY and other.share("attached") >= _MANY:
        cure = "filter the {other} with: python3 -m sacremoses -l en tokenize -x"
        filter = "" if of_list else "python3 -m sacremoses -l en detokenize"
        yield Difference(_BEFORE_MARKS, one.counts["apart", ""], cure, filter)
    if other.unsegmented and one.counts["words", other.unsegmented] and not one.unsegmented:
        yield Difference(_BETWEEN, one.lines, "segment both alike")


def _ends(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """Ids, or the same characters, at the beginning or the end of the lines of one text alone."""
    for place, (verb, end) in enumerate((("begins", "beginning"), ("ends", "end"))):
        own, theirs = one.ids(place), other.ids(place)
        if own and not theirs and one.lines > 2:
            what = f"an id in every line, which {verb} with another word such as {own[0]}"
            filter = _without(_WORD, place, of_list, "+")
            yield Difference(what, one.lines, filter=filter)
        elif (value := one.affix(place)) and other.lines >= _ENOUGH and not (own or theirs):
            has, inner, outer = str.startswith, str.removesuffix, str.removeprefix
            if place:
                has, inner, outer = str.endswith, str.removeprefix, str.removesuffix
            also = other.affix(place)
            outermost = {_plain(x[-place]).lower() for x in (value, also) if x}
            value, also = inner(value, also).strip() or value, inner(also, value).strip() or also
            others = [y for x in other.ends[place] for y in (x, outer(x, also).strip())]
            is_alone = sum(has(x, value) for x in others) <= _STRAY * other.lines
            if is_alone and len(outermost) == 1 + bool(also):
                n = sum(has(x, value) for x in one.ends[place])
                filter = _without(_literal(value), place, of_list)
                yield Difference(f"{value!r} at the {end}", n, "prepare both alike", filter)


def _without(pattern: str, place: int, of_list: bool, times: str = "*") -> str:
    """A filter that removes something at the beginning (0) or the end (1) of texts.

    times: how many blanks are beside it, `*` or `+`.
    """
    if of_list:
        begin, end = rf"s/(\|\|\| ){pattern} {times}/\1/", rf"s/ {times}{pattern}( \|\|\|)/\1/"
    else:
        begin, end = (
            rf"s/^{pattern}[[:space:]]{times}//",
            rf"s/[[:space:]]{times}{pattern}$//",
        )
    return f"sed -E {quote(end if place else begin)}"


def _characters(one: TextProfile, other: TextProfile, _of_list: bool) -> Iterator[Difference]:
    """Characters beyond ASCII for which the other text has others of the same meaning."""
    theirs: dict[str, str] = {}
    for character, _ in other.of_kind("character", _PAIRED):
        theirs.setdefault(_plain(character), character)
    pairs, replaced = [], dict[str, str]()
    for character, n in one.of_kind("character", _PAIRED):
        if not character.isascii() and other.lacks("character", character):
            plain = _plain(character)  # of ligatures several characters, which are no key
            instead = theirs.get(plain, plain if len(plain) > 1 and plain.isascii() else "")
            named_there = not instead.isascii() and character < instead
            if instead and one.counts["character", instead] < n and not named_there:
                pairs.append((character, instead, n))
                if instead.isdigit():
                    replaced |= {chr(ord(character) - int(instead) + n): f"{n}" for n in range(10)}
                replaced[character] = instead
    if pairs:
        own = " ".join(a for a, _, _ in pairs[:_NAMED])
        instead = " ".join(dict.fromkeys(b for _, b, _ in pairs[:_NAMED]))
        script = "; ".join(f"s/{a}/{_literal(b)}/g" for a, b in replaced.items())
        most = max(n for *_, n in pairs)
        yield Difference(f"{own} in place of {instead}", most, filter=f"sed -E {quote(script)}")


def _plain(character: str) -> str:
    """What characters of the same meaning share: that of `_ALIKE`, a digit, or the NFKC form."""
    plain = str(decimal(character, "")) or normalize("NFKC", character)
    return _GROUPS.get(character) or _GROUPS.get(plain, plain)


def _unexplained(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """A mark, a word or a character in most lines of one text alone."""
    signs = [
        (value, n)
        for kind in ("word", "character")
        for value, n in one.of_kind(kind, one.most)
        if other.lacks(kind, value)
    ]
    marks = [(v, n) for v, n in signs if len(v) == 1 and not (v.isalnum() or v.isspace())]
    if signs and min(one.lines, other.lines) >= _ENOUGH:
        value, n = (marks or signs)[0]
        known = "" if value.isascii() or len(value) > 1 else f" ({name(value, '?').lower()})"
        filter = f"sed -E 's/{_literal(value)}//g'" if marks else ""
        if of_list and value.isprintable():  # which its other columns may have, too
            filter = ""
        yield Difference(f"{value!r}{known}", n, "prepare both alike", filter, bool(marks))


_STAGES = (
    (_marks,),
    (_language,),
    (_ends, _case, _characters, _tokens),
    (_unexplained,),
)  # the first that finds


def note_preparation(
    texts: Mapping[str, TextProfile],
    notices: Notices,
    *,
    source: str = "",
    tokenize: str | None = None,
    form: str = "",
    explained: bool = False,
    least: float = 0.0,
) -> None:
    """Add a notice for everything that one of two texts has in many lines and the other never.

    texts: what messages call the two texts, such as hypotheses and references; tokenize: tokenizer
    of the BLEU in which they are compared, if they are; form: format of the k-best lists whose
    candidates the first text has, if it has; explained: whether a difference is already known;
    least: share of the lines of the second text that have what is named as its own. Words and
    characters of most lines are named where nothing else is.
    """
    (name, own), (other_name, other) = texts.items()
    lists = bool(form)
    pairs = ((name, own, other_name, other, lists), (other_name, other, name, own, False))
    if min(own.lines, other.lines) < 2:
        return
    for kinds in _STAGES[: len(_STAGES) - explained]:
        found = [
            [d for kind in kinds for d in kind(first, second, of_list)]
            for _, first, _, second, of_list in pairs
        ]
        if any(found):
            break
    if any(one.marked for those in found for one in those):
        found = [[one for one in those if one.marked] for those in found]
    to_moses = f"rerank convert --kbest {quote(source)} --to moses --out - | "
    before = to_moses if form not in ("", "moses") or source.endswith(_PACKED) else ""
    found[1] = [one for one in found[1] if one.lines >= least * other.lines]
    for (ours, _, theirs, _, of_list), those in zip(pairs, found, strict=True):
        for one in those:
            is_told = one.what == _BETWEEN or (one.what == _BEFORE_MARKS and tokenize == "none")
            if tokenize is None or not is_told:  # of BLEU below
                command = f"filter the {ours} with: {before if of_list else ''}{one.filter}"
                cures = [one.cure.replace("{other}", theirs), command if one.filter else ""]
                kind = (
                    f"{ours} have {one.what}, {theirs} do not; {', or '.join(filter(None, cures))}"
                )
                notices.add(kind, source=source, count=one.lines)
    for place, end in enumerate(("begins", "ends")):
        if both := _shared_ids(own, other, place):
            order = (
                "" if both[0] == both[1][: len(both[0])] else ", in another order; sort both files"
            )
            filters = {_without(_WORD, place, of_list, "+") for of_list in (lists, False)}
            kind = (
                f"every line of {name} and of {other_name} {end} with an id such as {both[0][0]}"
                f"{order}; remove it: {' and '.join(sorted(filters))}"
            )
            notices.add(kind, source=source, count=own.lines)
    if tokenize is not None and not any(one.marked for those in found for one in those):
        _note_words(texts, notices, source, tokenize)


def _shared_ids(
    one: TextProfile, other: TextProfile, place: int
) -> tuple[list[str], list[str]] | None:
    """Ids at the same place of the lines of both texts, the shorter first."""
    short, long = sorted((one.ids(place), other.ids(place)), key=len)
    return (short, long) if short and set(short) <= set(long) else None


def _note_words(
    texts: Mapping[str, TextProfile], notices: Notices, source: str, tokenize: str
) -> None:
    """Add a notice of a text without white space between what BLEU should count as words.

    Most lines of one text end like `word.`, or those of one do and those of the other one do not;
    or words of a script without spaces have more characters than any segmentation leaves.
    """
    names, profiles = tuple(texts), tuple(texts.values())
    scripts = [(profile.unsegmented, i) for i, profile in enumerate(profiles)]
    unsegmented = [
        (script, i)
        for script, i in scripts
        if script and profiles[1 - i].counts["words", script] >= _MANY * profiles[1 - i].lines
    ]
    if unsegmented and (tokenize in _WHITE_SPACE or tokenize.startswith("moses-")):
        script, i = unsegmented[0]
        kind = (
            f"{names[i]} in {script} without spaces between words, of which BLEU with "
            f"tok:{tokenize} makes one word; give --tokenize {_TOKENIZERS[script]}"
        )
        notices.add(kind, source=source, count=profiles[i].lines)
    elif tokenize == "none":
        for i in range(2):
            own, other = profiles[i], profiles[1 - i]
            attached, apart = own.counts["attached", ""], own.counts["apart", ""]
            many = attached >= _ENOUGH and attached > apart
            if many and not i:
                notices.add(
                    "line that looks detokenised, while BLEU counts words between white space; "
                    "give --tokenize 13a",
                    source=source,
                    line=own.attached,
                    count=attached,
                )
                return
            if own.share("attached") >= _MANY and other.share("apart") >= _MANY:
                notices.add(
                    f"{names[i]} look detokenised, {names[1 - i]} tokenised, while BLEU counts "
                    "words between white space; give --tokenize 13a",
                    source=source,
                    count=attached,
                )
                return


def note_differences(
    hypotheses: Sequence[bytes],
    references: Sequence[bytes],
    notices: Notices,
    *,
    source: str = "",
    numbers: Sequence[int | None] | None = None,
    form: str = "",
    tokenize: str | None,
    spelling: Spelling | None = None,
) -> None:
    """Add a notice where hypotheses and references are spelled or prepared otherwise.

    references: all of the first sentence, all of the second one, …; numbers: line numbers of the
    hypotheses of k-best lists in their file `source` [default: 1, 2, …, of a plain text]; form:
    format of the lists; tokenize: tokenizer of BLEU; spelling: that of all candidates, if these are
    not all [default: of the hypotheses].
    """
    own, others = spelling or Spelling(), Spelling()
    if spelling is None:
        own.add(hypotheses, range(1, len(hypotheses) + 1) if numbers is None else numbers)
    others.add(references)
    found = note_spelling(own, others, notices, source=source, of_lists=bool(form))
    first_references = references[:: max(1, len(references) // max(1, len(hypotheses)))]
    lines = {"hypotheses": hypotheses, "references": first_references}
    note_alignment(lines, notices, source=source, of_list=bool(form))
    texts = {"hypotheses": profile_of(hypotheses), "references": profile_of(references)}
    note_preparation(texts, notices, source=source, tokenize=tokenize, form=form, explained=found)
