"""Contrastive sets in JSON lines: a right sentence, wrong variants of it, sentences before.

    {"context": ["the lamp is old ."], "right": "it burns .", "wrong": "he burns ."}
    {"context": [], "right": "…", "wrong": ["…", "…"], "phenomenon": "gender", "id": "7"}

An object on each line; `wrong` is one sentence or several; `phenomenon`, `language` and
`pronoun` group items, and are optional like `id` and `source`, the source sentences of the context
and, last, of the item itself, for models that read them. A line end in a sentence is read as a
space. Of sets of other kinds, as ContraPro and BLiMP, the error names a command that writes such
lines. The text is tokenised as the model's training text was: words are split on ASCII space,
nothing else is changed.

Sets are mostly written by hand (Bawden et al. 2018, https://aclanthology.org/N18-1118). Those that
are made of k-best lists have a system's own errors, in the documents that are to be reranked: two
candidates of which one word is right in one and wrong in the other. Words are compared in lower
case, escapes of Moses undone.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from rerank.errors import InputError
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import Place, encoded, read_json, read_object, similar
from rerank.notices import Notices

GROUPS = ("phenomenon", "language", "pronoun")
_NEEDED = ("context", "right", "wrong")
_KEYS = ("id", *_NEEDED, "source", *GROUPS)
_OTHERS = {  # keys of other sets for ours, the more usual first
    "right": ("ref segment", "sentence_good", "correct", "good", "reference", "ref", "positive"),
    "wrong": ("errors", "contrastive", "sentence_bad", "incorrect", "bad", "negatives", "negative"),
    "context": ("ref context", "tgt_context", "previous", "prefix"),
    "phenomenon": ("linguistics_term", "category", "type"),
    "pronoun": ("ref pronoun",),
}
_SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class ContrastiveItem:
    """A right sentence and its wrong variants after the sentences of a context, as UTF-8 bytes.

    groups: (field, value) pairs of those of `GROUPS` that it has. source: source sentences of the
    context, and last that of the item; empty where none are given.
    """

    context: tuple[bytes, ...]
    right: bytes
    wrong: tuple[bytes, ...]
    groups: tuple[tuple[str, str], ...] = ()
    source: tuple[bytes, ...] = ()


def read_contrastive(path: FilePath, notices: Notices) -> list[ContrastiveItem]:
    """The items of a file, in order. InputError with the line of a fault, or for no items."""
    place = Place(display(path), notices)
    items: list[ContrastiveItem] = []
    for line in place.filled(read_lines(path, notices)):
        try:
            items.append(_item(read_object(line, place), place))
        except InputError as fault:
            cure = "" if items else _cure(path, line)
            raise place.fault(f"{fault.what}{cure}") from None
    if not items:
        raise place.fault("expected a JSON object per line, found none; is this the right file?", 1)
    return items


def _cure(path: FilePath, line: bytes) -> str:
    """A command that writes the items of a set of another kind; empty if its keys are not known."""
    value: Any = None
    texts = [line] if is_pipe(path) else [b"\n".join(read_lines(path, Notices())), line]
    for text in texts:
        with suppress(ValueError, RecursionError):
            value = value or read_json(text)
    item = value[0] if isinstance(value, list) and value else value
    if not isinstance(item, dict):
        return ""
    fields = {"context": "[]"}
    for field, others in _OTHERS.items():
        key = next((key for key in (field, *others) if item.get(key) not in (None, "")), None)
        if key is None:
            continue
        name = f".{key}" if re.fullmatch("[A-Za-z_]+", key) else f'."{key}"'
        content = item[key]
        first = next(iter(content), "") if isinstance(content, list) else content
        if isinstance(first, dict) and isinstance(content, list):
            inner = next((k for k in (*others, *first) if isinstance(first.get(k), str)), "")
            fields[field] = f'[{name}[]."{inner}"]'
        elif isinstance(first, str):
            alone = field == "context" and isinstance(content, str)
            fields[field] = f"[{name}]" if alone else name
    if not {"right", "wrong"} <= fields.keys():
        return f"; the keys here are {', '.join(map(_short, item))}"
    shape = ", ".join(f"{field}: {name}" for field, name in fields.items())
    program = shlex.quote(f"{'.[] | ' if isinstance(value, list) else ''}{{{shape}}}")
    return f"; `jq -c {program} FILE > NEW` writes the lines that are read"


def _item(fields: dict[str, Any], place: Place) -> ContrastiveItem:
    """The item that an object describes."""
    for key in fields:
        if key not in _KEYS:
            raise InputError(
                f"found the field {_short(key)}; {similar(key, _KEYS)}; rename or remove it"
            )
    if missing := [key for key in _NEEDED if key not in fields]:
        cure = (
            'give "context": [] where no sentence comes before'
            if missing == ["context"]
            else ('a line is {"context": [sentence, …], "right": sentence, "wrong": sentence}')
        )
        raise InputError(f"expected the field {missing[0]!r}, found none; {cure}")
    context, wrong, source = fields["context"], fields["wrong"], fields.get("source", [])
    for field, value in (("context", context), ("source", source)):
        if not isinstance(value, list):
            raise InputError(
                f"expected a list of sentences as {field!r}, found {_short(value)}; write "
                "[sentence]"
            )
    if "source" in fields and len(source) != len(context) + 1:
        raise InputError(
            f"expected {len(context) + 1} sentences as 'source', found {len(source)}; give those "
            "of the context and, last, that of 'right'"
        )
    variants = wrong if isinstance(wrong, list) else [wrong]
    if not variants:
        raise InputError("expected a sentence or several as 'wrong', found an empty list")
    right = _sentence(fields["right"], "right", place)
    item = ContrastiveItem(
        tuple(_sentence(sentence, "context", place) for sentence in context),
        right,
        tuple(_sentence(sentence, "wrong", place) for sentence in variants),
        tuple((field, _label(fields[field], field, place)) for field in GROUPS if field in fields),
        tuple(_sentence(sentence, "source", place) for sentence in source),
    )
    if right in item.wrong:
        raise InputError("expected 'wrong' to differ from 'right'; correct or remove this item")
    return item


def _sentence(value: object, field: str, place: Place) -> bytes:
    """The words of a sentence, with one space between them."""
    if not isinstance(value, str):
        raise InputError(f"expected a sentence as {field!r}, found {_short(value)}")
    if "\n" in value:
        place.note("line-end-in-text")
        value = value.replace("\n", " ")
    words = [word for word in encoded(value, field, place).split(b" ") if word]
    if not words:
        raise InputError(f"expected a sentence as {field!r}, found no words")
    return b" ".join(words)


def _label(value: object, field: str, place: Place) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"expected text as {field!r}, found {_short(value)}; write it in quotes")
    encoded(value, field, place)
    return value


def _short(value: object) -> str:
    """A value in a message, as JSON and at most 60 characters of it."""
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Contrasts of k-best lists


Words: TypeAlias = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class WordTest:
    """Words in which variants differ, as tests of a word; right: of the word that is right."""

    any: Callable[[str], bool]
    right: Callable[[str], bool] = lambda word: True

    @classmethod
    def repeated(cls, earlier: Sequence[Sequence[bytes]], function: frozenset[str]) -> WordTest:
        """Content words, the right one in an earlier reference; function: all other words."""
        had = {_plain(word) for reference in earlier for line in reference for word in line.split()}
        return cls(lambda word: word.isalpha() and word not in function, had.__contains__)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A candidate, variants of it that are wrong in one word, and that word of the right one."""

    right: bytes
    wrong: tuple[bytes, ...]
    word: str


