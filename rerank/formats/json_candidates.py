"""Candidates in the JSON of servers, libraries and scripts: found, and brought into one shape.

Candidates are a list at one of the usual keys, texts in columns (`hyp_0`, `hyp_1`, …), or the
object itself, which then has the text of one. An answer of a server lies in further objects
(`response`, `body`, `result`, …), and its text in parts; where only the log-probabilities of tokens
are given, their sum is the score. A number that is not read is counted, so that it can be named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rerank.files.encoding import NUMBER
from rerank.formats.json_objects import first_key
from rerank.formats.tokens import Place

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
ANSWERS = ("custom_id", "response", "message", "parts", "best_of_sequences")  # keys of answers
NO_TEXT = ("finishReason", "finish_reason", "role")  # keys of a candidate that may lack a text
_SCORE_NAME = re.compile(
    r"(?i)score|prob|logp|nll|ppl|perplexity|comet|bleu|chrf|\bter\b|metric|qe$|reward|cost|loss"
)
_SETTING = re.compile(
    r"(?i)time|temperature|top_?[pk]|latency|duration|seed|penalty|features|sparse"
)
_KINDS = {  # of keys that are not read
    "number": "unread-number",
    "numbers": "unread-numbers",
    "texts": "unread-texts",
    "reference": "unread-reference",
    "sample": "sample-in-id",
    "id": "further-id",
}


def taken_candidates(one: dict[str, Any]) -> tuple[list[Any], str] | None:
    """The candidates of an object, which are removed, and jq's path of them; None if it has none.

    An answer without candidates, as of a request that failed, has an empty list, and no path.
    """
    key = first_key(one, CANDIDATES)
    if key is not None and isinstance(one[key], list):
        return _in_order(one.pop(key)), f'."{key}"[]'
    for name in ENVELOPES:
        inner = taken_candidates(one[name]) if isinstance(one.get(name), dict) else None
        if inner is not None:
            return inner[0], f'."{name}"{inner[1].rstrip(".")}' if inner[1] else ""
    details = one.get("details")
    if isinstance(details, dict) and isinstance(details.get("best_of_sequences"), list):
        others = details.pop("best_of_sequences")
        return [_alone(one), *others], ""
    if columns := _columns(one):
        return columns, ""
    text = first_key(one, TEXT)
    if text is not None:
        value = one[text]
        parts = isinstance(value, list) and any(isinstance(v, dict) and "type" in v for v in value)
        if isinstance(value, list) and not parts:
            return _in_order(one.pop(text)), f'."{text}"[]'
        if isinstance(value, str | list):
            return [_alone(one)], "."
    failed = any(name in one for name in ("response", "result", "modelOutput", "error"))
    return ([], "") if key is None and failed else None


def is_list(one: dict[str, Any]) -> bool:
    """Whether an object, which is changed, has candidates, or surely a hypothesis."""
    found = taken_candidates(one)
    if found is None:
        return False
    candidates, path = found
    return any(key in candidates[0] for key in _ALONE) if path == "." else bool(candidates or path)


def _columns(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates of columns of an object, `hyp_0`, `score_0`, `hyp_1`, …, which are removed."""
    found: dict[int, dict[str, Any]] = {}
    keys = [(key, name) for key in one if (name := _COLUMN.fullmatch(key))]
    texts = [(int(n[2]), key) for key, n in keys if _OF_TEXT.fullmatch(n[1])]
    if len(texts) < 2 or not all(isinstance(one[key], str) for _, key in texts):
        return []
    for number, key in sorted(texts):
        found[number] = {"text": one.pop(key)}
    for key, n in keys:
        if int(n[2]) in found and _is_number(plain_number(one.get(key))):
            found[int(n[2])][n[1]] = one.pop(key)
    return list(found.values())


