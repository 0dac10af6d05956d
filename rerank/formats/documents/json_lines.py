"""JSON lines with a key that says which document a sentence belongs to.

    {"document": "talk-1", "source": "…", "reference": "the lamp is lit ."}

The key is `document`, `doc_id`, `docid`, `doc` or `document_id`, or the one that is chosen. Of the
texts, `source` (`src`) and `reference` (`ref`) or `references` (`refs`), a list, are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rerank.corpus.documents import Documents, EvaluationSet, Lines, Role, at_most
from rerank.errors import InputError
from rerank.formats.documents.table import ReadingChoices, bounded
from rerank.formats.tokens import shown, similar
from rerank.notices import Notices

_KEYS = ("document", "doc_id", "docid", "doc", "document_id")
_SINGLE: dict[str, Role] = {
    "source": "source",
    "src": "source",
    "reference": "reference",
    "ref": "reference",
}
_LISTS = ("references", "refs")


class JsonLines:
    """JSON lines with a document key."""

    name = "jsonl"
    description = "A JSON object per sentence with the key document; --docs-field for another key."
    example = b'{"document": "d1", "reference": "the lamp is lit ."}\n'
    has_texts = True
    takes_field = True

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line is a JSON object with one of the keys."""
        first = next(line for line in head if line.strip())
        try:
            found = json.loads(first) if first.lstrip().startswith(b"{") else {}
            return any(key in found for key in _KEYS)
        except (ValueError, RecursionError):
            return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents and texts; InputError for what is no object, or lacks the key."""
        limited = bounded(lines, source)
        if choices.most is not None:
            limited = at_most(limited, choices.most, source)
        ids = list[bytes]()
        texts: dict[tuple[Role, str], dict[int, bytes]] = {}
        for n, line in enumerate(limited, 1):
            try:
                found = _object(line)
                ids.append(_id(found, choices.field))
                for key, text in _texts(found):
                    texts.setdefault(key, {})[n - 1] = text
            except InputError as fault:
                raise InputError(str(fault), source=source, line=n) from None
        documents = Documents.from_lines(ids, source=source, interleaved=choices.interleaved)
        places = documents.lines or range(len(ids))
        ordered: dict[Role, dict[str, Lines]] = {}
        for (role, name), column in texts.items():
            ordered.setdefault(role, {})[name] = [column.get(place) for place in places]
        return EvaluationSet(source, documents, ordered)


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(
            f"expected a JSON object with the key 'document', found {shown(line)}; write one per "
            "sentence"
        )
    return found


def _id(found: dict[str, Any], field: str | None) -> bytes:
    """The document id of an object."""
    keys = _KEYS if field is None else (field,)
    key = next((key for key in keys if key in found), None)
    if key is None:
        raise InputError(
            f"expected the key {keys[0]!r}, found none; {similar(keys[0], found)}; choose it with "
            "--docs-field"
        )
    value = found[key]
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(
            f"expected a text or whole number as {key!r}, found {type(value).__name__}"
        )
    return _encoded(str(value), key)


def _texts(found: dict[str, Any]) -> list[tuple[tuple[Role, str], bytes]]:
    """Role, name and text of those of an object."""
    texts: list[tuple[tuple[Role, str], bytes]] = []
    for key, role in _SINGLE.items():
        if isinstance(found.get(key), str):
            texts.append(((role, ""), _encoded(found[key], key)))
    for key in _LISTS:
        if isinstance(found.get(key), list):
            for n, text in enumerate(found[key], 1):
                if not isinstance(text, str):
                    raise InputError(f"expected texts in {key!r}, found {type(text).__name__}")
                texts.append((("reference", str(n)), _encoded(text, key)))
    return texts


def _encoded(text: str, key: str) -> bytes:
    """UTF-8 of a text of one line."""
    if "\n" in text or "\0" in text:
        raise InputError(f"expected one line as {key!r}, found a line end or NUL; remove it")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InputError(f"found half a surrogate pair in {key!r}; write whole ones") from None
