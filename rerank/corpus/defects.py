"""Candidates that are no translations: cut off, looping, untranslated, thinking aloud.

Samples of language models are full of them, and agreement prefers them: two texts that were cut at
the same place, or fell into the same loop, are more alike than two whole ones. What a detector says
is relative to the other candidates of the sentence wherever a translation might rightly look like
that: a word that all candidates repeat ten times is repeated by the source.

n candidates of T sentences. All detectors together take O(bytes) time: one compiled pass over the
texts, and regular expressions for texts that hold a sign they look for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn, column_names
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import DROP, KEEP
from rerank.corpus.scripts import SCRIPTS, measured, other_script
from rerank.notices import Notices

Integers = NDArray[np.int64]
Marks = NDArray[np.uint8]
NO_SYSTEMS: Mapping[str, str] = MappingProxyType({})

# From what can be mended in the text to what has nothing of a translation: of several defects a
# candidate has the last, and of candidates that all have one the first is the least bad.
KINDS = (
    "control-token",
    "text-around",
    "byte-tokens",
    "reasoning",
    "prompt",
    "cut-off",
    "loop",
    "other-script",
    "untranslated",
    "refusal",
)
_LEVEL = {kind: level for level, kind in enumerate(KINDS, 1)}
_FIRST = 8  # candidates of a list that are looked at where all are kept
HEAD = 500  # sentences from which `Defects` learns what nearly all candidates are like

_OF_LANGUAGE = rb"(?:english |german |french |chinese |russian )?"
_REASONING = rb"(?:think|thinking|thought|reasoning|reflection|analysis|scratchpad|seed:think)"
_SIGNS: dict[str, tuple[re.Pattern[bytes], tuple[bytes, ...]]] = {
    # kind: its pattern, and what texts that match hold in small letters, if no unusual byte
    "control-token": (
        re.compile(
            rb"(?i)<\|[a-z_]{2,30}\|>|<(?:pad|eos|bos|end_of_turn|start_of_turn)>|\[/?INST\]"
            rb"|<\xef\xbd\x9c[^>]{1,40}\xef\xbd\x9c>"
        ),
        (),
    ),
    "text-around": (
        re.compile(
            rb"(?i)^\s*(?:(?:sure|certainly|of course|okay|ok)\b[^:.]{0,60}[,!:.]\s*)?"
            rb"(?:here(?: is|'s|\xe2\x80\x99s| are)\b[^:]{0,80}\btranslations?\b[^:]{0,60}:"
            rb"|(?:the )?" + _OF_LANGUAGE + rb"translation(?: of\b[^:]{0,200}?)?(?: is)?\s*:"
            rb"|(?:it|(?:th(?:e|is)|the given) " + _OF_LANGUAGE + rb"(?:text|sentence))"
            rb" (?:translates|(?:can be|is) translated) (?:in)?to\b[^:]{0,20}:"
            rb"|translated (?:text|sentence|version)\s*:)"
            rb"|^\s*```|```\s*$"
            rb"|^\s*\*{0,2}(?:option|translation|version|alternative) ?(?:1|a)\b\*{0,2}\s*[:.)]"
        ),
        (b"translat", b"```", b"option", b"version", b"alternative"),
    ),
    "byte-tokens": (
        re.compile(
            rb"<0x[0-9A-Fa-f]{2}>|(?:^|[^ ])(?:\xc4\xa0|\xc4\x8a)"  # Ġ and Ċ of byte-level BPE
            rb"|\xc3\xa2\xc4[\x80-\xbf]|\xc3\x83\xc2[\x80-\xbf]"  # âĢ, and Ã with a control
        ),
        (),
    ),
    "reasoning": (
        re.compile(
            rb"(?i)^\s*(?:<" + _REASONING + rb">|\[think\]|\xe2\x97\x81think\xe2\x96\xb7"
            rb"|<\|channel\|>\s*analysis)|</" + _REASONING + rb">|\[/think\]"
            rb"|\xe2\x97\x81/think\xe2\x96\xb7"
        ),
        (b"think\xe2",),
    ),
    "refusal": (
        re.compile(
            rb"(?i)^\W*(?:(?:i ?(?:'m|\xe2\x80\x99m|am) (?:very |so )?)?sorry|i apologi[sz]e"
            rb"|unfortunately|as an? (?:ai|(?:large )?language)\b"
            rb"|i (?:cannot|can't|can not|can\xe2\x80\x99t|am unable|am not able|'m unable))"
            rb"\b.{0,120}\b(?:translat|assist|help (?:you )?with|fulfil|comply|language model"
            rb"|an ai\b|this request|th(?:e|is) text|the content)"
        ),
        (
            *(b"translat", b"assist", b"fulfil", b"comply", b" an ai", b"language model"),
            *(b"help you with", b"this request"),
        ),
    ),
}
_TAKEN_AWAY = (  # what is surely no translation: its kind and its pattern
    ("control-token", rb"^(?:\s*<\|[a-z_]{2,30}\|>)+(?:(?:assistant|final)\b)?"),
    ("reasoning", rb"^\s*<(" + _REASONING + rb")>.*?</\1>"),
    (
        "reasoning",
        rb"^\s*(?:\[think\].*?\[/think\]|\xe2\x97\x81think\xe2\x96\xb7.*?/think\xe2\x96\xb7)",
    ),
    ("reasoning", rb"^(?:analysis)?(?:<\|message\|>)?.*<\|channel\|>\s*final\s*<\|message\|>"),
    ("reasoning", rb"^(?!.*<" + _REASONING + rb">).*?</" + _REASONING + rb">"),
    ("control-token", rb"(?:<\|[a-z_]{2,30}\|>\s*|<(?:eos|pad|end_of_turn)>\s*){1,8}$"),
)
_NO_SIGN = ("text-around", "refusal")  # kinds of words that the source may say itself


_FENCE, _LANGUAGE = b"```", re.compile(rb"^[a-z]*\s")  # of code, behind which its language is
_BYTES = re.compile(rb"(?:<0x[0-9A-Fa-f]{2}>)+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NEARLY_ALL = 0.8  # of the candidates, or of the beginnings of lists
# shares of a text that are one phrase, and trigrams that stand there before
_REPEATED = np.array([0.1, 0.4])
_SHORT, _LEAST_WORDS = 0.75, 8  # of the length of whole candidates: a text without an end
_COPIED = 6  # words of the source in a row


class Defects:
    """Finds the candidates of lists that are no translations.

    The script of nearly all candidates, a prompt before all of them, and whether outputs may repeat
    their sources, as in normalisation, are learnt from the first lists (`learn`); `marks` then says
    of each candidate which of `KINDS` it has.

    mode: whether defects are only counted, are a column of the lists (`KBest.defects`), or are left
    out where a sentence has a better candidate; learnt: whether the first lists are known; some:
    whether any candidate has a defect; removed: what `cleaned` took away.
    """

    def __init__(self, mode: str = KEEP) -> None:
        self.mode = mode
        self.learnt = self.some = False
        self.removed = Counter[str]()
        self._letters, self._source_letters = np.zeros((2, len(SCRIPTS)), np.int64)
        self._sentences = self._copies = self._candidates = 0
        self._beginnings: list[bytes] = []  # of the candidates of each sentence, what they share

    def learn(self, kbest: KBest) -> None:
        """Count a document's lists."""
        self._letters += measured(kbest.texts)[0].sum(axis=0)
        self._sentences += int((kbest.counts > 0).sum())
        sources = TextColumn.of([*kbest.side.get("source", ())])
        self._source_letters += measured(sources)[0].sum(axis=0)
        for texts, source in _lists(kbest):
            shared = _common(texts)
            self._beginnings.append(shared[: shared.rfind(b":") + 1])
            if source and self._same_script:
                self._candidates += len(texts)
                self._copies += sum(map(_copies(source), texts))

    @property
    def _same_script(self) -> bool:
        """Whether sources are of the script of the candidates: other copies are `other-script`."""
        return bool(self._letters.argmax() == self._source_letters.argmax())

    def marks(self, kbest: KBest) -> Marks:
        """The kind of each candidate's defect, (n,), its place in `KINDS` counted from 1; 0: none.

        An empty text has none here: `rerank.corpus.grouping` counts those.
        """
        marks = np.zeros(kbest.n, np.uint8)
        if not kbest.n:
            return marks
        letters, repeated, unusual = measured(kbest.texts)
        self._mark_signs(kbest, np.flatnonzero(unusual).tolist(), marks)
        prompt = self._prompt
        suspects = other_script(letters, self._letters)
        _raise(marks, suspects, "other-script")
        _raise(marks, _loops(kbest, repeated), "loop")
        cut = np.zeros(kbest.n, np.bool_) if kbest.truncated is None else kbest.truncated.copy()
        rows = kbest.offsets.tolist()
        may_copy = self._copies > (1 - _NEARLY_ALL) * max(1, self._candidates)
        for t in _short_and_open(kbest):
            cut[rows[t] : rows[t + 1]] |= _unfinished([kbest.texts[row] for row in kbest.rows(t)])
        _raise(marks, cut, "cut-off")
        may_copy |= not (kbest.side.get("source") and self._same_script)
        if prompt or not may_copy:
            for t, (listed, source) in enumerate(_lists(kbest, empty=True)):
                if prompt:
                    echoes = [prompt.match(text) is not None for text in listed]
                    _raise(marks[rows[t] : rows[t + 1]], np.array(echoes, np.bool_), "prompt")
                if source and not may_copy:
                    copies = np.array([*map(_copies(source), listed)], np.bool_)
                    _raise(marks[rows[t] : rows[t + 1]], copies, "untranslated")
        return marks

    def marked(
        self,
        documents: Iterable[NamedLists],
        notices: Notices,
        systems: Mapping[str, str] = NO_SYSTEMS,
    ) -> Iterator[NamedLists]:
        """The documents with their defects counted, by system if they are made of their outputs.

        Memory: `HEAD` sentences at first, then a document.
        """
        held: list[NamedLists] = []
        for name, kbest in documents:
            if not self.learnt:
                self.learn(kbest if systems else kbest.top(_FIRST))
                held.append((name, kbest))
                if self._sentences < HEAD:
                    continue
            self.learnt = True
            for each, lists in held or [(name, kbest)]:
                yield each, self._judged(lists, notices, systems)
            held = []
        self.learnt = True
        for each, lists in held:
            yield each, self._judged(lists, notices, systems)

    def _judged(self, kbest: KBest, notices: Notices, systems: Mapping[str, str]) -> KBest:
        """A document with its defects, which are counted, or without the candidates.

        Where all are kept, only the first ones of each list are looked at.
        """
        looked_at = kbest.top(_FIRST) if self.mode == KEEP else kbest
        marks = self.marks(looked_at)
        if not marks.any():
            return kbest if self.mode == KEEP else replace(kbest, defects=marks)
        self.some = True
        names = column_names(kbest.labels) if systems else []
        dense = looked_at.dense
        givers = {
            f"output of {systems[x]}": dense[:, names.index(x)] > 0 for x in systems if x in names
        }
        givers = givers or {"candidate": np.ones(len(marks), np.bool_)}
        for kind, level in _LEVEL.items():
            for giver, theirs in givers.items():
                rows = np.flatnonzero((marks == level) & theirs)
                if len(rows):
                    line = looked_at.line_number(int(rows[0]))
                    where: dict[str, Any] = {"source": kbest.source, "line": line}
                    notices.add(kind, **where, count=len(rows), candidate=giver)
        if self.mode == KEEP:
            return kbest
        judged = replace(kbest, defects=marks)
        return judged.where(whole(judged)) if self.mode == DROP else judged

    def cleaned(self, text: bytes) -> bytes:
        """A text without what is surely no translation; counted by kind in `removed`.

        Closed reasoning, a fence around all of it, control tokens at its ends, the prompt that all
        texts begin with; bytes as <0xC3><0xA9>, or as of byte-level BPE, become characters.
        """
        steps = [*_taken_away()]
        if self._prompt is not None:
            steps.append(("prompt", self._prompt))
        for kind, pattern in steps:
            shorter = pattern.sub(b"", text, count=1).strip()
            if shorter != text.strip():
                self.removed[kind] += 1
            text = shorter
        text = text.strip()
        if len(text) > 2 * len(_FENCE) and text.startswith(_FENCE) and text.endswith(_FENCE):
            self.removed["text-around"] += 1
            text = _LANGUAGE.sub(b"", text[len(_FENCE) : -len(_FENCE)]).strip()
        joined = _BYTES.sub(_characters, text)
        if _SIGNS["byte-tokens"][0].search(joined):
            joined = _NOT_ASCII.sub(_of_byte_level, joined.decode()).strip().encode()
        self.removed["byte-tokens"] += joined != text
        return joined

    def _mark_signs(self, kbest: KBest, unusual: Sequence[int], marks: Marks) -> None:
        """Mark texts that match one of `_SIGNS`; only those that hold a sign are looked at.

        unusual: rows of texts with an unusual byte.
        """
        texts, rows = kbest.texts.to_list(), kbest.offsets.tolist()
        blob = b"\n".join(texts).lower()  # the block of a file holds features, too
        ends = np.cumsum([len(text) + 1 for text in texts])
        for kind, (pattern, signs) in _SIGNS.items():
            hits = np.zeros(kbest.n, np.bool_)
            places = [m.start() for sign in signs for m in re.finditer(re.escape(sign), blob)]
            for row in {*np.searchsorted(ends, places, "right").tolist(), *unusual}:
                hits[row] = pattern.search(texts[row]) is not None
            if kind in _NO_SIGN and hits.any():
                for a, b in pairwise(rows):
                    hits[a:b] &= not hits[a:b].all()
            _raise(marks, hits, kind)

    @cached_property
    def _prompt(self) -> re.Pattern[bytes] | None:
        """What begins nearly all lists, of at least three words and five sentences; or None.

        It ends behind the last colon that the candidates of each sentence share.
        """
        return _shared_prompt(self._beginnings)


