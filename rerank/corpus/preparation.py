"""What two texts that should be prepared alike differ in, its likely cause, and a cure.

Hypotheses and references, a system and the others, a training and a validation text are compared
by their profiles (`rerank.corpus.text_profile`): they should be tokenised, cut into subwords, cased
and marked alike. What many lines of one text have and no line of the other one is named. Escapes
and normal forms, of which a single one counts, are found by `rerank.corpus.spelling`, lines that
are not where they should be by `rerank.corpus.alignment`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from unicodedata import decimal, name, normalize

from rerank.corpus.alignment import note_alignment
from rerank.corpus.spelling import Spelling, note_spelling
from rerank.corpus.text_profile import (
    ENOUGH,
    MANY,
    MARKS,
    PAIRED,
    SOME,
    STRAY,
    TextProfile,
    profile_of,
)
from rerank.notices import Notices

_NAMED = 3  # signs in one message
_ALIKE = ("\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d", "'\u2018\u2019\u201a`\u00b4",
          "-\u2010\u2011\u2012\u2013\u2014", ".\u3002", ",\u3001")  # fmt: skip
_GROUPS = {character: group[0] for group in _ALIKE for character in group} | {"\u00df": "ss"}
_TOKENIZERS = {"Han": "zh", "kana": "ja-mecab, or char", "Thai, Lao, Burmese or Khmer": "char"}
_CASES = {"capitals": "capitals", "small": "small letters",
          "small words": "words that begin with small letters"}  # fmt: skip
_BEFORE_MARKS, _BETWEEN = "spaces before punctuation", "spaces between words"
_WHITE_SPACE = ("none", "13a", "intl")  # tokenizers that need spaces between words


class Difference(NamedTuple):
    """What `lines` lines of one text have and none of the other one, and what to do about it.

    kind: its name in `rerank.diagnostics`; cure: in which {text} and {other} are what messages call
    the two texts; marked: whether a tool left it in the words, so that other signs tell nothing.
    """

    kind: str
    what: str
    lines: int
    cure: str
    marked: bool = False


def _marks(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Marks of tools, control words, codes of languages, texts in characters or without spaces."""
    seen = {mark: n for mark, n in profile.of_kind("mark", SOME) if other.lacks("mark", mark)}
    for mark in MARKS:
        if mark.name in seen and not (mark.instead and other.lacks("instead", mark.name)):
            yield Difference("mark-of-a-tool", mark.name, seen[mark.name], mark.cure, True)
            break  # a segmentation has bars, too
    for kind, cause in (("language", "a language code"), ("tag", "a control word")):
        for value, n in profile.of_kind(kind, SOME)[:_NAMED]:
            unknown = "unk" in value.lower()
            few = n < MANY * profile.lines and (kind == "language" or unknown)
            if other.lacks(kind, value) and not few:
                tags = value.endswith(" …>")
                what = f"{value} ({'unknown words' if unknown else 'tags' if tags else cause})"
                yield Difference("control-word", what, n, "remove them from the {text}", True)
    if other.lines >= ENOUGH and not other.unsegmented:
        if profile.share("long") >= profile.most and other.lacks("long"):
            cure = "join the characters of the {other} to words, or give --tokenize char"
            what = "words of several characters"
            yield Difference("characters-as-words", what, profile.lines, cure, marked=True)
        elif profile.share("character", " ") >= profile.most and other.lacks("character", " "):
            cure = "part the words of the {other}, or give --tokenize char"
            what = "blanks between words"
            yield Difference("characters-as-words", what, profile.lines, cure, marked=True)


