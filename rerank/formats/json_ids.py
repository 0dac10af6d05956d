"""Which sentence each object of JSON lines is of: by its id within its document.

An id is a number, or a text that ends in one, as `seg-7`: sentence 7 of its document, so that a
number that is left out leaves a gap. Where documents count anew, those after the first begin after
the last number of the one before. Other texts are names, in the order of the file; objects without
any id are, too. Objects of one id are of one sentence, unless they differ in source or reference,
or in a text at a key that is not known, which may be either or their document: then they are
refused. A number of a sample within an id is not known from that of a sentence; whether texts of
ids that differ in it are alike tells (`are_samples`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, NamedTuple

import msgspec

from rerank.corpus.kbest import MAX_ID
from rerank.errors import InputError
from rerank.formats.json_candidates import (
    CANDIDATES,
    DOCUMENT,
    ENVELOPES,
    IDS,
    REFERENCE,
    SOURCE,
    TEXT,
)
from rerank.formats.tokens import first_key, read_object

_OTHER_IDS = re.compile(
    r"(?i)(?:^|_)(?:id|idx|index|no|nr|number|key|line|seg|segment)$|[a-z]I[Dd]$"
)
# ids that may be texts of sentences: only if all end in numbers, and have no blank
_OR_TEXTS = ("segment", "seg", "sent", "sentence")
_OF_SAMPLE = re.compile(r"(?i)sample|hyp|cand|beam|draw|rank|best|choice|completion|generation")
_TEXT_ID = re.compile(r"\S*[0-9]{1,9}")
_NUMBERED = re.compile(r"(|.*[^0-9])([0-9]{1,9})", re.DOTALL)
_LIKE_DOCUMENT = re.compile(
    r"(?i)doc|talk|file|chapter|article|story|book|dialog|conversation|episode|page|url|title|lang"
)
_OF_RUN = re.compile(  # texts that may differ in objects of one sentence
    r"(?i)time|date|created|model|status|reason|system|run|decoder|method|strategy|config|version"
)
_ANSWER = ("object", "choices", "usage", "custom_id")  # of a server's answer: its `id` is its own
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SAMPLES = (  # parts of ids that may name a sample
    # from the start of a run of other characters, not from each of them
    *(rf"(?<![^0-9])[^0-9]+{end}$" for end in ("[0-9]+", "[0-9]+[.][0-9]+", "")),
    "^[^0-9]*[0-9]+",
)
_ALIKE = 0.3  # trigrams that texts share: 0.48 to 0.86 of translations, 0.04 to 0.12 of neighbours
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class SentenceIds:
    """The sentence of each object of a file, from 0, or what is wrong with its id.

    key: where the ids are; None if there are none. unread: further keys that seem to be ids of
    other sentences. documents: name and numbers of each document whose ids count anew. named:
    whether ids are names. texts: documents and ids of all objects if all ids are texts that differ.
    """

    numbers: Sequence[int | str]
    key: str | None
    unread: Sequence[str]
    documents: Sequence[tuple[Any, range]]
    named: bool
    texts: Sequence[tuple[Any, str]] = ()

    @property
    def known(self) -> list[int]:
        """The numbers of the objects whose ids are right."""
        return [n for n in self.numbers if isinstance(n, int)]

    @property
    def last(self) -> int:
        """The highest number of a sentence; -1 if there is none."""
        return max(self.known, default=-1)

    @property
    def rising(self) -> bool:
        """Whether no object comes after one of a later sentence."""
        return all(a <= b for a, b in pairwise(self.known))

    @property
    def mixed(self) -> bool:
        """Whether objects of a document stand behind those of another one."""
        starts = [numbers.start for _, numbers in self.documents]
        owners = (bisect_right(starts, n) for n in self.known if starts)
        return sum(1 for _ in groupby(owners)) > len(starts)

    @property
    def apart(self) -> int:
        """How often an object is not beside the earlier ones of its sentence."""
        runs = [n for n, _ in groupby(self.known)]
        return len(runs) - len({*runs})


def sentence_ids(lines: Iterable[bytes]) -> SentenceIds:
    """The ids of the objects on the lines that are not blank. O(bytes), an object at a time."""
    rows = [_head(line) for line in lines if line.strip()]
    present = [row for row in rows if row is not None]
    ids_here = [
        key
        for key in IDS
        if any(key in row for row in present)
        and (key not in _OR_TEXTS or all(_TEXT_ID.fullmatch(f"{row.get(key)}") for row in present))
    ]
    everywhere = (key for key in ids_here if all(key in row for row in present))
    key = next(everywhere, ids_here[0] if ids_here else None)
    numbers, documents, named = _numbers(rows, key)
    order = _order(numbers, exact=key is None)
    others = dict.fromkeys(
        key for row in present for key in row if _OTHER_IDS.search(key) or key in ids_here
    )
    unread = [
        other
        for other in others
        if other not in (key, *DOCUMENT)
        and len({str(row.get(other)) for row in present}) > 1
        and _order(_numbers(rows, other)[0], exact=key is None) != order
        and not (_OF_SAMPLE.search(other) and _tells_candidates(rows, other, numbers))
    ]
    ids = ((_document(row), row.get(key or "")) for row in present)
    texts = [(document, text) for document, text in ids if isinstance(text, str)]
    texts = texts if len({*texts}) == len(rows) else []
    compared = _compared(rows, numbers, key)
    return SentenceIds(compared, key, unread, documents, named, texts)


def _tells_candidates(
    rows: Sequence[Mapping[str, Any] | None], key: str, numbers: Sequence[int | str]
) -> bool:
    """Whether the values at a key differ within each sentence, and are the same in all of them."""
    values: dict[int | str, list[str]] = {}
    for row, number in zip(rows, numbers, strict=True):
        values.setdefault(number, []).append(str((row or {}).get(key)))
    differ = all(len({*column}) == len(column) for column in values.values())
    return differ and len({*chain(*values.values())}) == max(map(len, values.values()))


def _head(line: bytes) -> dict[str, Any] | None:
    """Ids, document, and digests of texts that are compared; None for an object with a fault."""
    try:
        try:
            raw = {key: bytes(value) for key, value in _OBJECT.decode(line).items()}
        except (msgspec.MsgspecError, RecursionError):
            raw = {key: json.dumps(value).encode() for key, value in read_object(line).items()}
        row: dict[str, Any] = {}
        answer = not raw.keys().isdisjoint(_ANSWER)
        several = any(key in CANDIDATES and raw[key].startswith(b"[") for key in raw)
        for key, value in raw.items():
            kind = _kind(key)
            if kind == "id":
                if not (answer and key == "id"):
                    row[key] = json.loads(value)
            elif kind == "document":
                content = json.loads(value)
                row[key] = content if content is None else str(content)
            elif kind == "text":
                row[key] = hash(str(json.loads(value)))
            elif value.startswith(b"{"):
                inner = [(n, bytes(v)) for n, v in _OBJECT.decode(value).items()] if kind else []
                row |= {f"{key}\0{n}": hash(v) for n, v in inner if _may_be_name(n, v)}
            elif _may_be_name(key, value) or (several and kind and value.startswith(b'"')):
                row[key] = hash(value)
    except (InputError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return row


@lru_cache(maxsize=1000)
def _kind(key: str) -> str:
    """What may be at a key; empty for what may differ in objects of one sentence."""
    if key in DOCUMENT:
        return "document"
    if key in (*SOURCE, *REFERENCE):
        return "text"
    if key in IDS or _OTHER_IDS.search(key):
        return "id"
    if key in (*TEXT, *ENVELOPES) or _OF_RUN.search(key):
        return ""
    return "like a document" if _LIKE_DOCUMENT.search(key) else "other"


def _may_be_name(key: str, value: bytes) -> bool:
    """Whether a JSON value seems to be the name, or the number, of a document."""
    scalar = value.startswith(b'"') or value.isdigit()
    return scalar and _kind(key) in ("document", "like a document")


def _document(row: Mapping[str, Any]) -> Any:
    """The document of an object; None if it has none."""
    return row.get(first_key(row, DOCUMENT) or "")


class _Id(NamedTuple):
    """An id: its document, its text, and the number at its end with what is before; None for none.

    A number that is no text has no prefix at all, which is None.
    """

    document: Any
    text: str
    prefix: str | None
    number: int | None


def _id(row: Mapping[str, Any], key: str) -> _Id | str:
    """The id of a row at a key, or what is wrong with it."""
    value = row.get(key)
    if key not in row and type(row.get("id")) is int:  # as a sentence without candidates has
        value = row["id"]
    if isinstance(value, float) and value.is_integer():  # as pandas writes them
        value = int(value)
    if type(value) is int and 0 <= value <= MAX_ID:
        return _Id(_document(row), str(value), None, value)
    if isinstance(value, str):
        match = _NUMBERED.fullmatch(value)
        prefix, number = (match[1], int(match[2])) if match else (None, None)
        return _Id(_document(row), value, prefix, number)
    if value is None and key not in row:
        return f"expected an id at {key!r} as other objects have, found none; add it"
    return f"expected a number from 0 below 2^31 at {key!r}, found {value!r:.60}"


def _numbers(
    rows: Sequence[Mapping[str, Any] | None], key: str | None
) -> tuple[list[int | str], list[tuple[Any, range]], bool]:
    """The sentence of each row by its id at a key, documents that count anew, whether by name."""
    sentences: list[int | str] = [
        "expected a JSON object" if row is None else n for n, row in enumerate(rows)
    ]
    if key is None:
        return sentences, [], False
    read = {n: _id(row, key) for n, row in enumerate(rows) if row is not None}
    for n, fault in read.items():
        if isinstance(fault, str):
            sentences[n] = fault
    ids = {n: entry for n, entry in read.items() if isinstance(entry, _Id)}
    several = any(entry.prefix for entry in ids.values())
    groups: dict[tuple[Any, str], dict[int, int]] = {}  # document and prefix: numbers by row
    for n, entry in ids.items():
        if entry.prefix is None and several and entry.number is not None:
            sentences[n] = entry.number  # beside texts, numbers count through the file
        elif entry.number is not None:
            groups.setdefault((entry.document, entry.prefix or ""), {})[n] = entry.number
    names = {pair: n for n, pair in enumerate(dict.fromkeys(entry[:2] for entry in ids.values()))}
    one_each = len(groups) == len({document for document, _ in groups})
    if any(entry.number is None for entry in ids.values()) or not (
        one_each or 2 * len(groups) <= len(names)
    ):
        for n, entry in ids.items():
            sentences[n] = names[entry[:2]]
        return sentences, [], True
    sizes = [{*group.values()} for group in groups.values()]
    documents, starts = list[tuple[Any, range]](), [0] * len(groups)
    if sum(map(len, sizes)) > len(set().union(*sizes)):
        base = min(map(min, sizes))
        ends = list(accumulate((max(group) - base + 1 for group in sizes), initial=0))
        spans = (range(*span) for span in pairwise(ends))
        documents = [(name, span) for (name, _), span in zip(groups, spans, strict=True)]
        starts = [start - base for start in ends[:-1]]
    for start, group in zip(starts, groups.values(), strict=True):
        for n, number in group.items():
            sentences[n] = start + number
            if start + number > MAX_ID:
                sentences[n] = f"expected a number from 0 below 2^31 at {key!r}, found {number}"
    return sentences, documents, False


def _order(numbers: Sequence[int | str], *, exact: bool) -> list[int]:
    """Sentences of rows as ranks; exact: as differences to the lowest one."""
    known = [n for n in numbers if isinstance(n, int)]
    if exact:
        return [n - min(known) for n in known]
    ranks = {n: rank for rank, n in enumerate(sorted(set(known)))}
    return [ranks[n] for n in known]


def _compared(
    rows: Sequence[Mapping[str, Any] | None], numbers: Sequence[int | str], key: str | None
) -> list[int | str]:
    """The numbers, or what is wrong with rows that differ from the first one of their id."""
    compared = list(numbers)
    first: dict[int | str, int] = {}
    for n, (row, number) in enumerate(zip(rows, numbers, strict=True)):
        before = first.setdefault(number, n)
        earlier = rows[before]
        if row is None or earlier is None or before == n or isinstance(number, str):
            continue
        differing = {
            what
            for what, keys in (("document", DOCUMENT), ("source", SOURCE), ("reference", REFERENCE))
            if len({r.get(first_key(r, keys) or "") for r in (row, earlier)} - {None}) > 1
        }
        differing |= {
            repr(name.replace("\0", "."))
            for name in row.keys() & earlier.keys()
            if row[name] != earlier[name] and _tells_sentences(name, row[name])
        }
        if differing:
            compared[n] = (
                f"expected one {max(differing)} for each id, found another one than object "
                f"{before + 1} of the file has, with the same {key!r}; number the sentences anew, "
                "with the names of documents at the key document, or, if each object is a "
                "sentence, remove the ids"
            )
    return compared


def _tells_sentences(name: str, value: object) -> bool:
    """Whether objects of one sentence have one value at a key that is not read."""
    if _kind(name) == "id":
        is_text = name in _OR_TEXTS and isinstance(value, str) and " " in value
        return is_text or "\0" in name or _LIKE_DOCUMENT.search(name) is not None
    return _kind(name) not in ("document", "text")


# Samples


def are_samples(ids: Sequence[tuple[Any, str]], texts: Sequence[bytes | None]) -> bool:
    """Whether a part of the ids names samples of a sentence.

    ids: documents and ids of objects; texts: the first of each, None for none. Samples are alike,
    sentences of a document are not: mean Jaccard similarity of the trigrams of neighbours.
    """
    for pattern in _SAMPLES:
        groups: dict[tuple[Any, str], list[bytes]] = {}
        for (document, entry), text in zip(ids, texts, strict=True):
            rest = re.sub(pattern, "", entry)
            if rest == entry or not rest[-1:].isdigit():
                break
            if text is not None:
                groups.setdefault((document, rest), []).append(text)
        else:
            within = [pair for group in groups.values() for pair in pairwise(group)]
            between = [*pairwise(group[0] for group in groups.values())]
            alike = _likeness(within[:_MOST_PAIRS])
            if alike > _ALIKE and alike > 2 * _likeness(between[:_MOST_PAIRS]):
                return True
    return False


def _likeness(pairs: Sequence[tuple[bytes, bytes]]) -> float:
    """Mean share of trigrams, of all in a pair of texts, that both have; 0 for no pairs."""
    shares = []
    for pair in pairs:
        a, b = ({text[i : i + 3] for i in range(max(len(text) - 2, 1))} for text in pair)
        shares.append(len(a & b) / len(a | b))
    return sum(shares) / max(len(shares), 1)