@cache
def _taken_away() -> list[tuple[str, re.Pattern[bytes]]]:
    """`_TAKEN_AWAY`, compiled."""
    return [(kind, re.compile(text, re.I | re.S)) for kind, text in _TAKEN_AWAY]


def _characters(bytes_of: re.Match[bytes]) -> bytes:
    """The characters of bytes such as <0xC3><0xA9>, if they are UTF-8; else as they are."""
    value = bytes.fromhex(bytes_of[0].replace(b"<0x", b"").replace(b">", b"").decode())
    try:
        return value if value.decode().isprintable() else bytes_of[0]
    except UnicodeDecodeError:
        return bytes_of[0]


@cache
def _byte_letters() -> dict[str, int]:
    """The byte of each letter of byte-level BPE (Radford et al. 2019): bytes that print, and more.

    Bytes that do not print have the letters from U+0100 on, in their order.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printed)
    return {chr(b): b for b in printed} | {chr(0x100 + n): b for n, b in enumerate(others)}


def _of_byte_level(run: re.Match[str]) -> str:
    """The characters of letters of byte-level BPE, if they are such of UTF-8; else as they are."""
    values = [_byte_letters().get(letter) for letter in run[0]]
    try:
        return bytes(values).decode() if None not in values else run[0]  # type: ignore[arg-type]
    except UnicodeDecodeError:
        return run[0]


def defects_of(kbest: KBest) -> list[dict[str, int]]:
    """Kinds of defects among the candidates of each of the T sentences, and how many have them."""
    if kbest.defects is None:
        return [{} for _ in range(len(kbest))]
    counts = (np.bincount(kbest.defects[kbest.rows(t)], minlength=2) for t in range(len(kbest)))
    return [{KINDS[k]: int(n) for k, n in enumerate(row[1:]) if n} for row in counts]


def whole(kbest: KBest) -> NDArray[np.bool_]:
    """Which candidates (n,) have no worse defect than the least bad one of their sentence."""
    starts = np.unique(kbest.offsets)[:-1]
    if kbest.defects is None or not len(starts):
        return np.ones(kbest.n, np.bool_)
    least = np.minimum.reduceat(kbest.defects, starts)
    sizes = np.diff(np.append(starts, kbest.n))
    kept: NDArray[np.bool_] = kbest.defects <= np.repeat(least, sizes)
    return kept


def _raise(marks: Marks, hits: NDArray[np.bool_], kind: str) -> None:
    """Give the candidates of `hits` a kind of defect, unless they have a worse one."""
    marks[hits] = np.maximum(marks[hits], _LEVEL[kind])


def _lists(kbest: KBest, *, empty: bool = False) -> Iterator[tuple[list[bytes], bytes]]:
    """The texts of each sentence that has any, and its source; empty: of all sentences."""
    texts, rows, sources = kbest.texts.to_list(), kbest.offsets.tolist(), kbest.side.get("source")
    for t in range(len(kbest)):
        if empty or rows[t] < rows[t + 1]:
            yield texts[rows[t] : rows[t + 1]], sources[t] if sources else b""


def _loops(kbest: KBest, repeated: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which candidates (n,) repeat themselves much more than another one of their sentence.

    repeated: (n, 2), as of `_measured`. What the source repeats is no loop.
    """
    sources, least = kbest.side.get("source"), np.zeros((len(kbest), 2))
    if sources is not None:
        least = measured(TextColumn.of([*sources]))[1]
    suspect: NDArray[np.bool_] = np.any(repeated >= _REPEATED, axis=1)
    for t in np.unique(np.searchsorted(kbest.offsets, np.flatnonzero(suspect), "right") - 1):
        span = slice(*kbest.offsets[t : t + 2].tolist())
        usual = np.maximum(least[t], repeated[span].min(axis=0))
        more = repeated[span] > np.maximum(2 * usual, usual + _REPEATED / 2)
        suspect[span] &= (more & (repeated[span] >= _REPEATED)).any(axis=1)
    return suspect


