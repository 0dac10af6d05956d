"""JSON lines: a sentence a line with its candidates, as scripts around language models write them.

    {"document": "d1", "source": "…", "candidates": [{"text": "a text", "score": -1.5,
     "features": {"logprob": -6.5, "TM0": [-1, -2]}, "sparse": {"tag_np": 1}}]}

`id` is the number of the sentence (by default that of the object in the file); candidates may be
plain texts with their numbers in a list `scores` beside. Other usual keys are read, too: see the
tables of `rerank.formats.jsonl_reader`. `score` is the total; of candidates without `features` it
is their only feature. `document` and `source` stand in place of --docs and --source.

What is written has all keys of the sentence, and of its candidates, that came with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest, KBestRows
from rerank.errors import InputError
from rerank.formats.hypotheses import Hypotheses
from rerank.formats.json_objects import first_key, first_object, read_object, read_objects
from rerank.formats.jsonl_reader import CANDIDATES, SOURCE_KEYS, Reader, id_of, written
from rerank.formats.moses import chunks
from rerank.formats.sockeye import DOCUMENT_KEYS, carried
from rerank.notices import Notices

_EMPTY = re.compile(rb"\[[ \t]*\]")
_BESIDE = {"document": DOCUMENT_KEYS, "source": SOURCE_KEYS}  # what is written of `side`


class JsonLines:
    """The format of JSON lines with candidates."""

    name = "jsonl"
    description = "A JSON object per sentence, with its candidates; as of Hugging Face and vLLM."
    suffixes = (".jsonl",)
    example = (
        b'{"document": "d", "source": "the source", "candidates": '
        b'[{"text": "the text", "score": -1.5, "features": {"logprob": -6.5}}]}'
    )

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first object has a list of candidates."""
        found = first_object(head)
        return isinstance(found.get(first_key(found, CANDIDATES) or ""), list)

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file, in chunks of about 1 MiB, or one longer line."""
        found = Hypotheses(notices, source, clip)
        reader = Reader(found, notices, source)
        for chunk in chunks(lines):
            yield from reader.rows(chunk)

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence, its document, its source) of each sentence, None where there is none."""
        for place, (line, one) in enumerate(read_objects(lines, notices, source=source)):
            yield (
                id_of(one, place, source, line),
                carried(one, DOCUMENT_KEYS, "the document", notices, source, line),
                carried(one, SOURCE_KEYS, "the source", notices, source, line),
            )

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a sentence whose list of candidates is empty; -1 if there is none."""
        last = place = -1
        for line in lines:
            place += bool(line.strip())
            if _EMPTY.search(line) is None:
                continue
            with suppress(InputError):
                one = read_object(line)
                if one.get(first_key(one, CANDIDATES) or "") == []:
                    last = max(last, id_of(one, place, "", 0))
        return last

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        """A line for each sentence, also one without candidates.

        Documents and sources are those of `side`, unless the file has the same in another key.
        """
        totals = kbest.totals if totals is None else totals
        for t in range(len(kbest)):
            head: dict[str, Any] = {}
            candidates = []
            for row in kbest.rows(t):
                of_sentence, others = kept_keys(kbest, row)
                head = of_sentence | head
                features = _features(kbest, row) | dict(
                    zip(names, values[row].tolist(), strict=True)
                )
                one: dict[str, Any] = {"text": kbest.texts[row].decode()}
                if totals is not None:
                    one["score"] = float(totals[row])
                one["features"] = features
                if sparse := kbest.sparse.row(row):
                    one["sparse"] = sparse
                candidates.append(one | others)
            sentence = {"id": first_id + kbest.first + t} | _with_side(head, kbest, t)
            sentence["candidates"] = candidates
            yield written(sentence)


def _with_side(head: Mapping[str, Any], kbest: KBest, t: int) -> dict[str, Any]:
    """Keys of a sentence in the file, with its document and source of `side`."""
    found = dict(head)
    for kind, keys in _BESIDE.items():
        if kind in kbest.side:
            text = kbest.side[kind][t].decode()
            if all(str(head.get(key)) != text for key in keys):
                found[kind] = text
    return found


def lines_with_keys(texts: Sequence[bytes], others: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Lines (n,) of candidates with these texts and other keys, as `KBest.lines` has them."""
    return [
        text + written([{}, keys]) if keys else text
        for text, keys in zip(texts, others, strict=True)
    ]


def kept_keys(kbest: KBest, row: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Other keys of a candidate's sentence, and of the candidate, as the file has them."""
    if kbest.lines is None:
        return {}, {}
    kept = kbest.lines[row][len(kbest.texts[row]) :]
    if not kept.startswith(b"["):
        return {}, {}
    head, others = json.loads(kept)
    return head, others


def _features(kbest: KBest, row: int) -> dict[str, Any]:
    """Dense features of a candidate by label."""
    values = iter(kbest.dense[row].tolist())
    found: dict[str, Any] = {}
    for label in kbest.labels:
        numbers = [next(values) for _ in range(label.width)]
        found[label.name] = numbers if label.width > 1 else numbers[0]
    return found
