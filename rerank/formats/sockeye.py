"""Sockeye's JSON output: an object a line, with `translations` and `scores` of an n-best list.

    {"sentence_id": 1, "translation": "the text", "score": 1.5,
     "translations": ["the text", "a text"], "scores": [[1.5], [1.75]]}

A score is a negative log-probability in nats, normalised by length as Sockeye was told to: it is
read with its sign changed, as feature `logprob`. Further numbers of `scores` are those of target
factors, features `factor1`, `factor2`, …, likewise; of a single translation, without `scores`,
they are at `factor1_score`, `factor2_score`, …. Objects are sentences in the order of the
file; `sentence_id`, which counts from 1 or is a text, is not read.

Source: sockeye/output_handler.py of https://github.com/awslabs/sockeye.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, takewhile
from typing import Any

from rerank.corpus.kbest import KBestRows
from rerank.errors import InputError
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat
from rerank.formats.json_objects import first_key, first_object, read_objects, text_of
from rerank.notices import Notices

DOCUMENT_KEYS = ("document", "document_id", "doc_id", "docid", "doc")
SOURCE_KEYS = ("source", "src", "source_text", "text")


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

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses, an object a sentence."""
        found = Hypotheses(notices, source, clip)
        for sentence, (number, one) in enumerate(read_objects(lines, notices, source=source)):
            found.at(number)
            try:
                _add(found, sentence, one, notices, source, number)
            except InputError as fault:
                notices.refuse(fault)
            if found.full:
                yield found.rows()
        if len(found):
            yield found.rows()

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence, its document, its source) of each sentence, where input keys have them."""
        for sentence, (number, one) in enumerate(read_objects(lines, notices, source=source)):
            yield (
                sentence,
                carried(one, DOCUMENT_KEYS, "the document", notices, source, number),
                carried(one, SOURCE_KEYS, "the source", notices, source, number),
            )

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last object, which may have no translations."""
        return sum(1 for line in lines if line.strip()) - 1


def _add(
    found: Hypotheses,
    sentence: int,
    one: dict[str, Any],
    notices: Notices,
    source: str,
    line: int,
) -> None:
    """Add the hypotheses of an object."""
    texts = one.get("translations", [one.get("translation")])
    scores = one.get("scores", [_single(one)])
    if not (isinstance(texts, list) and isinstance(scores, list)):
        raise found.fault("expected lists at 'translations' and 'scores'")
    if len(texts) != len(scores):
        raise found.fault(
            f"expected a score for each of {len(texts)} translations, found {len(scores)}"
        )
    for text, score in zip(texts, scores, strict=True):
        costs = _costs(score, found)
        names = ("logprob", *(f"factor{i}" for i in range(1, len(costs))))
        written = text_of(text, "a translation", notices, source=source, line=line)
        values = [0.0 - cost for cost in costs]
        found.add(sentence, written, names, values, total=values[0])


def _single(one: dict[str, Any]) -> list[object]:
    """The scores of an object with one translation, those of its target factors after its own."""
    score = one.get("score")
    factors = takewhile(one.__contains__, (f"factor{i}_score" for i in count(1)))
    return [*(score if isinstance(score, list) else [score]), *(one[key] for key in factors)]


def carried(
    one: dict[str, Any],
    keys: Sequence[str],
    what: str,
    notices: Notices,
    source: str,
    line: int,
) -> bytes | None:
    """The text, or number, at the first of some keys that an object has; None if it has none."""
    key = first_key(one, keys)
    if key is None:
        return None
    value = one[key]
    if type(value) is int:
        value = str(value)
    return text_of(value, what, notices, source=source, line=line)


def _costs(score: object, found: Hypotheses) -> list[float]:
    """The costs of a hypothesis, that of its target factors after its own."""
    costs = score if isinstance(score, list) else [score]
    if not costs:
        raise found.fault("expected a score of each translation, found an empty list")
    numbers = [cost for cost in costs if isinstance(cost, float | int) and cost is not True]
    if len(numbers) < len(costs):
        raise found.fault(f"expected numbers for the score, found {score!r:.60}")
    try:
        return [float(cost) for cost in numbers]
    except OverflowError:
        raise found.fault("expected a finite number for the score, found a larger one") from None
