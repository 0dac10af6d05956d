"""Candidates in the JSON of servers, libraries and scripts: found, and brought into one shape.

Candidates are a list at one of the usual keys, texts in columns (`hyp_0`, `hyp_1`, …), or the
object itself, which then has the text of one. An answer of a server lies in further objects
(`response`, `body`, `result`, …), and its text in parts; where there are only
log-probabilities of tokens, their sum is the score. A number that is not read is counted, so that
it can be named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from rerank.files.encoding import NUMBER
from rerank.formats.tokens import Place, first_key

IDS = (
    *("custom_id", "id", "sentence_id", "sent_id", "segment_id", "seg_id", "segid", "utt_id"),
    *("index", "idx", "recordId", "key", "segment", "seg", "sent", "sentence"),
)
DOCUMENT = (
    *("document", "document_id", "doc_id", "docid", "doc", "doc_name", "talk_id", "talkid"),
    *("documentId", "docId", "docID"),
)
SOURCE = ("source", "src", "prompt", "input", "source_text")
REFERENCE = ("ref", "reference", "references", "refs", "target", "tgt", "gold")
CANDIDATES = (
    *("candidates", "hypotheses", "translations", "outputs", "nbest", "predictions", "choices"),
    *("generations", "samples", "hyps", "n_best", "kbest", "beams", "responses", "completions"),
    *("sequences", "texts"),
)
SCORES = ("scores", "sequences_scores", "log_probs", "logprobs")
TEXT = (
    *("text", "translation_text", "generated_text", "hypothesis", "translation", "hyp", "output"),
    *("sequence", "message", "content", "prediction", "response", "completion", "mt"),
)
SCORE = (
    *("score", "cumulative_logprob", "sequences_score", "logprob", "log_prob", "log_probability"),
    *("total", "sequences_scores", "avgLogprobs", "avg_logprobs"),
)
_OF_TOKENS = ("token_logprobs", "content", "tokens", "completion_probabilities")
_ALONE = {*TEXT, "role", _OF_TOKENS[-1]} - {"text", "message", "content", "sequence"}
ENVELOPES = ("response", "body", "result", "message", "modelOutput", "output")
_COLUMN = re.compile("(.*?)_?([0-9]{1,9})")
_OF_TEXT = re.compile("(?i)hyp|hypothesis|candidate|translation|output|pred|prediction|mt")
_ABSENT = -9999.0  # what servers write for the logarithm of 0, and for numbers that they lack
_STOPS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "reason")
_CUT = re.compile(
    r"(?i)length|(?:model_|context_|max_?)(?:output_|new_|total_)?(?:length|tokens?|window).*|.*_exceeded"
)
_NO_TEXT = ("finishReason", "finish_reason", "role")  # keys of a candidate that may lack a text
_SCORE_NAME = re.compile(
    r"(?i)score|prob|logp|nll|ppl|perplexity|comet|bleu|chrf|\bter\b|metric|qe$|reward|cost|loss"
)
_SETTING = re.compile(
    r"(?i)time|temperature|top_?[pk]|latency|duration|seed|penalty|features|sparse"
)


class Taken(NamedTuple):
    """Candidates that are taken out of an object.

    of: a list or columns, or the object itself; within: keys of the objects of an answer that they
    lie in. An answer of a request that failed has no candidates, of nothing.
    """

    candidates: list[Any]
    of: Literal["list", "object", "nothing"]
    within: tuple[str, ...] = ()


def taken_candidates(sentence: dict[str, Any]) -> Taken | None:
    """The candidates of an object, which are removed; None if it has none."""
    key = first_key(sentence, CANDIDATES)
    if key is not None and isinstance(sentence[key], list):
        return Taken(_in_order(sentence.pop(key)), "list")
    for name in ENVELOPES:
        if isinstance(sentence.get(name), dict) and (inner := taken_candidates(sentence[name])):
            return inner._replace(within=(name, *inner.within))
    details = sentence.get("details")
    if isinstance(details, dict) and isinstance(details.get("best_of_sequences"), list):
        others = details.pop("best_of_sequences")
        return Taken([_of_candidate(sentence), *others], "list")
    if columns := _columns(sentence):
        return Taken(columns, "list")
    text = first_key(sentence, TEXT)
    if text is not None:
        value = sentence[text]
        parts = isinstance(value, list) and any(isinstance(v, dict) and "type" in v for v in value)
        if isinstance(value, list) and not parts:
            return Taken(_in_order(sentence.pop(text)), "list")
        if isinstance(value, str | list):
            return Taken([_of_candidate(sentence)], "object")
    failed = any(name in sentence for name in ("response", "result", "modelOutput", "error"))
    return Taken([], "nothing") if key is None and failed else None


def is_list(sentence: dict[str, Any]) -> bool:
    """Whether an object, which is changed, has candidates, or surely a hypothesis."""
    taken = taken_candidates(sentence)
    if taken is None or taken.of == "nothing":
        return False
    surely = taken.of != "object" or bool(taken.within)
    return surely or not _ALONE.isdisjoint(taken.candidates[0])


def _columns(sentence: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates of columns of an object, `hyp_0`, `score_0`, `hyp_1`, …, which are removed."""
    keys = [(key, name) for key in sentence if (name := _COLUMN.fullmatch(key))]
    texts = [(int(n[2]), key) for key, n in keys if _OF_TEXT.fullmatch(n[1])]
    if len(texts) < 2 or not all(isinstance(sentence[key], str) for _, key in texts):
        return []
    candidates = {number: {"text": sentence.pop(key)} for number, key in sorted(texts)}
    for key, n in keys:
        if int(n[2]) in candidates and _is_number(plain_number(sentence.get(key))):
            candidates[int(n[2])][n[1]] = sentence.pop(key)
    return list(candidates.values())