def _language(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Many of the most frequent words of both texts, which the other one never has in any case."""
    unknown = [_unknown_words(*pair) for pair in ((profile, other), (other, profile))]
    if min(map(len, unknown)) >= ENOUGH and min(profile.lines, other.lines) >= ENOUGH * ENOUGH:
        words = ", ".join(word for word, _ in unknown[0][:_NAMED])
        what, cure = f"words such as {words}", "are both in the same language?"
        yield Difference("other-language", what, unknown[0][0][1], cure, marked=True)


def _unknown_words(profile: TextProfile, other: TextProfile) -> list[tuple[str, int]]:
    """Words in many lines of a text that the other one never has, in any case."""
    return [
        (word, n)
        for word, n in profile.of_kind("word", SOME)
        if word.isalpha()
        and all(other.lacks("word", x) for x in (word, word.lower(), word.title(), word.upper()))
    ]


def _case(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Letters of a case which the other text has nowhere, or not at the beginning of its lines."""
    if min(profile.share("cased"), other.share("cased")) < MANY:
        return
    words = profile.of_kind("word", MANY)
    alone = max(
        (n for w, n in words if w != w.lower() and other.lacks("word", w.lower())), default=0
    )
    for kind, what in _CASES.items():
        n_lines = profile.counts[kind, ""]
        if kind == "capitals":
            n_lines -= alone  # lines of one word
        comparable = kind != "small words" or not other.lacks("character", " ")
        comparable &= kind == "capitals" or not profile.lacks("capitals")  # else named there
        if (
            profile.share(kind) >= MANY
            and n_lines > SOME * profile.lines
            and other.lacks(kind)
            and comparable
        ):
            cure = "restore them in the {other}, or compare in lower case"
            yield Difference("other-case", what, profile.counts[kind, ""], cure)
            return
    if (
        profile.share("small first") - other.share("small first") >= MANY
        and min(profile.lines, other.lines) >= ENOUGH
        and not ((profile.affix(0) and not other.affix(0)) or profile.lacks("capitals"))
    ):
        what, cure = "small letters at the beginning of lines", "write capitals in their place"
        yield Difference("other-case", what, profile.counts["small first", ""], cure)


def _tokens(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """White space before the mark at the end of a sentence, between words, and within them."""
    if profile.share("apart") >= MANY and other.share("attached") >= MANY:
        cure = "tokenise the {other} or detokenise the {text}, as sacremoses does"
        yield Difference("other-spaces", _BEFORE_MARKS, profile.counts["apart", ""], cure)
    if other.unsegmented and profile.counts["words", other.unsegmented] and not profile.unsegmented:
        yield Difference("other-spaces", _BETWEEN, profile.lines, "segment both alike")


def _ends(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Ids, or the same characters, at the beginning or the end of the lines of one text alone."""
    for place, (verb, end) in enumerate((("begins", "beginning"), ("ends", "end"))):
        ids, theirs = profile.ids(place), other.ids(place)
        if ids and not theirs and profile.lines > 2:
            what = f"an id in every line, which {verb} with another word such as {ids[0]}"
            yield Difference("text-at-line-ends", what, profile.lines, "remove it")
        elif (value := profile.affix(place)) and other.lines >= ENOUGH and not (ids or theirs):
            has, inner, outer = str.startswith, str.removesuffix, str.removeprefix
            if place:
                has, inner, outer = str.endswith, str.removeprefix, str.removesuffix
            also = other.affix(place)
            outermost = {_plain(x[-place]).lower() for x in (value, also) if x}
            value, also = inner(value, also).strip() or value, inner(also, value).strip() or also
            others = [y for x in other.ends[place] for y in (x, outer(x, also).strip())]
            is_alone = sum(has(x, value) for x in others) <= STRAY * other.lines
            if is_alone and len(outermost) == 1 + bool(also):
                n = sum(has(x, value) for x in profile.ends[place])
                cure = "remove it from the {text}, if it is no translation"
                yield Difference("text-at-line-ends", f"{value!r} at the {end}", n, cure)


def _characters(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """Characters beyond ASCII for which the other text has others of the same meaning."""
    if (_chinese(profile), _chinese(other)) == ("traditional", "simplified"):
        what = "traditional Chinese characters in place of simplified ones"
        yield Difference("other-characters", what, profile.lines, "convert one with OpenCC")
        return
    theirs: dict[str, str] = {}
    for character, _ in other.of_kind("character", PAIRED):
        theirs.setdefault(_plain(character), character)
    pairs = []
    for character, n in profile.of_kind("character", PAIRED):
        if not character.isascii() and other.lacks("character", character):
            plain = _plain(character)  # of ligatures several characters, which are no key
            instead = theirs.get(plain, plain if len(plain) > 1 and plain.isascii() else "")
            named_there = not instead.isascii() and character < instead
            if instead and profile.counts["character", instead] < n and not named_there:
                pairs.append((character, instead, n))
    if pairs:
        characters = " ".join(a for a, _, _ in pairs[:_NAMED])
        instead = " ".join(dict.fromkeys(b for _, b, _ in pairs[:_NAMED]))
        what, most = f"{characters} in place of {instead}", max(n for *_, n in pairs)
        yield Difference("other-characters", what, most, "write the same characters in both")


def _chinese(profile: TextProfile) -> str:
    """Whether a text has simplified or traditional Chinese characters; empty for neither, or both.

    Of one form are those that GB 2312 or Big5 alone has.
    """
    counts = Counter[str]()
    for character, n in profile.of_kind("character", 0.0):
        if "\u4e00" <= character <= "\u9fff":
            gb, big5 = (bool(character.encode(code, "ignore")) for code in ("gb2312", "big5"))
            counts["simplified"] += n * (gb and not big5)
            counts["traditional"] += n * (big5 and not gb)
    (form, most), *_, (_, least) = counts.most_common() or [("", 0), ("", 0)]
    return form if most >= MANY * max(1, profile.lines) and most > 5 * least else ""


def _plain(character: str) -> str:
    """What characters of the same meaning share: that of `_ALIKE`, a digit, or the NFKC form."""
    plain = str(decimal(character, "")) or normalize("NFKC", character)
    return _GROUPS.get(character) or _GROUPS.get(plain, plain)


def _unexplained(profile: TextProfile, other: TextProfile) -> Iterator[Difference]:
    """A mark, a word or a character in most lines of one text alone."""
    signs = [
        (value, n)
        for kind in ("word", "character")
        for value, n in profile.of_kind(kind, profile.most)
        if other.lacks(kind, value)
    ]
    marks = [(v, n) for v, n in signs if len(v) == 1 and not (v.isalnum() or v.isspace())]
    if signs and min(profile.lines, other.lines) >= ENOUGH:
        value, n = (marks or signs)[0]
        known = "" if value.isascii() or len(value) > 1 else f" ({name(value, '?').lower()})"
        what, cure = f"{value!r}{known}", "prepare both alike"
        yield Difference("unexplained-difference", what, n, cure, bool(marks))


_STAGES = (  # the first that finds
    *((_marks,), (_language,), (_ends, _case, _characters, _tokens), (_unexplained,)),
)


def note_preparation(
    texts: Mapping[str, TextProfile],
    notices: Notices,
    *,
    source: str = "",
    tokenize: str | None = None,
    explained: bool = False,
    least: float = 0.0,
    both: bool = True,
) -> list[Difference]:
    """Add a notice for everything that one of two texts has in many lines and the other never.

    texts: by their names in messages, such as hypotheses and references; tokenize: tokenizer of the
    BLEU in which they are compared, if they are; explained: whether a difference is already known;
    least: share of the lines of the second text that have what only it has, which is returned;
    both: whether there are notices of it, too.
    """
    (name, profile), (other_name, other) = texts.items()
    if min(profile.lines, other.lines) < 2:
        return []
    differences, others = _differences(profile, other, explained=explained)
    others = [difference for difference in others if difference.lines >= least * other.lines]
    for difference in differences:
        _note(difference, (name, other_name), notices, source, tokenize)
    for difference in others if both else ():
        _note(difference, (other_name, name), notices, source, tokenize)
    for place, end in enumerate(("begins", "ends")):
        short, long = sorted((profile.ids(place), other.ids(place)), key=len)
        if short and set(short) <= set(long):  # the same ids in both texts
            sorting = "" if short == long[: len(short)] else ", in another order; sort both files"
            notices.add(
                "ids-in-both",
                source=source,
                count=profile.lines,
                ours=name,
                theirs=other_name,
                end=end,
                id=short[0],
                order=sorting,
            )
    if tokenize is not None and not any(found.marked for found in (*differences, *others)):
        _note_words(texts, notices, source, tokenize)
    return others


def _note(
    difference: Difference,
    names: tuple[str, str],
    notices: Notices,
    source: str,
    tokenize: str | None,
) -> None:
    """Add a notice of a difference, unless `_note_words` does."""
    if tokenize is not None and (
        difference.what == _BETWEEN or (difference.what == _BEFORE_MARKS and tokenize == "none")
    ):
        return
    ours, theirs = names
    notices.add(
        difference.kind,
        source=source,
        count=difference.lines,
        ours=ours,
        theirs=theirs,
        what=difference.what,
        cure=difference.cure.replace("{text}", ours).replace("{other}", theirs),
    )


def _differences(
    profile: TextProfile, other: TextProfile, *, explained: bool
) -> tuple[list[Difference], list[Difference]]:
    """What only the one and only the other text has, by the first stage that finds any.

    If a tool left a mark in one of them, the marks alone.
    """
    ours, theirs = list[Difference](), list[Difference]()
    for kinds in _STAGES[: len(_STAGES) - explained]:
        ours = [d for kind in kinds for d in kind(profile, other)]
        theirs = [d for kind in kinds for d in kind(other, profile)]
        if ours or theirs:
            break
    if any(d.marked for d in (*ours, *theirs)):
        return [d for d in ours if d.marked], [d for d in theirs if d.marked]
    return ours, theirs


def _note_words(
    texts: Mapping[str, TextProfile], notices: Notices, source: str, tokenize: str
) -> None:
    """Add a notice of a text without white space between what BLEU should count as words."""
    pairs = [*texts.items()]
    both = [(*pairs[i], *pairs[1 - i]) for i in range(2)]
    of_scripts = tokenize in _WHITE_SPACE or tokenize.startswith("moses-")
    for text, profile, _, other in both if of_scripts else ():
        script = profile.unsegmented
        if script and other.counts["lines", script] >= MANY * other.lines:
            more: dict[str, Any] = {"text": text, "script": script, "tokenize": tokenize}
            more["better"] = _TOKENIZERS[script]
            notices.add("unsegmented-script", source=source, count=profile.lines, **more)
            return
    for text, profile, other_text, other in both if tokenize == "none" else ():
        attached = profile.counts["attached", ""]
        many = attached >= ENOUGH and attached > profile.counts["apart", ""]
        if many and profile is pairs[0][1]:
            place = profile.attached
            notices.add("detokenised-line", source=source, line=place, count=attached)
            return
        if profile.share("attached") >= MANY and other.share("apart") >= MANY:
            called: dict[str, Any] = {"text": text, "others": other_text}
            notices.add("detokenised-text", source=source, count=attached, **called)
            return


def note_differences(
    systems: Mapping[str, Sequence[bytes]],
    references: Sequence[bytes],
    notices: Notices,
    *,
    numbers: Sequence[int | None] | None = None,
    form: str = "",
    tokenize: str | None,
    spelling: Spelling | None = None,
) -> None:
    """Add a notice where hypotheses and references are spelled or prepared otherwise.

    What the references have is named once, for the hypotheses that lack most of it. systems:
    hypotheses by the name of their file; references: all of the first sentence, all of the second,
    …; numbers: lines of the hypotheses in their file, by default 1, 2, …; form: format of k-best
    lists; tokenize: tokenizer of BLEU; spelling: that of all candidates, if these are not all.
    """
    others, profile = Spelling.of(references), profile_of(references)
    theirs: list[tuple[Difference, str]] = []
    for source, hypotheses in systems.items():
        written = spelling
        if written is None:
            written = Spelling()
            written.add(hypotheses, count(1) if numbers is None else numbers)
        spelled = {"hypotheses": written, "references": others}
        known = note_spelling(spelled, notices, source=source, of_lists=bool(form))
        first_references = references[:: max(1, len(references) // max(1, len(hypotheses)))]
        lines = {"hypotheses": hypotheses, "references": first_references}
        note_alignment(lines, notices, source=source)
        profiles = {"hypotheses": profile_of(hypotheses), "references": profile}
        alone = note_preparation(
            profiles, notices, source=source, tokenize=tokenize, explained=known, both=False
        )
        theirs += [(difference, source) for difference in alone]
    said = set[str]()
    for difference, source in sorted(theirs, key=lambda pair: -len(pair[0].what)):
        parts = {difference.what}
        if difference.kind == "other-characters":
            parts = {*difference.what.partition(" in place of ")[0].split()}
        if not parts <= said:
            _note(difference, ("references", "hypotheses"), notices, source, tokenize)
        said |= parts


def note_identity(
    hypotheses: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    notices: Notices,
    source: str,
) -> None:
    """Add a notice if the hypotheses are identical to one of the reference files."""
    for r, lines in enumerate(zip(*references, strict=True), 1):
        if tuple(hypotheses) == lines:
            notices.add("identical-to-reference", source=source, number=r)
