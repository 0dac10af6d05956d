"""K-best lists in the JSON of two tools: Sockeye's output, and mlm-scoring's lists.

Sockeye (sockeye/output_handler.py of https://github.com/awslabs/sockeye) writes an object a line:

    {"sentence_id": 1, "translation": "the text", "score": 1.5,
     "translations": ["the text", "a text"], "scores": [[1.5], [1.75]]}

A score is a negative log-probability in nats, normalised by length as Sockeye was told to: it is
read with its sign changed, as feature `logprob`. Further numbers of `scores` are those of target
factors, features `factor1`, `factor2`, …, likewise; of a single translation, without `scores`,
they are at `factor1_score`, `factor2_score`, …. Objects are sentences in the order of the
file; `sentence_id`, which counts from 1 or is a text, is not read. An empty translation with an
infinite score, as of a blank source line, is no hypothesis: its sentence has an empty list.

mlm-scoring (src/mlm/loaders.py of https://github.com/awslabs/mlm-scoring) has one object of
utterances, each with its hypotheses, and the whole file in memory:

    {"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "a text"}, "hyp_2": …}}

Utterances are sentences in the order of the file; hypotheses are in that of their numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count, takewhile
from typing import Any

from rerank.errors import InputError
from rerank.formats.json_lists import Sentence, side_of
from rerank.formats.json_objects import first_object, read_object, read_objects, text_of
from rerank.formats.row_builder import ReadOnlyFormat, RowBuilder
from rerank.formats.tokens import Place, chunks
from rerank.notices import Notices

_SOCKEYE_SOURCE = ("source", "src", "source_text", "text")
_HYPOTHESIS = re.compile("hyp_([0-9]{1,9})")
_FIRST_HYPOTHESIS = re.compile(rb'"hyp_[0-9]+"\s*:\s*\{')
_MOST = 1 << 30  # bytes of a file of mlm-scoring


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
        first: int | None = None
        for sentence, one in enumerate(read_objects(lines, found)):
            number = str(one.get("sentence_id"))
            if number.isdecimal():
                first = int(number[:9]) if first is None else first
                if int(number[:9]) != first + sentence:
                    found.note("order-of-sockeye")
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
            document, text = side_of(one, _SOCKEYE_SOURCE, place)
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
            infinite = any(abs(cost) == math.inf for cost in costs)
            if infinite and text == "":
                continue  # what Sockeye writes for a source that it does not translate
            try:  # the score of such a filler is -inf, though scores are costs
                values = [
                    -math.inf if abs(cost) == math.inf else 0.0 - float(cost) for cost in costs
                ]
            except OverflowError:
                raise found.fault(
                    "expected a finite number for the score, found a larger one"
                ) from None
            names = ("logprob", *(f"factor{i}" for i in range(1, len(costs))))
            written = text_of(text, "a translation", found)
            checked = list(map(found.finite, values, names))
            total = found.finite(values[0], "the total")
            found.add(sentence, written, names, checked, total=total)


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
                score, total = (found.finite(candidate["score"], n) for n in ("score", "the total"))
                found.add(sentence, text, ("score",), [score], total=total)
            yield

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last utterance, which may have no hypotheses."""
        with suppress(InputError):
            return len(read_object(_whole(lines, ""))) - 1
        return -1


def _whole(lines: Iterable[bytes], source: str) -> bytes:
    """All lines; InputError for more than 1 GiB."""
    found = next(chunks(lines, _MOST), [])
    content = b"\n".join(found)
    if len(content) >= _MOST:
        raise InputError(
            "expected at most 1 GiB of JSON in one object, found more; split the file",
            source=source,
            line=len(found),
        )
    return content