def _of_candidate(sentence: dict[str, Any]) -> dict[str, Any]:
    """The keys of an object that is a candidate, which are removed; those of the sentence stay."""
    of_sentence = {*IDS, *DOCUMENT, *SOURCE, *REFERENCE}
    return {key: sentence.pop(key) for key in [*sentence] if key not in of_sentence}


def _in_order(candidates: list[Any]) -> list[Any]:
    """Candidates by their `index`, if each has another one."""
    places = [candidate.get("index") for candidate in candidates if isinstance(candidate, dict)]
    if len({place for place in places if type(place) is int}) < len(candidates):
        return candidates
    return sorted(candidates, key=lambda candidate: candidate["index"])


def _plain_text(value: Any) -> Any:
    """The text of a candidate, of its parts or of its subwords; another value as it is."""
    if isinstance(value, dict):
        inner = first_key(value, ("parts", *TEXT))
        if inner is None:
            return "" if "role" in value else value
        return "" if value[inner] is None else _plain_text(value[inner])
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        if any("▁" in part for part in value):  # as SentencePiece decodes
            return "".join(value).replace("▁", " ").strip(" ")
        return " ".join(value)
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        kinds = (None, "text", "output_text", "message")
        parts = [part for part in value if part.get("type") in kinds and not part.get("thought")]
        return "".join(str(_plain_text(part)) for part in parts)
    return value


def text_and_score(candidate: Any, beside: Any, place: Place) -> tuple[Any, Any]:
    """Text and score of an object with a text, a text alone or with a number, or its subwords.

    beside: the number that stands beside the candidate, None if none does. The keys of an object
    are removed.
    """
    if isinstance(candidate, dict):
        key, of_score = first_key(candidate, TEXT), first_key(candidate, SCORE)
        if key is None and first_key(candidate, _NO_TEXT) is None:
            raise place.fault(
                f"expected a candidate's key 'text', found {candidate!r:.60}; write its text at "
                "this key"
            )
        text = "" if key is None else _plain_text(candidate.pop(key))
        score = plain_number(candidate.pop(of_score)) if of_score else None
        score = _sum_of_tokens(candidate) if score is None else score
        return text, score if beside is None else beside
    if isinstance(candidate, list) and len(candidate) == 2:
        first, second = candidate
        if not isinstance(second, str):
            return first, second
        if isinstance(first, float | int):
            return second, first
    if isinstance(candidate, list):
        place.note("joined-words")
    elif not isinstance(candidate, str):
        raise place.fault(f"expected a candidate with a text, found {candidate!r:.60}")
    return _plain_text(candidate), beside


