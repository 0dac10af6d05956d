"""Reader of JSON lines with candidates: of any form, or compiled where all are of one form."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rerank.corpus.columns import TextColumn
from rerank.corpus.kbest import MAX_ID, KBestRows
from rerank.errors import InputError, RerankError
from rerank.formats.hypotheses import Hypotheses, stripped
from rerank.formats.json_objects import BLANK, first_key, read_object, text_of
from rerank.notices import Notices

if TYPE_CHECKING:
    from rerank.formats.jsonl_kernel import CandidateColumns, CandidateTemplate

_KERNEL_BYTES = 1 << 20  # for a shorter list it is not worth loading a compiler
_KERNEL = "rerank.formats.jsonl_kernel"
_DECODER = json.JSONDecoder()
CANDIDATES = (
    *("candidates", "hypotheses", "translations", "outputs", "nbest", "predictions", "choices"),
    *("generations", "samples"),
)
_SCORES = ("scores", "sequences_scores", "log_probs", "logprobs")
_TEXT = (
    *("text", "translation_text", "generated_text", "hypothesis", "translation", "hyp", "output"),
    *("sequence", "message", "content"),
)
_SCORE = (
    *("score", "cumulative_logprob", "sequences_score", "logprob", "log_prob", "log_probability"),
    "total",
)
SOURCE_KEYS = ("source", "src", "prompt", "input", "source_text")
_IDS = ("id", "sentence_id", "index")


@dataclass(frozen=True, slots=True)
class _LineForm:
    """Form of the lines.

    key: of the candidates; mark: the bytes from before it to the first candidate; template: the
    form of a candidate; names: of the features.
    """

    key: str
    mark: bytes
    template: CandidateTemplate
    names: tuple[str, ...]


class _Sentence(NamedTuple):
    """A line that was read: id, line, first of its n rows, and its other keys."""

    number: int
    line: int
    row: int
    n: int
    head: dict[str, Any]


class Reader:
    """Adds the candidates of sentences to a list of hypotheses."""

    def __init__(self, found: Hypotheses, notices: Notices, source: str) -> None:
        self._found, self._notices, self._source = found, notices, source
        self._line, self._place = 1, 0  # of the next line, and of the next sentence
        self._template: _LineForm | None = None

    def rows(self, lines: Sequence[bytes]) -> Iterator[KBestRows]:
        """The hypotheses of the next lines."""
        first = self._line
        self._line += len(lines)
        large = sum(map(len, lines)) >= _KERNEL_BYTES or _KERNEL in sys.modules
        if self._template is None and large:
            for line in lines:
                if line.strip():
                    self._template = self._template_of(line)
                    break
        done = 0
        while done < len(lines) and (self._found.empty or self._template is None or not large):
            alone = large and self._template is not None  # the first hypothesis names the features
            some = lines[done : done + 1] if alone else lines[done:]
            yield from self._general(some, first + done)
            done += len(some)
        if self._template is not None and self._found.has(self._template.names):
            yield from self._compiled(lines[done:], first + done, self._template)
        else:
            yield from self._general(lines[done:], first + done)

    def _general(self, lines: Sequence[bytes], first: int) -> Iterator[KBestRows]:
        """The hypotheses of lines of any form, of which the first has this number."""
        for number, line in enumerate(lines, first):
            if not line.strip():
                self._notices.add(BLANK, source=self._source, line=number)
                continue
            self._found.at(number)
            try:
                one = read_object(line, source=self._source, line=number)
                self.sentence(one, self._place, number)
            except InputError as fault:
                self._notices.refuse(fault)
            self._place += 1
            if self._found.full:
                yield self._found.rows()
        if len(self._found):
            yield self._found.rows()

    def _template_of(self, line: bytes) -> _LineForm | None:
        """The form of the lines, if that of the first candidate is one that they may share."""
        from rerank.formats.jsonl_kernel import CandidateTemplate  # loads numba

        try:
            one = read_object(line)
        except InputError:  # `_general` says where
            return None
        key = first_key(one, CANDIDATES)
        mark = re.search(rb'([{, \t]"%s":[ \t]*\[[ \t]*)\{' % (key or "").encode(), line)
        if key is None or mark is None or not isinstance(one[key], list):
            return None
        start = mark.end(1)
        text = line[start:].decode()
        try:
            candidate, stop = _DECODER.raw_decode(text)
        except ValueError:
            return None
        of_text, of_score = first_key(candidate, _TEXT), first_key(candidate, _SCORE)
        if of_text is None or (of_score is None and "features" not in candidate):
            return None
        template = CandidateTemplate.of(text[:stop].encode(), of_text, of_score, "features")
        if template is None:
            return None
        if "features" not in candidate:
            names: tuple[str, ...] = ("score",)
        elif isinstance(candidate["features"], dict):
            names, _ = self._features(candidate["features"])
        else:
            return None
        return _LineForm(key, mark[1], template, names)

    def _compiled(self, lines: Sequence[bytes], first: int, form: _LineForm) -> Iterator[KBestRows]:
        """The hypotheses of lines most of which have the form."""
        from rerank.formats.jsonl_kernel import read_candidates

        blob = b"\n".join(lines)
        starts, ends, end = [], [], -1
        for content in lines:
            begin, end = end + 1, end + 1 + len(content)
            place = content.find(form.mark)
            starts.append(end if place < 0 else begin + place + len(form.mark))
            ends.append(end)
        found = read_candidates(blob, starts, ends, form.template)
        row = 0
        run: list[_Sentence] = []  # consecutive lines that are read
        for line, (n, start, stop, end) in enumerate(
            zip(found.counts.tolist(), starts, found.stops.tolist(), ends, strict=True)
        ):
            head = None
            if n > 0:
                begin = end - len(lines[line])
                head = self._head(blob[begin:start] + blob[stop:end], form)
            if head is None:
                yield from self._run(blob, found, run)
                run = []
                yield from self._general(lines[line : line + 1], first + line)
            else:
                number = id_of(head, self._place, self._source, first + line)
                head.pop("id", None)
                run.append(_Sentence(number, first + line, row, n, head))
                self._place += 1
            row += max(0, n)
        yield from self._run(blob, found, run)

    def _head(self, content: bytes, form: _LineForm) -> dict[str, Any] | None:
        """A sentence without its candidates; None if it has to be read in full."""
        try:
            one = read_object(content)
        except InputError:
            return None
        if first_key(one, CANDIDATES) != form.key or one.pop(form.key) != []:
            return None
        return one

    def _run(
        self, blob: bytes, found: CandidateColumns, run: Sequence[_Sentence]
    ) -> Iterator[KBestRows]:
        """The rows of consecutive sentences of a block."""
        if not run:
            return
        rows = slice(run[0].row, run[-1].row + run[-1].n)
        counts = [one.n for one in run]
        lines = np.repeat([one.line for one in run], counts)
        spans = found.text_spans[rows].copy()
        added, size = [blob], len(blob)
        for i in np.flatnonzero(found.escaped[rows]).tolist():
            raw = blob[slice(*spans[i].tolist())]
            line = int(lines[i])
            try:
                text = json.loads(b'"%s"' % raw)
            except ValueError:
                begin = blob.rfind(b"\n", 0, int(spans[i, 0])) + 1
                whole_line = blob[begin:].partition(b"\n")[0]
                read_object(whole_line, source=self._source, line=line)  # says what is wrong
                raise
            new = text_of(text, "a candidate", self._notices, source=self._source, line=line)
            added.append(new)
            spans[i] = size, size + len(new)
            size += len(new)
        whole = b"".join(added)
        spans = stripped(whole, spans)
        entries = spans.copy()
        extra, place, row = [whole], len(whole), 0
        for one in run:
            if one.head:
                text = whole[slice(*spans[row].tolist())]
                entry = text + written([one.head, {}])
                extra.append(entry)
                entries[row] = place, place + len(entry)
                spans[row] = place, place + len(text)
                place += len(entry)
            row += one.n
        totals = found.totals[rows]
        dense = found.dense[rows] if found.dense.shape[1] else totals[:, None]
        yield self._found.with_columns(
            TextColumn(b"".join(extra), entries),
            spans,
            lines,
            np.repeat([one.number for one in run], counts),
            dense,
            totals,
        )

    def sentence(self, one: dict[str, Any], place: int, line: int) -> None:
        """Add the candidates of a sentence, an object of a line."""
        key = first_key(one, CANDIDATES)
        candidates = one.pop(key) if key else None
        if not isinstance(candidates, list):
            raise self._found.fault(
                f"expected a list at 'candidates', found {candidates!r:.60}"
                if key
                else f"expected a key 'candidates', found {', '.join(one) or 'none':.60}"
            )
        number = id_of(one, place, self._source, line)
        scores = self._scores(one, candidates)
        one.pop("id", None)
        head = one
        for candidate, score in zip(candidates, scores, strict=True):
            self._candidate(number, candidate, score, head, line)
            head = {}

    def _scores(self, one: dict[str, Any], candidates: Sequence[object]) -> Iterable[object]:
        """The numbers of candidates that are plain texts, which are beside them."""
        key = first_key(one, _SCORES)
        if key is None or not candidates or not isinstance(candidates[0], str):
            return repeat(None, len(candidates))
        scores = one.pop(key)
        if not isinstance(scores, list) or len(scores) != len(candidates):
            raise self._found.fault(
                f"expected a list of {len(candidates)} numbers at {key!r}, found {scores!r:.60}"
            )
        return scores

    def _candidate(
        self, sentence: int, one: object, score: Any, head: Mapping[str, Any], line: int
    ) -> None:
        """Add a candidate: an object with a text, or a text alone."""
        sparse = features = None
        text: object
        names: tuple[str, ...]
        if isinstance(one, str):
            text, others = one, {}
        elif isinstance(one, dict):
            key, of_score = first_key(one, _TEXT), first_key(one, _SCORE)
            if key is None:
                raise self._found.fault(f"expected a candidate's key 'text', found {one!r:.60}")
            text = one.pop(key)
            if isinstance(text, dict):  # of a chat: {"message": {"role": …, "content": …}}
                text = text.get("content")
            score = one.pop(of_score) if of_score else None
            features, sparse = one.pop("features", None), one.pop("sparse", None)
            others = one
        else:
            raise self._found.fault(f"expected a candidate with a text, found {one!r:.60}")
        if features is None:
            names, values = ((), []) if score is None else (("score",), [score])
        else:
            names, values = self._features(features)
        if sparse is not None and not isinstance(sparse, dict):
            raise self._found.fault(f"expected an object at 'sparse', found {sparse!r:.60}")
        try:
            kept = written([head, others]) if head or others else b""
        except RerankError:  # numbers of JSON that was read are finite
            raise self._found.fault(
                "expected text in every key and value, found half a surrogate pair; correct it"
            ) from None
        self._found.add(
            sentence,
            text_of(text, "a candidate", self._notices, source=self._source, line=line),
            names,
            values,
            total=score,
            sparse=sparse,
            kept=kept,
        )

    def _features(self, features: object) -> tuple[tuple[str, ...], list[float]]:
        """Names and values; a list of numbers has one name."""
        if not isinstance(features, dict):
            raise self._found.fault(f"expected an object at 'features', found {features!r:.60}")
        values = list(features.values())
        if list not in set(map(type, values)):
            return tuple(features), values
        names: list[str] = []
        values = []
        for name, value in features.items():
            numbers = value if isinstance(value, list) else [value]
            names += [name] * len(numbers)
            values += numbers
        return tuple(names), values


def id_of(one: Mapping[str, Any], place: int, source: str, line: int) -> int:
    """The id of a sentence: its own, if that is a number, or its place in the file."""
    key = first_key(one, _IDS)
    if key is None or isinstance(one[key], str):
        return place
    value = one[key]
    if type(value) is not int or not 0 <= value <= MAX_ID:
        raise InputError(
            f"expected a number from 0 below 2^31 at {key!r}, found {value!r:.60}",
            source=source,
            line=line,
        )
    return value


def written(content: object) -> bytes:
    """JSON on one line; RerankError for NaN and infinity."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as fault:
        raise RerankError(f"expected finite numbers and text to write as JSON: {fault}") from None