# Ends, copies and prompts


def _short_and_open(kbest: KBest) -> Iterator[int]:
    """Sentences of which some candidates stop with a letter, much shorter than most others."""
    blob, (starts, ends) = np.frombuffer(kbest.texts.blob, np.uint8), kbest.texts.spans.T
    lengths, last = ends - starts, np.zeros(kbest.n, np.uint8)
    last[lengths > 0] = blob[ends[lengths > 0] - 1]
    stops = ((last | 32) >= ord("a")) & ((last | 32) <= ord("z"))
    stops |= (last >= ord("0")) & (last <= ord("9"))
    for row in np.flatnonzero(last >= 0x80).tolist():  # a letter or a digit of any script
        stops[row] = kbest.texts[row][-4:].decode(errors="ignore")[-1:].isalnum()
    sums = np.concatenate([[0], np.cumsum(stops)])[kbest.offsets]
    counts = np.diff(sums)
    for t in np.flatnonzero((counts > 0) & (2 * counts <= kbest.counts)).tolist():
        span = slice(*kbest.offsets[t : t + 2].tolist())
        if (lengths[span][stops[span]] < _SHORT * np.median(lengths[span][~stops[span]])).any():
            yield t


def _unfinished(texts: Sequence[bytes]) -> NDArray[np.bool_]:
    """Which texts stop within a sentence: short, and where all others that have the word go on.

    Of a word that the others do not have, a longer one that begins with it counts.
    """
    lines = [text.decode(errors="replace").split() for text in texts]
    stops = np.array([bool(line) and line[-1][-1].isalnum() for line in lines])
    lengths = np.array([*map(len, texts)])
    result = stops & (lengths < _SHORT * np.median(lengths[~stops])) if not stops.all() else ~stops
    for row in np.flatnonzero(result).tolist():
        last, others = lines[row][-1], [line for line in lines if line is not lines[row]]
        places = [(line, i) for line in others for i, w in enumerate(line) if w.startswith(last)]
        places = [(line, i) for line, i in places if line[i] == last] or places
        goes_on = [any(word[0].isalnum() for word in line[i + 1 :]) for line, i in places]
        result[row] = len(lines[row]) >= _LEAST_WORDS and bool(places) and all(goes_on)
    return result


