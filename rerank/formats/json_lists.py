"""K-best lists in JSON lines, of scripts and servers: a sentence a line with its candidates.

    {"document": "d1", "source": "…", "candidates": [{"text": "a text", "score": -1.5,
     "features": {"logprob": -6.5, "TM0": [-1, -2]}, "sparse": {"tag_np": 1}}]}

`id` is the number of the sentence (`rerank.formats.json_ids`); candidates may be plain texts with
their numbers in a list `scores` beside, or answers of servers (`rerank.formats.json_candidates`).
`score` is the total; of candidates without `features` it is their only feature. `document` and
`source` stand in place of --docs and --source. What is written has all keys of the sentence, and of
its candidates, that came with them, but for an `id` that is a number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, RerankError
from rerank.files.encoding import LARGEST
from rerank.formats.json_candidates import (
    CANDIDATES,
    DOCUMENT,
    SCORE,
    SCORES,
    SOURCE,
    TEXT,
    Unread,
    is_list,
    is_truncated,
    plain_number,
    taken_candidates,
    text_and_score,
)
from rerank.formats.json_ids import SentenceIds, are_samples, sentence_ids
from rerank.formats.row_builder import CollectedFormat, RowBuilder, by_sentence
from rerank.formats.tokens import (
    Place,
    counts,
    first_key,
    first_object,
    has_all,
    plain_name,
    read_object,
    text_of,
)
from rerank.notices import Notices

_SIDE = {"document": DOCUMENT, "source": SOURCE}  # what is written of `KBest.side`
_NUMBER = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_PIPELINE = re.compile(rb'\s*\[\s*\{\s*"(?:generated_text|translation_text|summary_text)"')
_COMPARED = 2000  # objects whose texts are compared
_OF_BATCH = ("response", "result", "modelOutput")  # keys of a server's answer

Sentence: TypeAlias = tuple[int, bytes | None, bytes | None]
"""The id of a sentence, its document and its source; None where there is none."""


class JsonLines(CollectedFormat):
    """The format of JSON lines with candidates."""

    name = "jsonl"
    description = "A JSON object per sentence, with its candidates; as of Hugging Face and vLLM."
    suffixes = (".jsonl",)
    sampled = True
    example = (
        b'{"document": "d", "source": "the source", "candidates": '
        b'[{"text": "the text", "score": -1.5, "features": {"logprob": -6.5}}]}'
    )

    def __init__(self, ids: SentenceIds | None = None) -> None:
        self._ids = ids or sentence_ids(())

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether one of the objects has candidates; the first ones may be of requests that failed.

        Plain lines and objects on several lines are none.
        """
        objects = (first_object([line]) for line in _objects(head) if line.strip())
        first = next(objects)
        return bool(first) and any(map(is_list, filter(None, chain([first], objects))))

    def prepared(self, lines: Iterable[bytes], *, source: str) -> JsonLines:
        """The format with the sentence of each object of the file."""
        return JsonLines(sentence_ids(_objects(lines)))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file; by sentence, where its ids fall."""
        if self._ids.apart:
            notices.add("scattered-id", source=source, count=self._ids.apart)
        if self._ids.mixed:
            notices.add("scattered-document", source=source)
        chunks = super().read(lines, notices, source=source, clip=clip)
        return chunks if self._ids.rising else by_sentence(chunks, notices, source)

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the candidates of one line after the other."""
        layout: _Layout | None = None
        unread, ids = Unread(builder), self._ids
        texts = list[bytes | None]()  # of the first objects
        for place, line in enumerate(builder.filled(_objects(lines))):
            before = len(builder)
            try:
                if layout is None or not layout.add(builder, line, ids.numbers[place], unread):
                    sentence = read_object(line, builder)
                    layout = self._add(builder, sentence, place, unread)
            except InputError as fault:
                builder.refuse(fault)
            if place < min(len(ids.texts), _COMPARED):
                texts.append(builder.latest if len(builder) > before else None)
            yield
        unread.warn()
        if ids.unread:
            builder.note("further-id", line=1, names=ids.unread)
        if ids.key and are_samples(ids.texts[: len(texts)], texts):
            builder.note("sample-in-id", line=1, names=[ids.key])

    def _add(
        self, builder: RowBuilder, sentence: dict[str, Any], place: int, unread: Unread
    ) -> _Layout | None:
        """Add the candidates of the object at a place of the file one by one.

        The layout of the first candidate, if it has any.
        """
        number = _checked(self._ids, place, builder)
        if sentence.get("done") is False or str(sentence.get("object")).endswith(".chunk"):
            raise builder.fault(
                'expected whole answers, found a piece of a streamed one; ask with "stream": false'
            )
        truncated = is_truncated(sentence)
        taken = taken_candidates(sentence)
        if taken is None:
            key = first_key(sentence, CANDIDATES)
            raise builder.fault(
                f"expected a list at 'candidates', found {sentence[key]!r:.60}"
                if key
                else f"expected a key 'candidates', found {', '.join(sentence) or 'none':.60}"
            )
        candidates = taken.candidates
        scores = _scores_of(builder, sentence, candidates)
        _without_number(sentence)
        head = sentence
        keys = tuple(candidates[0]) if candidates and isinstance(candidates[0], dict) else ()
        for candidate, score in zip(candidates, scores or repeat(None), strict=False):
            cut = truncated and len(candidates) == 1
            _add_candidate(builder, number, candidate, score, head, unread, truncated=cut)
            head = {}
        unread.note_sentence(sentence, len(candidates), builder.names or ())
        in_batch = not {*taken.within[:1]}.isdisjoint(_OF_BATCH)
        if taken.of == "nothing":
            builder.note("failed-answer")
        elif taken.of == "object" and self._ids.key is None:
            builder.note("candidate-as-sentence")
        elif in_batch and (self._ids.key is None or self._ids.named):
            builder.note("unsorted-batch")
        return None if scores else _layout(keys, builder.names or ())

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[Sentence]:
        """(sentence, its document, its source) of each sentence, None where there is none."""
        place, ids = Place(source, notices), self._ids
        for n, line in enumerate(place.filled(_objects(lines))):
            try:
                sentence = read_object(line, place)
                number = _checked(ids, n, place)
            except InputError as fault:
                place.refuse(fault)
                continue
            yield number, *side_of(sentence, SOURCE, place)
        numbers = {*ids.numbers}
        for name, span in ids.documents:
            for number in span:
                if number not in numbers and name is not None:
                    yield number, str(name).encode(), None

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a sentence; -1 if there is none."""
        return self._ids.last

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
                candidate: dict[str, Any] = {"text": kbest.texts[row].decode()}
                if totals is not None:
                    candidate["score"] = float(totals[row])
                numbers = iter(kbest.dense[row].tolist())
                blocks = ((label.name, [*islice(numbers, label.width)]) for label in kbest.labels)
                features = {name: block if block[1:] else block[0] for name, block in blocks}
                features |= zip(names, values[row].tolist(), strict=True)
                candidate["features"] = features
                if sparse := kbest.sparse.row(row):
                    candidate["sparse"] = sparse
                candidates.append(candidate | others)
            for kind, keys in _SIDE.items():
                text = kbest.side[kind][t].decode() if kind in kbest.side else None
                if text is not None and all(str(head.get(key)) != text for key in keys):
                    head = {**head, kind: text}
            yield _written({"id": first_id + kbest.first + t, **head, "candidates": candidates})


def _objects(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of objects; the arrays of candidates that pipelines of Hugging Face give as such."""
    for line in lines:
        yield b'{"candidates": %s}' % line.strip() if _PIPELINE.match(line) else line


