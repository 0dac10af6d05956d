"""What a file may be that is no k-best list, by its first lines, and what to do with it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.json_objects import read_object
from rerank.formats.jsonl_reader import CANDIDATES
from rerank.formats.tokens import NUMBER

_OTHERS = {  # how files begin that are no k-best lists, and what to do with them
    rb"\s*<(?:\?xml|!DOCTYPE|dataset|srcset|refset|tstset|doc)\b": "it looks like SGML or XML of "
    "documents, with one translation of each sentence: in place of --kbest give --systems FILE for "
    "all of its systems, or --systems NAME=FILE#SYSTEM for one",
    rb"(?:FEATURES|SCORES)_(?:TXT|BIN)_BEGIN": "it looks like a file of Moses' extractor: "
    "`rerank tune-moses --features FILE` reads it",
    rb"\\data\\": "it looks like a language model in ARPA format: give it as --ngram",
}
_SHAPE = (
    'expected for each sentence a line {"candidates": [{"text": "…", "score": -1.5}, …]}, which '
    "`jq -c '%s' FILE > lists.jsonl` makes"
)
_OPENAI = (
    'sort_by(.custom_id | [scan("[0-9]+") | tonumber])[] | '
    "{custom_id, candidates: (.response.body.choices // [])}"
)
_KEY = re.compile(rb'"(?:%s)"\s*:' % b"|".join(one.encode() for one in CANDIDATES))
_BATCH = re.compile(rb'"custom_id"\s*:')


def looks_like(head: Sequence[bytes]) -> str:
    """What a file may be that begins with these lines, the first not blank; empty if not known."""
    line = head[0]
    for pattern, meaning in _OTHERS.items():
        if re.match(pattern, line):
            return meaning
    if re.match(rb"\s*[\[{]", line):
        return _json(head)
    if grammar.SEPARATOR in line:
        return ""
    if all(map(NUMBER.fullmatch, line.split())):
        return (
            "it looks like numbers alone, as of Portage's ffvals: give it as --kbest-scores beside "
            "the list, with --kbest-format portage:K or flat:K"
        )
    if b"\t" in line:
        return (
            "it looks like plain text with TABs: if a line has the hypotheses of a sentence, use "
            "`rerank convert --kbest FILE --kbest-format tabs --to moses --out FILE`"
        )
    return (
        "it looks like plain text: if it has K hypotheses of each sentence, a line each, use, with "
        "portage:K in place of flat:K and ffvals as SCORES for a list of Portage, `rerank convert "
        "--kbest FILE --kbest-format flat:K --kbest-scores SCORES --to moses --out FILE`"
    )


def _json(head: Sequence[bytes]) -> str:
    """What JSON may be that has no object with candidates on its first line."""
    start = b"\n".join(head).lstrip()
    if _BATCH.search(start):
        return f"it looks like responses of a batch of OpenAI: {_shape(_OPENAI, '-sc')}"
    if start.startswith(b"["):
        return _array(head[0], start)
    try:
        found = read_object(head[0])
    except InputError as fault:
        if _is_one_value(head[0]) or not _KEY.search(start):
            return f"it looks like JSON: {fault}"
        return f"it looks like JSON with an object on several lines: {_shape('.')}"
    return f"it looks like JSON, but has no list of candidates: {_shape(_by_key(found))}"


def _array(line: bytes, start: bytes) -> str:
    """What JSON may be that begins with an array."""
    lines = "on each line" if _is_one_value(line) else "on several lines"
    if _KEY.search(start):
        return f"it looks like a JSON array of sentences: {_shape('.[]')}"
    if re.match(rb"\[\s*\[", start):
        return (
            "it looks like a JSON array with an array of candidates for each sentence: "
            f"{_shape('.[] | {candidates: .}')}"
        )
    return (
        f"it looks like JSON with an array of candidates {lines}: {_shape('{candidates: .}')}, if "
        "an array is a sentence"
    )


def _by_key(found: dict[str, object]) -> str:
    """The jq program that takes the first list of an object as its candidates."""
    lists = (name for name, value in found.items() if isinstance(value, list))
    return f"{{candidates: .{json.dumps(next(lists, 'LIST'))}}}"


def _shape(program: str, options: str = "-c") -> str:
    """What is expected, and the command that makes it."""
    return (_SHAPE % program).replace("jq -c", f"jq {options}")


def _is_one_value(line: bytes) -> bool:
    """Whether a line is a value of JSON."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