def guessed_candidates(one: Mapping[str, Any]) -> str | None:
    """A program of jq that makes candidates of what may be texts and scores; None for neither."""
    lists = {key: value for key, value in one.items() if isinstance(value, list) and value}
    if len(lists) == len(one) > 1 and all(isinstance(e, str) for v in lists.values() for e in v):
        return "to_entries[] | {id: .key, candidates: .value}"
    if len(one) > 1 and all(isinstance(v, dict) and first_key(v, CANDIDATES) for v in one.values()):
        return "to_entries[] | {id: .key} + .value"
    objects = [k for k, v in lists.items() if all(isinstance(e, dict) for e in v)]
    of_sentence, keys = {*DOCUMENT, *SOURCE, *REFERENCE}, (*TEXT, "tokens")
    with_texts = [k for k in objects if all(first_key(e, keys) for e in lists[k])]
    own = [k for k in with_texts if all(map(of_sentence.isdisjoint, lists[k]))]
    texts = [k for k, v in lists.items() if all(isinstance(e, str) for e in v)] or own
    beside = {*IDS, *of_sentence}
    alone = [k for k, v in one.items() if isinstance(v, str) and " " in v and k not in beside]
    if not texts and alone:
        name = json.dumps(alone[0])
        known = [json.dumps(k) for k in SCORE if _is_number(plain_number(one.get(k)))]
        also = f", score: .{known[0]}" if known else ""
        return f".candidates = [{{text: .{name}{also}}}] | del(.{name})"
    if not texts:
        return f".{json.dumps(objects[0])}[]" if objects else None
    alike = [key for key, value in lists.items() if len(value) == len(one[texts[0]])]
    numbers = [key for key in alike if all(_is_number(plain_number(e)) for e in lists[key])]
    moved = [json.dumps(key) for key in (texts[0], *numbers[:1])]
    scores = f" | .scores = .{moved[1]}" if numbers else ""
    removed = ", ".join(f".{key}" for key in moved)
    return f".candidates = .{moved[0]}{scores} | del({removed})"


def _alone(one: dict[str, Any]) -> dict[str, Any]:
    """The keys of an object that is a candidate, which are removed; those of the sentence stay."""
    of_sentence = {*IDS, *DOCUMENT, *SOURCE, *REFERENCE}
    return {key: one.pop(key) for key in [*one] if key not in of_sentence}


def _in_order(candidates: list[Any]) -> list[Any]:
    """Candidates by their `index`, if each has another one."""
    places = [one.get("index") for one in candidates if isinstance(one, dict)]
    numbers = [place for place in places if type(place) is int]
    if len({*numbers}) < len(candidates):
        return candidates
    return sorted(candidates, key=lambda one: one["index"])


def plain_text(value: Any) -> Any:
    """The text of a candidate, of its parts or of its subwords; another value as it is."""
    if isinstance(value, dict):
        inner = first_key(value, ("parts", *TEXT))
        if inner is None:
            return "" if "role" in value else value
        return "" if value[inner] is None else plain_text(value[inner])
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        if any("▁" in one for one in value):  # as SentencePiece decodes
            return "".join(value).replace("▁", " ").strip(" ")
        return " ".join(value)
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        kinds = (None, "text", "output_text", "message")
        parts = [one for one in value if one.get("type") in kinds and not one.get("thought")]
        return "".join(str(plain_text(one)) for one in parts)
    return value


def text_and_score(one: dict[str, Any]) -> tuple[Any, Any]:
    """The text and the score of a candidate, whose keys are removed; None where there is none."""
    key, of_score = first_key(one, TEXT), first_key(one, SCORE)
    text = plain_text(one.pop(key)) if key is not None else None
    if key is None and any(name in one for name in NO_TEXT):
        text = ""
    score = plain_number(one.pop(of_score)) if of_score else None
    return text, _sum_of_tokens(one) if score is None else score


def plain_number(value: Any) -> Any:
    """A number that is written as a text, or stands alone in a list or an object."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip().encode("utf-8", "replace")):
        return float(value)
    if isinstance(value, list | dict) and len(value) == 1:
        (alone,) = value.values() if isinstance(value, dict) else value
        return plain_number(alone)
    return value


def _sum_of_tokens(one: Mapping[str, Any]) -> float | None:
    """The sum of the log-probabilities of a candidate's tokens; None where it has none."""
    for where in (one, one.get("logprobs"), one.get("details")):
        inner = where if isinstance(where, dict) else {}
        for tokens in (where, *map(inner.get, _OF_TOKENS)):
            if isinstance(tokens, list):
                values = [t.get("logprob") if isinstance(t, dict) else t for t in tokens]
                numbers = [value for value in values if isinstance(value, float | int)]
                if numbers and len(numbers) + values.count(None) == len(values):
                    with suppress(OverflowError):
                        return math.fsum(numbers)
    return None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