class _copies:
    """Whether a text is its source, or has a long part of it that is no name."""

    def __init__(self, source: bytes) -> None:
        words = source.split()
        self._joined, self._phrases = b"".join(words).lower(), set[tuple[bytes, ...]]()
        self._few = len(words) < _COPIED and len(source.decode(errors="replace")) < _COPIED
        self._named = sum(word[:1].islower() or word[0] >= 0x80 for word in words) < 3
        for i in range(len(words) - _COPIED + 1):
            phrase = words[i : i + _COPIED]
            if sum(word[:1].islower() or word[0] >= 0x80 for word in phrase) >= _COPIED // 2:
                self._phrases.add(tuple(phrase))

    def __call__(self, text: bytes) -> bool:
        words = text.split()
        if b"".join(words).lower() == self._joined:
            return not (self._few or self._named)
        parts = (tuple(words[i : i + _COPIED]) for i in range(len(words) - _COPIED + 1))
        return bool(self._phrases) and any(part in self._phrases for part in parts)


def _common(texts: Sequence[bytes]) -> bytes:
    """What all texts begin with."""
    first, last = min(texts), max(texts)
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:n]


def _shared_prompt(beginnings: Sequence[bytes]) -> re.Pattern[bytes] | None:
    """A pattern of the prompt before (nearly) all texts, from what begins those of each sentence.

    The words that nearly all beginnings have in front, anything that differs between sentences,
    and the label behind the last blank before the colon, as in `Translate: … English:`.
    """
    prompts = [begin for begin in beginnings if begin]
    if len(prompts) < max(5, _NEARLY_ALL * len(beginnings)):
        return None
    label = prompts[0].split()[-1]
    same = [prompt for prompt in prompts if prompt.split()[-1] == label]
    if len(same) < _NEARLY_ALL * len(prompts):
        return None
    shared, whole_prompt = _common(same), min(same)
    front = shared.split(b" ") if shared == whole_prompt else shared.split(b" ")[:-1]
    if len(front) < 2 and len(label) < 4:
        return None
    between = b"" if shared == whole_prompt else rb".*?" + re.escape(label)
    return re.compile(rb"\s*" + rb"\s+".join(map(re.escape, front)) + between + rb"\s*", re.S)