def lines_with_keys(texts: Sequence[bytes], others: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Lines (n,) of candidates with these texts and other keys, as `KBest.lines` has them."""
    return [
        text + _written([{}, keys]) if keys else text
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


@dataclass(frozen=True, slots=True)
class _Layout:
    """Keys that all candidates of a sentence have: of a text, the total, and the same features.

    features: getters of the values of each; None for candidates without `features`, whose only one
    is the total; keys: number of those of a candidate and of its features; candidates: type of the
    list of candidates, as msgspec has it.
    """

    features: Sequence[Callable[[Any], Any]] | None
    with_total: bool
    keys: int
    candidates: Any

    def add(self, builder: RowBuilder, line: bytes, sentence: int | str, unread: Unread) -> bool:
        """Add the candidates of a line at once; False, with none added, if it has another layout.

        A line with a fault has none.
        """
        if isinstance(sentence, str):
            return False
        with suppress(LookupError, TypeError, ValueError, RecursionError):
            head = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            key = first_key(head, CANDIDATES)
            candidates = msgspec.json.decode(head.pop(key or ""), type=self.candidates)
            head = {name: msgspec.json.decode(value) for name, value in head.items()}
            texts = [candidate.text for candidate in candidates]
            (strings, keys), n, text = counts(head), len(texts), "".join(texts)
            totals = [c.total for c in candidates] if self.with_total else [None] * n
            columns = [totals] if self.with_total else []
            if self.features is not None:
                owners = [c.features for c in candidates]
                columns = [list(map(getter, owners)) for getter in self.features]
            blocks = (zip(*c, strict=True) if isinstance(c[0], list) else [c] for c in columns)
            dense = np.array(list(chain.from_iterable(blocks)), np.float64).reshape(-1, n).T
            if (
                n
                and (columns or not first_key(head, SCORES))
                and dense.shape == (n, len(builder.names or ()))
                and not ("\n" in text or "\t" in text or "\0" in text)
                and has_all(line, strings + 1 + n * (self.keys + 1), keys + 1 + n * self.keys)
            ):
                _without_number(head)
                unread.note_sentence(head, n, builder.names or ())
                encoded = [text.encode().strip(b" \t") for text in texts]
                kept = _written([head, {}]) if head else b""
                builder.extend(sentence, encoded, dense, totals, kept)
                return True
        return False


@lru_cache(maxsize=4)
def _layout(keys: tuple[str, ...], names: tuple[str, ...]) -> _Layout | None:
    """The layout of candidates with these keys and names of values; None with any other key."""
    text, total, with_features = first_key(keys, TEXT), first_key(keys, SCORE), "features" in keys
    if text is None or len(keys) != 1 + (total is not None) + with_features:
        return None
    fields: dict[str, Any] = {"text": str} | ({} if total is None else {"total": _NUMBER})
    fields |= {"features": dict[str, _NUMBER | list[_NUMBER]]} if with_features else {}
    candidate: Any = msgspec.defstruct(
        "Candidate",
        [*fields.items()],
        rename={"text": text, "total": total or ""},
        forbid_unknown_fields=True,
        gc=False,
    )
    getters = [itemgetter(name) for name in dict.fromkeys(names)] if with_features else None
    n_keys = len(fields) + len(getters or ())
    return _Layout(getters, total is not None, n_keys, list[candidate])


def _without_number(head: dict[str, Any]) -> None:
    """Remove the id of a sentence that is a number, since its number is written in its place."""
    if type(head.get("id")) is int:
        del head["id"]


def _scores_of(
    builder: RowBuilder, sentence: dict[str, Any], candidates: Sequence[object]
) -> list[Any]:
    """The numbers of candidates that are beside them; none if they have their own."""
    first = candidates[0] if candidates else None
    inside = isinstance(first, dict) and first_key(first, (*SCORE, "features"))
    key = next((k for k in (*SCORES, *SCORE) if isinstance(sentence.get(k), list | dict)), None)
    if first is None or inside or key is None:
        return []
    scores = sentence.pop(key)
    lists = [*scores.values()] if isinstance(scores, dict) else [scores]
    if not all(isinstance(column, list) and len(column) == len(candidates) for column in lists):
        raise builder.fault(
            f"expected a list of {len(candidates)} numbers at {key!r}, found {scores!r:.60}"
        )
    if isinstance(scores, dict):
        return [dict(zip(scores, row, strict=True)) for row in zip(*lists, strict=True)]
    return list(scores)


def _add_candidate(
    builder: RowBuilder,
    sentence: int,
    candidate: Any,
    score: Any,
    head: Mapping[str, Any],
    unread: Unread,
    *,
    truncated: bool,
) -> None:
    """Add a candidate; score: the number that stands beside it, if one does."""
    others: dict[str, Any] = candidate if isinstance(candidate, dict) else {}
    truncated = truncated or is_truncated(others)
    text, score = text_and_score(candidate, score, builder)
    features, sparse = others.pop("features", None), others.pop("sparse", None)
    for name, value in (("features", features), ("sparse", sparse)):
        if value is not None and not isinstance(value, dict):
            raise builder.fault(f"expected an object at {name!r}, found {value!r:.60}")
    score = plain_number(score)
    if isinstance(score, float) and math.isnan(score):
        raise builder.fault(
            "expected a log-probability of every token, found null or −9999 for one; a number that "
            "is missing is not 0: ask for this candidate again, or leave `logprobs` out of all"
        )
    if features is None:
        features = {} if score is None else {"score": score}
    if isinstance(score, list | dict):
        features, score = score if isinstance(score, dict) else {"score": score}, None
    unread.note_candidate(others, features)
    try:
        kept = _written([head, others]) if head or others else b""
    except RerankError:  # numbers of JSON that was read are finite
        raise builder.fault(
            "expected text in every key and value, found half a surrogate pair; correct it"
        ) from None
    encoded = text_of(text, "a candidate", builder)
    values = _values(builder, features)
    total = None if score is None else builder.finite(score, "the total")
    builder.add(
        sentence,
        encoded,
        builder.names or (),
        values,
        total=total,
        sparse={name: builder.finite(value, name) for name, value in (sparse or {}).items()},
        kept=kept,
        truncated=truncated,
    )


def _values(builder: RowBuilder, features: Mapping[str, Any]) -> list[float]:
    """The numbers of a candidate's features, in the order of the first candidate."""
    names, values = list[str](), list[Any]()
    for name, value in features.items():
        numbers = list(map(plain_number, value if isinstance(value, list) else [value]))
        names += [name] * len(numbers)
        values += numbers
    ordered = zip(builder.in_order(tuple(names), values), builder.names or (), strict=True)
    return [builder.finite(value, plain_name(name)) for value, name in ordered]


def _checked(ids: SentenceIds, n: int, place: Place) -> int:
    """The sentence of object n; InputError if it has none."""
    number = ids.numbers[n]
    if isinstance(number, str):
        raise place.fault(number)
    return number


def side_of(
    sentence: Mapping[str, Any], sources: Sequence[str], place: Place
) -> tuple[bytes | None, bytes | None]:
    """The document of a sentence, and its source at the first of some keys; None for neither."""

    def text_at(keys: Sequence[str], what: str) -> bytes | None:
        key = first_key(sentence, keys)
        if key is None or sentence[key] == []:  # an answer may leave out its prompt
            return None
        value = sentence[key]
        return text_of(str(value) if type(value) is int else value, what, place)

    return text_at(DOCUMENT, "the document"), text_at(sources, "the source")


def _written(content: object) -> bytes:
    """JSON on one line; RerankError for NaN and infinity."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as fault:
        raise RerankError(f"expected finite numbers and text to write as JSON: {fault}") from None
