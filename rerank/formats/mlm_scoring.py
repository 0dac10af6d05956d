"""N-best lists in the JSON of mlm-scoring: an object of utterances, each with its hypotheses.

    {"utt-1": {"ref": "the text", "hyp_1": {"score": -1.5, "text": "a text"}, "hyp_2": …}}

Utterances are sentences in the order of the file; hypotheses are in that of their numbers. The
whole file is in memory. Source: src/mlm/loaders.py of https://github.com/awslabs/mlm-scoring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rerank.corpus.kbest import KBestRows
from rerank.errors import InputError
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat
from rerank.formats.json_objects import read_object, text_of
from rerank.notices import Notices

_HYPOTHESIS = re.compile("hyp_([0-9]{1,9})")
_FIRST = re.compile(rb'"hyp_[0-9]+"\s*:')
_MOST = 1 << 30  # bytes of a file


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
        return content.startswith(b"{") and _FIRST.search(content) is not None

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses, utterance by utterance."""
        content = _whole(lines, source)
        found = Hypotheses(notices, source, clip)
        for sentence, (name, one) in enumerate(read_object(content, source=source, line=1).items()):
            for key, candidate in _hypotheses(one, name, found):
                if not isinstance(candidate, dict) or not {"score", "text"} <= candidate.keys():
                    raise found.fault(
                        f"expected a score and a text at {name!r:.60} {key!r}, found "
                        f"{candidate!r:.60}"
                    )
                text = text_of(candidate["text"], "a hypothesis", notices, source=source, line=1)
                score = candidate["score"]
                found.add(sentence, text, ("score",), [score], total=score)
            if found.full:
                yield found.rows()
        if len(found):
            yield found.rows()

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last utterance, which may have no hypotheses."""
        with suppress(InputError):
            return len(read_object(_whole(lines, ""))) - 1
        return -1


def _hypotheses(one: object, name: str, found: Hypotheses) -> list[tuple[str, Any]]:
    """The hypotheses of an utterance by their numbers."""
    if not isinstance(one, Mapping):
        raise found.fault(f"expected an object at {name!r:.60}, found {one!r:.60}")
    numbered = [(int(n[1]), key) for key in one if (n := _HYPOTHESIS.fullmatch(key))]
    return [(key, one[key]) for _, key in sorted(numbered)]


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