# What is not read


@dataclass(slots=True)
class Unread:
    """Keys of a list that are not read, but look like scores, texts or references.

    keys: by kind, with the line where each is first; values: of the numbers of candidates, for jq;
    path: of the candidates, likewise; score, beside: key of the score that is read, of a candidate
    or beside them; sample: pattern of the part of ids that seems to name a sample; several:
    whether references are lists.
    """

    keys: dict[str, dict[str, int]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    path: str = ""
    score: str | None = None
    beside: str | None = None
    sample: str = ""
    several: bool = False

    def note(self, kind: str, key: str, line: int) -> None:
        """Note a key."""
        self.keys.setdefault(kind, {}).setdefault(key, line)

    def note_sentence(
        self, one: Mapping[str, Any], n: int, line: int, features: Collection[str]
    ) -> None:
        """Note those of a sentence of n candidates with these features."""
        for key, value in one.items():
            if key in features:
                continue
            if key in REFERENCE and isinstance(value, str | list):
                self.note("reference", key, line)
                self.several = isinstance(value, list)
            elif isinstance(value, list) and len(value) == n > 1:
                if all(_is_number(plain_number(v)) for v in value):
                    self.note("numbers", key, line)
                elif all(isinstance(v, str) for v in value):
                    self.note("texts", key, line)

    def note_candidate(self, one: Mapping[str, Any], line: int, features: Collection[str]) -> None:
        """Note those of a candidate with these features."""
        for key, value in one.items():
            if key in features or (isinstance(value, dict) and all(n in features for n in value)):
                continue
            if key in TEXT and isinstance(value, str):
                self.note("texts", key, line)
                continue
            name, given = json.dumps(key), [value]
            program = f"{{{name}: .{name}}}"
            if isinstance(value, dict):
                given, program = [*value.values()], f".{name}"
            elif isinstance(value, list):
                given, program = given if features else value, f"{{{name}: (.{name} | add)}}"
            given = [plain_number(one) for one in given]
            if given and all(map(_is_number, given)) and not _SETTING.search(key):
                fraction = any(one < 0 or one % 1 != 0 for one in given)
                if fraction or _SCORE_NAME.search(key):
                    self.note("number", key, line)
                    self.values[key] = program

    def warn(self, place: Place, ordered: Callable[[str], str]) -> None:
        """Add a warning of each kind, with the command that makes features of its keys.

        ordered: the command that writes a value of each sentence on a line, empty for none.
        """
        for kind, lines in self.keys.items():
            names, cure = [*lines], ""
            if kind == "reference":
                value = f".{json.dumps(names[0])}{'[0]' if self.several else ''}"
                if command := ordered(f'({value} // "") | gsub("\\n"; " ")'):
                    cure = f", as `{command} {place.argument} > references` writes it"
                    cure += " of the first ones, with [1] of the second ones" * self.several
            elif program := self._program(kind, names):
                cure = f"to have it read: `jq -c '{program}' {place.argument} > lists.jsonl`"
            first = min(lines.values())
            name, notices = _KINDS[kind], place.notices
            notices.add(name, source=place.source, line=first, names=names, cure=cure)

    def _program(self, kind: str, names: Sequence[str]) -> str:
        """The program of jq that has these keys of a kind read; empty if none can."""
        key = json.dumps(names[0])
        if kind == "id":
            return f".custom_id = .{key}"
        if kind == "sample":
            return f'.{key} |= sub("{self.sample}"; "")'
        if kind == "number" and self.path:
            own = json.dumps(self.score)
            values = [f"{{{own}: .{own}}}"] * bool(self.score) + [self.values[n] for n in names]
            return f"{self.path} |= (.features += {' + '.join(values)})"
        if kind == "numbers" and self.path.endswith("[]"):
            at = {one: f"$s.{json.dumps(one)}[$k]" for one in (*names, self.beside) if one}
            features = ", ".join(f"{json.dumps(one)}: {value}" for one, value in at.items())
            total = f" | .score = {at[self.beside]}" if self.beside else ""
            return (
                f". as $s | {self.path[:-2]} |= [to_entries[] | .key as $k | .value | if type == "
                f'"string" then {{text: .}} else . end{total} | .features += {{{features}}}]'
            )
        return ""
