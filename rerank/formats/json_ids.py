"""Which sentence each object of JSON lines is of: by its id within its document.

An id is a number, or a text that ends in one, as `seg-7`: sentence 7 of its document, so that a
number that is left out leaves a gap. Where documents count anew, those after the first begin after
the last number of the one before. Other texts are names, in the order of the file; objects without
any id are, too. Objects of one id are of one sentence, unless they differ in source or reference.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Any, TypeAlias

import msgspec

from rerank.corpus.kbest import MAX_ID
from rerank.errors import InputError
from rerank.formats.json_objects import first_key, read_object

IDS = (
    *("custom_id", "id", "sentence_id", "sent_id", "segment_id", "seg_id", "segid", "utt_id"),
    *("index", "idx", "recordId", "key"),
)
DOCUMENT = ("document", "document_id", "doc_id", "docid", "doc", "doc_name", "talk_id", "talkid")
SOURCE = ("source", "src", "prompt", "input", "source_text")
REFERENCE = ("ref", "reference", "references", "refs", "target", "tgt", "gold")
_OTHER_IDS = re.compile(
    r"(?i)(?:^|_)(?:id|idx|index|no|nr|number|key|line|seg|segment)$|[a-z]I[Dd]$"
)
_NUMBERED = re.compile(r"(|.*[^0-9])([0-9]{1,9})", re.DOTALL)
_LIKE_DOCUMENT = re.compile(
    r"(?i)doc|talk|file|chapter|article|story|book|dialog|conversation|episode|page|url|title|lang"
)
_OF_RUN = re.compile(
    r"(?i)time|date|created|model|status|reason|system|run|decoder"
)  # as it may be
_ANSWER = ("object", "choices", "usage", "custom_id")  # of a server's answer: its `id` is its own

Group: TypeAlias = tuple[Any, str]
"""Document of an id, and the text before its number."""


@dataclass(frozen=True, slots=True)
class SentenceIds:
    """The sentence of each object of a file, from 0, or what is wrong with its id.

    key: where the ids are; None if there are none. unread: further keys that seem to be ids of
    other sentences. differing: keys, not read, of texts that objects of one sentence do not share.
    documents: name and numbers of each document whose ids count anew. named: whether ids are names.
    """

    numbers: Sequence[int | str]
    key: str | None
    unread: Sequence[str]
    differing: Sequence[str]
    documents: Sequence[tuple[Any, range]]
    named: bool

    @property
    def last(self) -> int:
        """The highest number of a sentence; -1 if there is none."""
        return max((n for n in self.numbers if isinstance(n, int)), default=-1)

    @property
    def rising(self) -> bool:
        """Whether no object comes after one of a later sentence."""
        known = [n for n in self.numbers if isinstance(n, int)]
        return all(a <= b for a, b in pairwise(known))

    @property
    def mixed(self) -> bool:
        """Whether objects of a document stand behind those of another one."""
        starts = [own.start for _, own in self.documents]
        owners = (bisect_right(starts, n) for n in self.numbers if isinstance(n, int) and starts)
        return sum(1 for _ in groupby(owners)) > len(starts)

    @property
    def apart(self) -> int:
        """How often an object is not beside the earlier ones of its sentence."""
        known = [n for n in self.numbers if isinstance(n, int)]
        runs = [n for n, before in zip(known, [-1, *known], strict=False) if n != before]
        return len(runs) - len({*runs})


def sentence_ids(lines: Iterable[bytes]) -> SentenceIds:
    """The ids of the objects on the lines that are not blank. O(bytes), an object at a time."""
    rows = [_head(line) for line in lines if line.strip()]
    present = [row for row in rows if row is not None]
    key = next((key for key in IDS if present and all(key in row for row in present)), None)
    key = key or next((key for key in IDS if any(key in row for row in present)), None)
    numbers, documents, named = _numbers(rows, key)
    own = _order(numbers, exact=key is None)
    others = dict.fromkeys(key for row in present for key in row if _OTHER_IDS.search(key))
    unread = [
        other
        for other in others
        if other not in (key, *DOCUMENT)
        and len({str(row.get(other)) for row in present}) > 1
        and _order(_numbers(rows, other)[0], exact=key is None) != own
    ]
    checked, differing = _compared(rows, numbers, key)
    return SentenceIds(checked, key, unread, differing, documents, named)


def _head(line: bytes) -> dict[str, Any] | None:
    """Ids, document, source and references of an object; None for a line with a fault."""
    decode: Callable[[Any], Any] = msgspec.json.decode
    try:
        found: Mapping[str, Any] = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
        try:
            found, decode = read_object(line), _as_it_is
        except InputError:
            return None
    answer = any(key in found for key in _ANSWER)
    read = {*DOCUMENT, *SOURCE, *REFERENCE, *IDS} - ({"id"} if answer else set())
    beside = {*SOURCE, *REFERENCE}
    row: dict[str, Any] = {}
    several = any(_begins(value, "[") for value in found.values())
    try:
        for key, value in found.items():
            if key in read or (key != "id" and _OTHER_IDS.search(key)):
                content = decode(value)
                if key in beside:
                    content = hash(str(content))
                elif key in DOCUMENT and content is not None:
                    content = str(content)
                row[key] = content
            elif (
                key != "id"
                and _begins(value, '"')
                and (_LIKE_DOCUMENT.search(key) or (several and not _OF_RUN.search(key)))
            ):
                row[key] = hash(str(decode(value)))
    except (msgspec.MsgspecError, RecursionError):
        return None
    return row


def _begins(value: Any, mark: str) -> bool:
    """Whether a JSON value, which may be read already, is a list or a text, as its mark says."""
    if isinstance(value, msgspec.Raw):
        return memoryview(value)[:1] == mark.encode()
    return isinstance(value, list if mark == "[" else str)


def _as_it_is(value: Any) -> Any:
    return value


def _numbers(
    rows: Sequence[Mapping[str, Any] | None], key: str | None
) -> tuple[list[int | str], list[tuple[Any, range]], bool]:
    """The sentence of each row by its id at a key, documents that count anew, whether by name."""
    found: list[int | str] = [
        "expected a JSON object" if row is None else n for n, row in enumerate(rows)
    ]
    if key is None:
        return found, [], False
    ids: dict[int, tuple[Group, int]] = {}  # by row
    names: dict[tuple[Any, str], int] = {}  # of all texts, in the order of the file
    named = dict[int, int]()
    whole = set[int]()  # rows whose id is a number
    for n, row in enumerate(rows):
        if row is None:
            continue
        value = row.get(key)
        if key not in row and type(row.get("id")) is int:  # as a sentence without candidates has
            value = row["id"]
        number: Sequence[Any] | None = None
        if isinstance(value, float) and value.is_integer():  # as pandas writes them
            value = int(value)
        if isinstance(value, str):
            text = _NUMBERED.fullmatch(value)
            number = text and text.groups()
        elif type(value) is int and 0 <= value <= MAX_ID:
            number = "", value
            whole.add(n)
        else:
            found[n] = f"expected a number from 0 below 2^31 at {key!r}, found {value!r:.60}"
            if value is None and key not in row:
                found[n] = f"expected an id at {key!r} as other objects have, found none; add it"
            continue
        document = row.get(first_key(row, DOCUMENT) or "")
        named[n] = names.setdefault((document, str(value)), len(names))
        if number is not None:
            ids[n] = (document, number[0]), int(number[1])
    numeric = len(ids) == len(named)
    if any(prefix for (_, prefix), _ in ids.values()):
        for n in whole:  # beside texts, numbers count through the file
            found[n] = ids.pop(n)[1]
    groups: dict[Group, list[int]] = {}
    for group, value in ids.values():
        groups.setdefault(group, []).append(value)
    one_each = len(groups) == len({document for document, _ in groups})
    if not numeric or not (one_each or 2 * len(groups) <= len(names)):
        return [named.get(n, one) for n, one in enumerate(found)], [], True
    starts, documents = dict.fromkeys(groups, 0), list[tuple[Any, range]]()
    if sum(len(set(own)) for own in groups.values()) > len({n for _, n in ids.values()}):
        base = min(n for _, n in ids.values())
        ends = list(accumulate((max(own) - base + 1 for own in groups.values()), initial=0))
        starts = {group: start - base for group, start in zip(groups, ends, strict=False)}
        documents = [
            (document, range(*span))
            for (document, _), span in zip(groups, pairwise(ends), strict=True)
        ]
    for n, (group, value) in ids.items():
        found[n] = starts[group] + value
        if starts[group] + value > MAX_ID:
            found[n] = f"expected a number from 0 below 2^31 at {key!r}, found {value}"
    return found, documents, False


def _order(numbers: Sequence[int | str], *, exact: bool) -> list[int]:
    """Sentences of rows as ranks; exact: as differences to the lowest one."""
    known = [n for n in numbers if isinstance(n, int)]
    if exact:
        return [n - min(known) for n in known]
    ranks = {n: rank for rank, n in enumerate(sorted(set(known)))}
    return [ranks[n] for n in known]


def _compared(
    rows: Sequence[Mapping[str, Any] | None], numbers: Sequence[int | str], key: str | None
) -> tuple[list[int | str], list[str]]:
    """The numbers, but for rows whose source or reference is not that of the first of their id.

    Also the other keys whose texts differ in rows of one id.
    """
    found = list(numbers)
    differing: dict[str, None] = {}
    first: dict[int | str, int] = {}
    for n, (row, number) in enumerate(zip(rows, numbers, strict=True)):
        before = first.setdefault(number, n)
        other = rows[before]
        if row is None or other is None or before == n or isinstance(number, str):
            continue
        for what, keys in (("source", SOURCE), ("reference", REFERENCE)):
            texts = [one.get(first_key(one, keys) or "") for one in (row, other)]
            if texts[0] != texts[1] and None not in texts:
                found[n] = (
                    f"expected one {what} for each id, found another one than object {before + 1} "
                    f"of the file has, with the same {key!r}; number the sentences anew, or, if "
                    f"each object is a sentence, remove the ids: `jq -c 'del(.{key})' FILE > "
                    "lists.jsonl`"
                )
        read = (*DOCUMENT, *SOURCE, *REFERENCE, *IDS)
        same = (one for one in row if one in other and one not in read)
        differing.update((one, None) for one in same if row[one] != other[one])
    return found, [one for one in differing if not _OTHER_IDS.search(one)]