def replacement_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: WordTest
) -> Contrast | None:
    """The first candidate of a list that others contrast with; None if there is none.

    Two candidates contrast if they differ in one word, both words are of a kind, some reference has
    the first candidate's word as often as this candidate does, and no reference has the other's.
    All such others, in the order of the list, are the wrong variants.
    O(words of the list · words of a candidate) time.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    frames: dict[tuple[int, tuple[bytes, ...]], list[tuple[Words, str]]] = {}
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            if kind.any(word):
                frames.setdefault((j, words[:j] + words[j + 1 :]), []).append((words, word))
    for alike in frames.values():
        wrong = tuple(
            b" ".join(words) for words, word in alike if not any(count[word] for count in counts)
        )
        for right, word in alike if wrong else ():
            if kind.right(word) and any(count[word] >= _times(word, right) for count in counts):
                return Contrast(b" ".join(right), wrong, word)
    return None


def omission_of(
    candidates: Sequence[Words], references: Sequence[Words], kind: WordTest
) -> Contrast | None:
    """The first candidate that another equals but for a word that it lacks; None if there is none.

    The word is of a kind. The candidate with it is right if some reference has it as often as this
    candidate does; the one without it, if a reference has it as often as that one, and none has
    it more often. O(words of the list · words of a candidate) time.
    """
    counts = [Counter(map(_plain, reference)) for reference in references]
    distinct = dict.fromkeys(tuple(words) for words in candidates)
    for words in distinct:
        for j, word in enumerate(map(_plain, words)):
            shorter = words[:j] + words[j + 1 :]
            if not (shorter and shorter in distinct and kind.any(word) and kind.right(word)):
                continue
            texts, times = (b" ".join(words), b" ".join(shorter)), _times(word, words)
            most = max(count[word] for count in counts)
            if most >= times:
                return Contrast(texts[0], texts[1:], word)
            if most == times - 1:
                return Contrast(texts[1], texts[:1], word)
    return None


CONTRASTS: Mapping[str, Callable[[Sequence[Words], Sequence[Words], WordTest], Contrast | None]] = {
    "replaced": replacement_of,
    "omitted": omission_of,
}


def _times(word: str, words: Words) -> int:
    """How often a word is in a candidate."""
    return sum(word == _plain(other) for other in words)


def _plain(word: bytes) -> str:
    return html.unescape(word.decode()).lower()
