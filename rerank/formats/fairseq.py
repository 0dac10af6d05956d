"""Output of fairseq-generate and fairseq-interactive.

    S-3     the source
    H-3     -0.3127      tokens of a hypothesis       score: base 2, divided by length^lenpen
    D-3     -0.3127      the hypothesis, detokenised
    P-3     -0.1 -0.4 …  log2 probability of each token and of </s>

Features: `logprob`, the log-probability in nats, which is ln 2 times the sum of `P-`; and `score`,
that of `H-` in nats, normalised by length as fairseq was told to. The text is that of `D-` where
there is one. Lines of other tags, and of logging, are skipped.

Source: fairseq_cli/generate.py and interactive.py of https://github.com/facebookresearch/fairseq.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rerank.corpus.kbest import MAX_ID, KBestRows, concatenate
from rerank.errors import InputError
from rerank.formats.row_builder import ReadOnlyFormat, RowBuilder, sentence_id
from rerank.formats.tokens import shown
from rerank.notices import Notices

LOG_LINE = "line that is no output of fairseq (logging), skipped"
NO_TOKENS = (
    "hypothesis without P- lines; its feature is the score of H-, normalised by length, in nats"
)
_TAG = re.compile(rb"([A-Z])(?:-([0-9]+)(?:_[0-9]+)?)?\t")
_KNOWN = frozenset(b"STHDPAIECWO")
_LN2 = math.log(2)
_SORTED = 1 << 30  # bytes of texts of a list that has to be sorted in memory


@dataclass(slots=True)
class _Hypothesis:
    """A hypothesis of which more lines may come."""

    sentence: int
    line: int
    text: bytes
    score: float
    log_prob: float | None = None


class Fairseq(ReadOnlyFormat):
    """The format of fairseq's output."""

    name = "fairseq"
    description = (
        "Output of fairseq-generate and fairseq-interactive; scores of base 2 are read in nats."
    )
    suffixes = (".out", ".gen")
    example = b"H-0\t-0.25\tthe text\nP-0\t-0.5 -0.25 -0.125"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a line of a hypothesis, or two of a source, are among the first ones."""
        tags = [found[1] for line in head if (found := _TAG.match(line))]
        return b"H" in tags or sum(tag in (b"S", b"W", b"O") for tag in tags) >= 2

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses by sentence id, each sentence's in the order of the file."""
        chunks = super().read(lines, notices, source=source, clip=clip)
        return _by_sentence(chunks, notices, source)

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses in the order of the file."""
        last: _Hypothesis | None = None
        broken = False  # whether the current hypothesis has an error
        counted = -1  # sentence of lines without ids, of old versions of fairseq-interactive
        with_tokens: bool | None = None
        for number, line in enumerate(lines, 1):
            found.line = number
            tag = _TAG.match(line)
            if tag is None or tag[1][0] not in _KNOWN:
                if line.strip():
                    found.note(LOG_LINE)
                continue
            kind, fields = tag[1], line[tag.end() :].split(b"\t")
            if kind in b"SO" and not tag[2]:
                counted += 1
            if kind not in b"HDP":
                continue
            if kind == b"H" and last is not None:
                with_tokens = _add(found, last, with_tokens)
                found.line = number
            try:
                sentence = sentence_id(tag[2]) if tag[2] else max(counted, 0)
                if kind == b"H":
                    if len(fields) < 2:
                        raise InputError(
                            f"expected H-ID, score and text with TABs, found {shown(line)}"
                        )
                    score = found.number(fields[0], "the score") * _LN2
                    last = _Hypothesis(sentence, number, b"\t".join(fields[1:]), score)
                    broken = False
                elif not broken:
                    if last is None or last.sentence != sentence:
                        raise InputError(
                            f"expected H-{sentence} before its other lines, found {shown(line)}"
                        )
                    if kind == b"D":
                        last.text = b"\t".join(fields[1:])
                    else:
                        values = [found.number(token, "a token") for token in fields[0].split()]
                        last.log_prob = math.fsum(values) * _LN2
            except InputError as fault:
                found.refuse(fault)
                last, broken = None, True
            yield
        if last is not None:
            _add(found, last, with_tokens)

    def beside(
        self, lines: Iterable[bytes], notices: Notices, *, source: str
    ) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """(sentence, its document, its source) of each sentence; documents are not known."""
        for number, line in enumerate(lines, 1):
            tag = _TAG.match(line)
            if tag and tag[1] in (b"S", b"H") and tag[2]:
                text = line[tag.end() :] if tag[1] == b"S" else None
                try:
                    sentence = sentence_id(tag[2])
                except InputError as fault:
                    raise InputError(str(fault), source=source, line=number) from None
                yield sentence, None, text

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The highest id of a source, which may have no hypotheses; -1 if there is none."""
        last = counted = -1
        for line in lines:
            tag = _TAG.match(line)
            if tag is None or tag[1] not in (b"S", b"O"):
                continue
            if tag[2] is None:
                counted += 1
                last = max(last, counted)
            elif len(tag[2]) <= len(str(MAX_ID)) and int(tag[2]) <= MAX_ID:
                last = max(last, int(tag[2]))
        return last


def _add(found: RowBuilder, one: _Hypothesis, with_tokens: bool | None) -> bool | None:
    """Add a hypothesis all of whose lines are read.

    with_tokens: whether those before it have lines of their tokens, None for the first one; what
    is returned is the same for the next one.
    """
    found.line = one.line
    has = one.log_prob is not None
    if with_tokens is not None and has != with_tokens:
        fault = found.fault(
            f"expected {'a' if with_tokens else 'no'} P- line as for the first hypothesis, found "
            f"{'one' if has else 'none'}; is the output cut off?"
        )
        found.refuse(fault)
        return with_tokens
    if one.log_prob is not None:
        values = [one.log_prob, one.score]
        found.add(one.sentence, one.text, ("logprob", "score"), values, total=one.score)
    else:
        found.note(NO_TOKENS)
        found.add(one.sentence, one.text, ("score",), [one.score], total=one.score)
    return has


def _by_sentence(chunks: Iterable[KBestRows], notices: Notices, source: str) -> Iterator[KBestRows]:
    """The rows sorted by sentence id.

    All of them are in memory, at most 1 GiB of texts: `InputError` for more.
    """
    pieces: list[KBestRows] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk.lines.blob)
        if size > _SORTED:
            raise InputError(
                "expected at most 1 GiB of hypotheses, which have to be sorted by sentence, "
                "found more; decode fewer sentences per file",
                source=source,
                line=int(chunk.file_lines[-1]),
            )
    if not pieces:
        return
    ids = np.concatenate([piece.sentences for piece in pieces])
    falls = np.flatnonzero(np.diff(ids) < 0)
    if not len(falls):
        yield from pieces
        return
    rows = concatenate(pieces)
    notices.add(
        "sentences in the order of batches, sorted by id",
        source=source,
        line=int(rows.file_lines[falls[0] + 1]),
    )
    yield rows.take(np.argsort(ids, kind="stable"))