def is_truncated(answer: Mapping[str, Any]) -> bool:
    """Whether a candidate, or an answer with one, says that its text was cut off."""
    if answer.get("truncated") is True or any(
        isinstance(answer.get(key), str) and _CUT.fullmatch(answer[key]) for key in _STOPS
    ):
        return True
    inner = (answer.get(key) for key in ("details", "incomplete_details", *ENVELOPES))
    return any(isinstance(value, dict) and is_truncated(value) for value in inner)


def plain_number(value: Any) -> Any:
    """A number that is written as a text, or stands alone in a list or an object."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip().encode("utf-8", "replace")):
        return float(value)
    if isinstance(value, list | dict) and len(value) == 1:
        (alone,) = value.values() if isinstance(value, dict) else value
        return plain_number(alone)
    return value


def _sum_of_tokens(candidate: Mapping[str, Any]) -> float | None:
    """The sum of the log-probabilities of a candidate's tokens; None where it has none.

    NaN where one is missing: null but for the first, of which no server knows it, or the −9999 that
    stands for it.
    """
    for where in (candidate, candidate.get("logprobs"), candidate.get("details")):
        inner = where if isinstance(where, dict) else {}
        for tokens in (where, *map(inner.get, _OF_TOKENS)):
            if isinstance(tokens, list):
                values = [t.get("logprob") if isinstance(t, dict) else t for t in tokens]
                numbers = [value for value in values if isinstance(value, float | int)]
                if numbers and all(value in (*numbers, None, "None", "null") for value in values):
                    known = len(numbers) == len(values) - (values[0] is None)
                    with suppress(OverflowError):
                        return math.fsum(numbers) if known and min(numbers) > _ABSENT else math.nan
    return None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _members(value: Mapping[str, Any], depth: int = 8) -> Iterator[Any]:
    """Values of an object, and in place of objects among them theirs, down to a depth."""
    for member in value.values():
        if isinstance(member, dict) and depth:
            yield from _members(member, depth - 1)
        else:
            yield member


# What is not read


class Unread:
    """Keys of a list that are not read, but look like scores, texts or references."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lines: dict[str, dict[str, int]] = {}  # by warning and key, the first line

    def note(self, name: str, key: str) -> None:
        """Note a key of the current line for a warning of this name."""
        self._lines.setdefault(name, {}).setdefault(key, self._place.line)

    def note_sentence(self, sentence: Mapping[str, Any], n: int, features: Collection[str]) -> None:
        """Note those of a sentence of n candidates with these features."""
        for key, value in sentence.items():
            if key in features:
                continue
            if key in REFERENCE and isinstance(value, str | list):
                self.note("unread-reference", key)
                continue
            for each in _members(value) if isinstance(value, dict) else [value]:
                if isinstance(each, list) and len(each) == n > 1:
                    if all(_is_number(plain_number(v)) for v in each):
                        self.note("unread-numbers", key)
                    elif each is value and all(isinstance(v, str) for v in each):
                        self.note("unread-texts", key)

    def note_candidate(self, candidate: Mapping[str, Any], features: Collection[str]) -> None:
        """Note those of a candidate with these features."""
        for key, value in candidate.items():
            if key in features or (isinstance(value, dict) and all(n in features for n in value)):
                continue
            if key in TEXT and isinstance(value, str):
                self.note("unread-texts", key)
                continue
            values: Sequence[Any] = [value]
            if isinstance(value, dict):
                values = [*_members(value)]
            elif isinstance(value, list) and not features:
                values = value
            numbers = [plain_number(v) for v in values]
            if numbers and all(map(_is_number, numbers)) and not _SETTING.search(key):
                fraction = any(number < 0 or number % 1 != 0 for number in numbers)
                if fraction or _SCORE_NAME.search(key):
                    self.note("unread-number", key)

    def warn(self) -> None:
        """Add a warning of each kind."""
        for name, lines in self._lines.items():
            self._place.note(name, line=min(lines.values()), names=[*lines])
