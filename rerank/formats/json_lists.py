"""K-best lists in JSON: lines of scripts around language models, Sockeye's, and mlm-scoring's.

JSON lines have a sentence a line with its candidates:

    {"document": "d1", "source": "…", "candidates": [{"text": "a text", "score": -1.5,
     "features": {"logprob": -6.5, "TM0": [-1, -2]}, "sparse": {"tag_np": 1}}]}

`id` is the number of the sentence (by default that of the object in the file); candidates may be
plain texts with their numbers in a list `scores` beside. Other usual keys are read, too: see the
tables below. `score` is the total; of candidates without `features` it is their only feature.
`document` and `source` stand in place of --docs and --source. What is written has all keys of the
sentence, and of its candidates, that came with them.

Sockeye (sockeye/output_handler.py of https://github.com/awslabs/sockeye) writes an object a line:

    {"sentence_id": 1, "translation": "the text", "score": 1.5,
     "translations": ["the text", "a text"], "scores": [[1.5], [1.75]]}

A score is a negative log-probability in nats, normalised by length as Sockeye was told to: it is
read with its sign changed, as feature `logprob`. Further numbers of `scores` are those of target
factors, features `factor1`, `factor2`, …, likewise; of a single translation, without `scores`,
they are at `factor1_score`, `factor2_score`, …. Objects are sentences in the order of the
file; `sentence_id`, which counts from 1 or is a text, is not read.

mlm-scoring (src/mlm/loaders.py of https://github.com/awslabs/mlm-scoring) has one object of
utterances, each with its hypotheses, and the whole file in memory:

    {"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "a text"}, "hyp_2": …}}

Utterances are sentences in the order of the file; hypotheses are in that of their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, repeat, takewhile
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.corpus.kbest import MAX_ID, KBest
from rerank.errors import InputError, RerankError
from rerank.formats.json_objects import (
    counts,
    first_key,
    first_object,
    has_all,
    read_object,
    read_objects,
    text_of,
)
from rerank.formats.row_builder import CollectedFormat, ReadOnlyFormat, RowBuilder
from rerank.formats.tokens import Place
from rerank.notices import Notices

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
_IDS = ("id", "sentence_id", "index")
_DOCUMENT = ("document", "document_id", "doc_id", "docid", "doc")
_SOURCE = ("source", "src", "prompt", "input", "source_text")
_SOCKEYE_SOURCE = ("source", "src", "source_text", "text")
_SIDE = {"document": _DOCUMENT, "source": _SOURCE}  # what is written of `KBest.side`
_NO_CANDIDATES = re.compile(rb"\[[ \t]*\]")
_HYPOTHESIS = re.compile("hyp_([0-9]{1,9})")
_FIRST_HYPOTHESIS = re.compile(rb'"hyp_[0-9]+"\s*:')
_MOST = 1 << 30  # bytes of a file of mlm-scoring

Sentence: TypeAlias = tuple[int, bytes | None, bytes | None]
"""The id of a sentence, its document and its source; None where there is none."""


class JsonLines(CollectedFormat):
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

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the candidates of one line after the other."""
        for place, line in enumerate(found.filled(lines)):
            try:
                _add_sentence(found, line, place)
            except InputError as fault:
                found.refuse(fault)
            yield

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[Sentence]:
        """(sentence, its document, its source) of each sentence, None where there is none."""
        place = Place(source, notices)
        for n, one in enumerate(read_objects(lines, place)):
            number = _id_of(one, n, place)
            document, text = _side_of(one, _SOURCE, place)
            yield number, document, text

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a sentence whose list of candidates is empty; -1 if there is none."""
        last, place = -1, Place("", Notices())
        for n, line in enumerate(place.filled(lines)):
            if _NO_CANDIDATES.search(line) is None:
                continue
            with suppress(InputError):
                one = read_object(line)
                if one.get(first_key(one, CANDIDATES) or "") == []:
                    last = max(last, _id_of(one, n, place))
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
                one: dict[str, Any] = {"text": kbest.texts[row].decode()}
                if totals is not None:
                    one["score"] = float(totals[row])
                numbers = iter(kbest.dense[row].tolist())
                features: dict[str, Any] = {
                    label.name: next(numbers)
                    if label.width == 1
                    else [next(numbers) for _ in range(label.width)]
                    for label in kbest.labels
                }
                one["features"] = features | dict(zip(names, values[row].tolist(), strict=True))
                if sparse := kbest.sparse.row(row):
                    one["sparse"] = sparse
                candidates.append(one | others)
            for kind, keys in _SIDE.items():
                text = kbest.side[kind][t].decode() if kind in kbest.side else None
                if text is not None and all(str(head.get(key)) != text for key in keys):
                    head = {**head, kind: text}
            yield _written({"id": first_id + kbest.first + t, **head, "candidates": candidates})


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


def _add_sentence(found: RowBuilder, line: bytes, place: int) -> None:
    """Add the candidates of a line, all at once where they have the same keys."""
    one: Any = None
    with suppress(msgspec.MsgspecError, RecursionError):
        one = msgspec.json.decode(line)
        if isinstance(one, dict) and _add_columns(found, one, line, place):
            return
        if not has_all(line, *counts(one)):
            one = None
    if not isinstance(one, dict):
        one = read_object(line, found)
    key = first_key(one, CANDIDATES)
    candidates = one.pop(key) if key else None
    if not isinstance(candidates, list):
        raise found.fault(
            f"expected a list at 'candidates', found {candidates!r:.60}"
            if key
            else f"expected a key 'candidates', found {', '.join(one) or 'none':.60}"
        )
    number = _id_of(one, place, found)
    scores = _scores_of(found, one, candidates)
    one.pop("id", None)
    for candidate, score in zip(candidates, scores, strict=True):
        _add_candidate(found, number, candidate, score, one)
        one = {}


def _add_columns(found: RowBuilder, one: Any, line: bytes, place: int) -> bool:
    """Add the candidates of a sentence if all have a text and numbers as the first one has them.

    False, with nothing added, for any other sentence, valid or not.
    """
    with suppress(KeyError, IndexError, TypeError, ValueError, OverflowError):
        key = first_key(one, CANDIDATES)
        candidates = one[key]
        first = candidates[0]
        of_text, of_score = first_key(first, _TEXT), first_key(first, _SCORE)
        texts = list(map(itemgetter(of_text), candidates))
        text = "".join(texts)
        totals = [list(map(itemgetter(of_score), candidates))] if of_score else []
        named, features = "features" in first, [first]
        if len(first) != 1 + len(totals) + named:
            return False
        names, columns = ["score"], list[Sequence[Any]](totals)
        if named:
            features, names, columns = list(map(itemgetter("features"), candidates)), [], []
            for name in features[0]:
                column = list(map(itemgetter(name), features))
                block = list(zip(*column, strict=True)) if type(column[0]) is list else [column]
                names += [name] * len(block)
                columns += block
        head = {name: value for name, value in one.items() if name != key}
        strings, keys = counts(head)
        n, width = len(candidates), len(first) + named * len(features[0])
        numbers = np.array([*totals, *columns], np.float64)
        if (
            found.names == tuple(names)
            and {*map(len, candidates)} == {len(first)}
            and {*map(len, features)} == {len(features[0])}
            and {*map(type, chain(*totals, *columns))} <= {int, float}
            and bool((abs(numbers) <= LARGEST).all())
            and not any(mark in text for mark in "\n\0")
            and has_all(line, strings + 1 + n * (1 + width), keys + 1 + n * width)
        ):
            number = _id_of(one, place, found)
            head.pop("id", None)
            found.extend(
                number,
                [text.strip(" ").encode() for text in texts],
                numbers[len(totals) :].T,
                totals[0] if totals else [None] * n,
                _written([head, {}]) if head else b"",
            )
            return True
    return False


def _scores_of(
    found: RowBuilder, one: dict[str, Any], candidates: Sequence[object]
) -> Iterable[object]:
    """The numbers of candidates that are plain texts, which are beside them."""
    key = first_key(one, _SCORES)
    if key is None or not candidates or not isinstance(candidates[0], str):
        return repeat(None, len(candidates))
    scores = one.pop(key)
    if not isinstance(scores, list) or len(scores) != len(candidates):
        raise found.fault(
            f"expected a list of {len(candidates)} numbers at {key!r}, found {scores!r:.60}"
        )
    return scores


def _add_candidate(
    found: RowBuilder, sentence: int, one: object, score: Any, head: Mapping[str, Any]
) -> None:
    """Add a candidate: an object with a text, or a text alone."""
    sparse = features = None
    others: Mapping[str, Any] = {}
    text: object = one
    if isinstance(one, dict):
        key, of_score = first_key(one, _TEXT), first_key(one, _SCORE)
        if key is None:
            raise found.fault(f"expected a candidate's key 'text', found {one!r:.60}")
        text = one.pop(key)
        if isinstance(text, dict):  # of a chat: {"message": {"role": …, "content": …}}
            text = text.get("content")
        score = one.pop(of_score) if of_score else None
        features, sparse, others = one.pop("features", None), one.pop("sparse", None), one
    elif not isinstance(one, str):
        raise found.fault(f"expected a candidate with a text, found {one!r:.60}")
    if features is not None and not isinstance(features, dict):
        raise found.fault(f"expected an object at 'features', found {features!r:.60}")
    names, values = ([], []) if features is not None or score is None else (["score"], [score])
    for name, value in (features or {}).items():
        numbers = value if isinstance(value, list) else [value]
        names += [name] * len(numbers)
        values += numbers
    if sparse is not None and not isinstance(sparse, dict):
        raise found.fault(f"expected an object at 'sparse', found {sparse!r:.60}")
    try:
        kept = _written([head, others]) if head or others else b""
    except RerankError:  # numbers of JSON that was read are finite
        raise found.fault(
            "expected text in every key and value, found half a surrogate pair; correct it"
        ) from None
    encoded = text_of(text, "a candidate", found)
    found.add(sentence, encoded, tuple(names), values, total=score, sparse=sparse, kept=kept)


def _id_of(one: Mapping[str, Any], n: int, place: Place) -> int:
    """The id of a sentence: its own, if that is a number, or its number in the file."""
    key = first_key(one, _IDS)
    if key is None or isinstance(one[key], str):
        return n
    value = one[key]
    if type(value) is not int or not 0 <= value <= MAX_ID:
        raise place.fault(f"expected a number from 0 below 2^31 at {key!r}, found {value!r:.60}")
    return value


def _side_of(
    one: Mapping[str, Any], sources: Sequence[str], place: Place
) -> Iterator[bytes | None]:
    """The document of a sentence, and its source at the first of some keys; None for neither."""
    for what, keys in (("the document", _DOCUMENT), ("the source", sources)):
        key = first_key(one, keys)
        if key is None:
            yield None
            continue
        yield text_of(str(one[key]) if type(one[key]) is int else one[key], what, place)


def _written(content: object) -> bytes:
    """JSON on one line; RerankError for NaN and infinity."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as fault:
        raise RerankError(f"expected finite numbers and text to write as JSON: {fault}") from None


