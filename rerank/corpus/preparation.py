"""How texts are prepared, and what two texts that should be prepared alike differ in.

Hypotheses and references, a system and the others, a training and a validation text are compared
word by word: they should be tokenised, cut into subwords, cased and marked alike. A profile counts
in how many lines of a text each sign of its preparation stands. What many lines of one text have
and no line of the other one is named, with its likely cause and a cure. Escapes and normal forms,
of which a single one counts, are found by `rerank.corpus.spelling`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from shlex import quote
from typing import NamedTuple
from unicodedata import normalize

from rerank.corpus.spelling import Spelling, note_spelling
from rerank.notices import Notices

MOST_LINES = 2000  # lines of a text that are counted
_LONGEST = 10_000  # characters of a line that are looked at
_NEARLY, _MANY, _SOME, _PAIRED, _STRAY = (
    0.8,
    0.5,
    0.05,
    0.01,
    0.002,
)  # shares of the lines of a text
_ENOUGH = 10  # lines, for signs that texts may also have by chance
_NAMED = 3  # signs in one message


class Mark(NamedTuple):
    """What a tool leaves in texts: a pattern, what it is, and a filter of lines that undoes it."""

    pattern: re.Pattern[str]
    name: str
    filter: str


_MARKS = (
    Mark(
        re.compile(r"\S@@(?= |$)"),
        "words that end in @@ (subwords of subword-nmt)",
        r"sed -E 's/@@ ([^|])/\1/g; s/@@( \|\|\||$)/\1/g'",
    ),
    Mark(
        re.compile("\u2581"),
        "words that begin with \u2581 (pieces of SentencePiece)",
        r"""awk -F ' [|][|][|] ' -v OFS=' ||| ' '{t = NF > 1 ? 2 : 1; gsub(/ /, "", $t); """
        """gsub(/\u2581/, " ", $t); sub(/^ /, "", $t)} 1'""",
    ),
    Mark(
        re.compile(r"(?:^| )##\w"),
        "words that begin with ## (subwords of WordPiece)",
        "sed 's/ ##//g'",
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
    Mark(re.compile(r" @-@ "), "@-@ (hyphens of the Moses tokenizer)", "sed 's/ @-@ /-/g'"),
    Mark(
        re.compile(r"(?:^| )(?:``|-[LR]RB-)(?= |$)"),
        "`` or -LRB- (quotation marks and brackets of the Penn Treebank)",
        """sed "s/\\`\\`\\|''/\\"/g; s/-LRB-/(/g; s/-RRB-/)/g\"""",
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
_REPLACEMENT = {"/": r"\/", "&": r"\&", "\\": r"\\"}
_GROUPS = {character: group[0] for group in _ALIKE for character in group}
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
_TOKENS = "spaces before punctuation", "spaces between words"
_WHITE_SPACE = ("none", "13a", "intl")  # tokenizers that need spaces between words


@dataclass(slots=True)
class TextProfile:
    """In how many of the first `MOST_LINES` lines of a text each sign of its preparation stands.

    counts: by sign (kind, value), such as ("word", "the") or ("capitals", ""), and all characters
    of scripts without spaces between words, and the words that have them; ends: the first and
    the last word of each line; attached: number of the first line that ends like `word.`
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
                self.ends[0].append(words[0])
                self.ends[1].append(words[-1])
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
        found = list(dict.fromkeys(self.ends[place]))
        own = [word for word in found if any(map(str.isdigit, word))]
        enough = self.lines >= _ENOUGH or not any(map(str.isdigit, own))
        return found if len(own) == len(found) > max(1, self.lines // 20) and enough else []

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
    yield "first", words[0]
    yield "last", words[-1]
    yield from (("character", character) for character in text)
    rest = text
    if "<" in text or "[" in text:
        yield from (("tag", tag) for tag in _TAG.findall(text))
        rest = _TAG.sub(" ", text)
    yield from (("mark", mark.name) for mark in _MARKS if mark.pattern.search(rest))
    yield from (("language", word) for word in words if _LANGUAGE.fullmatch(word))
    if (lower := text.lower()) != text:
        yield "capitals", ""
    if lower != text.upper():
        yield "cased", ""
    if _ATTACHED.search(text):
        yield "attached", ""
    elif _APART.search(text):
        yield "apart", ""


class Difference(NamedTuple):
    """What `lines` lines of one text have and none of the other one, and what to do about it.

    filter: a shell command that undoes it in the lines of the text, if there is one; marked:
    whether a tool left it in the words, so that other signs tell nothing.
    """

    what: str
    lines: int
    cure: str = ""
    filter: str = ""
    marked: bool = False


def differences(one: TextProfile, other: TextProfile, of_list: bool) -> list[Difference]:
    """What the first text has in many lines and the second one in none, for a known cause.

    of_list: whether the filters are for lines of Moses lists.
    """
    found = list(_marks(one, other))
    for kind in () if found else (_case, _ids, _characters, _tokens):
        found += kind(one, other, of_list)
    return found


def _marks(one: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Marks of tools, control words and codes of languages."""
    seen = {name: n for name, n in one.of_kind("mark", _SOME) if other.lacks("mark", name)}
    for mark in _MARKS:
        if mark.name in seen:
            yield Difference(mark.name, seen[mark.name], filter=mark.filter, marked=True)
            break  # a segmentation has bars, too
    for kind, cause in (("language", "a language code"), ("tag", "a control word")):
        for value, n in one.of_kind(kind, _MANY)[:_NAMED]:
            if other.lacks(kind, value):
                filter = f"sed {quote(f's/ *{_literal(value)} */ /g')}"
                yield Difference(f"{value} ({cause})", n, filter=filter, marked=True)


def _literal(text: str) -> str:
    """A basic regular expression of sed for this text."""
    return re.sub(r"([][\\/.*^$])", r"\\\1", text)


def _case(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """Capitals, unless they are those of one word."""
    words = [
        n
        for word, n in one.of_kind("word", _MANY)
        if word != (lower := word.lower()) and other.lacks("word", lower)
    ]
    capitals = one.counts["capitals", ""] - max(words, default=0)
    if (
        one.share("capitals") >= _MANY
        and capitals > _SOME * one.lines
        and other.lacks("capitals")
        and other.share("cased") >= _MANY
    ):
        script = r"s/\|\|\| [^|]*/\L&/" if of_list else r"s/.*/\L&/"
        cure = "restore them in the other text, or compare in lower case"
        yield Difference("capitals", one.counts["capitals", ""], cure, f"sed -E '{script}'")


def _tokens(one: TextProfile, other: TextProfile, _of_list: bool) -> Iterator[Difference]:
    """White space before the mark at the end of a sentence, and between words."""
    if one.share("apart") >= _MANY and other.share("attached") >= _MANY:
        yield Difference(_TOKENS[0], one.counts["apart", ""], "tokenise both alike")
    if other.unsegmented and one.counts["words", other.unsegmented] and not one.unsegmented:
        yield Difference(_TOKENS[1], one.lines, "segment both alike")


def _ids(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """Another word with a digit at the same place of every line of one text alone."""
    for place, end in enumerate(("begins", "ends")):
        if one.lines > 2 and (own := one.ids(place)) and not other.ids(place):
            what = f"an id in every line, which {end} with another word such as {own[0]}"
            yield Difference(what, one.lines, filter=_without(_WORD, place, of_list))


def _without(pattern: str, place: int, of_list: bool) -> str:
    """A filter that removes a word at the first (0) or last place (1) of lines."""
    if of_list:
        script = rf"s/(\|\|\| ){pattern} +/\1/" if not place else rf"s/ +{pattern}( \|\|\|)/\1/"
    else:
        script = rf"s/^{pattern}[[:space:]]+//" if not place else rf"s/[[:space:]]+{pattern}$//"
    return f"sed -E {quote(script)}"


def _characters(one: TextProfile, other: TextProfile, _of_list: bool) -> Iterator[Difference]:
    """Characters beyond ASCII for which the other text has others of the same meaning."""
    theirs: dict[str, str] = {}
    for character, _ in other.of_kind("character", _PAIRED):
        if one.lacks("character", character):
            theirs.setdefault(_group(character), character)
    pairs = [
        (character, instead, n)
        for character, n in one.of_kind("character", _PAIRED)
        if not character.isascii() and other.lacks("character", character)
        if (instead := theirs.get(_group(character), "|")) != "|"
        if instead.isascii() or character > instead  # else named from the other side
    ]
    if pairs:
        own = " ".join(a for a, _, _ in pairs[:_NAMED])
        instead = " ".join(dict.fromkeys(b for _, b, _ in pairs[:_NAMED]))
        script = "; ".join(f"s/{a}/{_REPLACEMENT.get(b, b)}/g" for a, b, _ in pairs)
        most = max(n for *_, n in pairs)
        yield Difference(f"{own} in place of {instead}", most, filter=f"sed {quote(script)}")


def _group(character: str) -> str:
    """What characters of the same meaning share: that of `_ALIKE`, or the compatibility form."""
    plain = normalize("NFKC", character)
    return _GROUPS.get(character) or _GROUPS.get(plain, plain)


def _unexplained(one: TextProfile, other: TextProfile, of_list: bool) -> Iterator[Difference]:
    """Words at the same place, words and characters in most lines of one text alone."""
    places = {"first": " at the beginning", "last": " at the end", "word": "", "character": ""}
    found = [
        (n, -at, value, place)
        for at, (kind, place) in enumerate(places.items())
        for value, n in one.of_kind(kind, _MANY)[:_NAMED]
        if other.lacks("word" if place else kind, value)
    ]
    if any(place and _glued(value, other) for _, _, value, place in found):
        found = [sign for sign in found if len(sign[2]) == 1 and not sign[2].isalnum()] or found
    if found:
        n, at, value, place = max(found)
        pattern = re.sub(r"([][\\/.*^$+?(){}|])", r"\\\1", value)
        always = place and n >= _NEARLY * one.lines
        filter = _without(pattern, -at, of_list) if always else ""
        mark = not place and len(value) == 1 and not value.isalnum()
        if mark and not of_list:
            filter = f"tr -d {quote(value)}" if value.isascii() else f"sed 's/{value}//g'"
        yield Difference(f"{value!r}{place}", n, "prepare both alike", filter, marked=mark)


def _glued(word: str, other: TextProfile) -> bool:
    """Whether a word is one of the other text with characters that this text never has."""
    core = "".join(one for one in word if not other.lacks("character", one))
    return core != word and not other.lacks("word", core)


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
    found = [differences(first, second, of_list) for _, first, _, second, of_list in pairs]
    if not (any(found) or explained or min(own.lines, other.lines) < _ENOUGH):
        found = [list(_unexplained(first, second, flag)) for _, first, _, second, flag in pairs]
        if any(one.marked for those in found for one in those):
            found = [[one for one in those if one.marked] for those in found]
    to_moses = f"rerank convert --kbest {quote(source)} --to moses --out - | "
    before = to_moses if form not in ("", "moses") or source.endswith(_PACKED) else ""
    found[1] = [one for one in found[1] if one.lines >= least * other.lines]
    for (ours, _, theirs, _, of_list), those in zip(pairs, found, strict=True):
        for one in those:
            if tokenize is None or one.what not in _TOKENS:
                command = f"filter the {ours} with: {before if of_list else ''}{one.filter}"
                cures = [one.cure, command if one.filter else ""]
                kind = (
                    f"{ours} have {one.what}, {theirs} do not; {', or '.join(filter(None, cures))}"
                )
                notices.add(kind, source=source, count=one.lines)
    for place, end in enumerate(("begins", "ends")):
        if both := _shared_ids(own, other, place):
            order = (
                "" if both[0] == both[1][: len(both[0])] else ", in another order; sort both files"
            )
            filters = {_without(_WORD, place, of_list) for of_list in (lists, False)}
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
    unsegmented = [(script, i) for script, i in scripts if script]
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
) -> None:
    """Add a notice where hypotheses and references are spelled or prepared otherwise.

    numbers: line numbers of the hypotheses of k-best lists in their file `source` [default: 1, 2,
    …, of a plain text]; form: format of the lists; tokenize: tokenizer of BLEU.
    """
    own, others = Spelling(), Spelling()
    own.add(hypotheses, range(1, len(hypotheses) + 1) if numbers is None else numbers)
    others.add(references)
    found = note_spelling(own, others, notices, source=source, of_lists=bool(form))
    texts = {"hypotheses": profile_of(hypotheses), "references": profile_of(references)}
    note_preparation(texts, notices, source=source, tokenize=tokenize, form=form, explained=found)