class Sockeye(ReadOnlyFormat):
    """The format of Sockeye's JSON output."""

    name = "sockeye"
    description = "JSON output of Sockeye; its scores are costs, read with their sign changed."
    suffixes = (".json", ".jsonl")
    example = (
        b'{"score": 1.5, "scores": [[1.5], [1.75]], "sentence_id": 1, "translation": "the text", '
        b'"translations": ["the text", "a text"]}'
    )

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first object has a translation and, of an n-best list, its scores."""
        found = first_object(head)
        return "translation" in found and ("sentence_id" in found or "scores" in found)

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of one object, a sentence, after the other."""
        for sentence, one in enumerate(read_objects(lines, found)):
            try:
                self._add(found, sentence, one)
            except InputError as fault:
                found.refuse(fault)
            yield

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[Sentence]:
        """(sentence, its document, its source) of each sentence, where input keys have them."""
        place = Place(source, notices)
        for sentence, one in enumerate(read_objects(lines, place)):
            document, text = _side_of(one, _SOCKEYE_SOURCE, place)
            yield sentence, document, text

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last object, which may have no translations."""
        return sum(1 for line in lines if line.strip()) - 1

    def _add(self, found: RowBuilder, sentence: int, one: dict[str, Any]) -> None:
        """Add the hypotheses of an object."""
        texts = one.get("translations", [one.get("translation")])
        single = [one.get("score")] if not isinstance(one.get("score"), list) else one["score"]
        factors = takewhile(one.__contains__, (f"factor{i}_score" for i in count(1)))
        scores = one.get("scores", [[*single, *(one[key] for key in factors)]])
        if not (isinstance(texts, list) and isinstance(scores, list)):
            raise found.fault("expected lists at 'translations' and 'scores'")
        if len(texts) != len(scores):
            raise found.fault(
                f"expected a score for each of {len(texts)} translations, found {len(scores)}"
            )
        for text, score in zip(texts, scores, strict=True):
            costs = score if isinstance(score, list) else [score]
            if not costs:
                raise found.fault("expected a score of each translation, found an empty list")
            if not all(isinstance(cost, float | int) and cost is not True for cost in costs):
                raise found.fault(f"expected numbers for the score, found {score!r:.60}")
            try:
                values = [0.0 - float(cost) for cost in costs]
            except OverflowError:
                raise found.fault(
                    "expected a finite number for the score, found a larger one"
                ) from None
            names = ("logprob", *(f"factor{i}" for i in range(1, len(costs))))
            written = text_of(text, "a translation", found)
            found.add(sentence, written, names, values, total=values[0])


class MlmScoring(ReadOnlyFormat):
    """The format of mlm-scoring's n-best lists."""

    name = "mlm-scoring"
    description = "N-best lists of mlm-scoring: one JSON object with all utterances."
    suffixes = (".json",)
    example = (
        b'{"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "the text"}, '
        b'"hyp_2": {"score": -1.75, "text": "a text"}}}'
    )

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first lines begin an object and name a hypothesis."""
        content = b"\n".join(head).lstrip()
        return content.startswith(b"{") and _FIRST_HYPOTHESIS.search(content) is not None

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of one utterance after the other."""
        utterances = read_object(_whole(lines, found.source), found)
        for sentence, (name, one) in enumerate(utterances.items()):
            if not isinstance(one, dict):
                raise found.fault(f"expected an object at {name!r:.60}, found {one!r:.60}")
            numbered = [(int(n[1]), key) for key in one if (n := _HYPOTHESIS.fullmatch(key))]
            for _, key in sorted(numbered):
                candidate = one[key]
                if not isinstance(candidate, dict) or not {"score", "text"} <= candidate.keys():
                    raise found.fault(
                        f"expected a score and a text at {name!r:.60} {key!r}, found "
                        f"{candidate!r:.60}"
                    )
                text = text_of(candidate["text"], "a hypothesis", found)
                score = candidate["score"]
                found.add(sentence, text, ("score",), [score], total=score)
            yield

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last utterance, which may have no hypotheses."""
        with suppress(InputError):
            return len(read_object(_whole(lines, ""))) - 1
        return -1


def _whole(lines: Iterable[bytes], source: str) -> bytes:
    """All lines; InputError for more than 1 GiB."""
    found: list[bytes] = []
    size = 0
    for line in lines:
        found.append(line)
        size += len(line) + 1
        if size > _MOST:
            raise InputError(
                "expected at most 1 GiB of JSON in one object, found more; split the file",
                source=source,
                line=len(found),
            )
    return b"\n".join(found)
