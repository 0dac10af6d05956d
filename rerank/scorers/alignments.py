"""Which source words each candidate translates by which words: alignment columns of k-best lists.

Moses writes word alignments (`0-0 1-2`, source position and target position from 0) with
`-print-alignment-info-in-n-best`, and segmentations (`0-1=0-2 2=3`, source and target ranges of
phrases) with `-include-segmentation-in-n-best`; Marian writes alignments with `alignment: hard`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rerank.corpus.kbest import KBest
from rerank.errors import InputError

Pair = tuple[bytes, bytes]  # a source word or phrase, and its translation

_WORDS = re.compile(rb"\s*\d+-\d+(?:\s+\d+-\d+)*\s*")
_PHRASES = re.compile(rb"\s*\d+(?:-\d+)?=\d+(?:-\d+)?(?:\s+\d+(?:-\d+)?=\d+(?:-\d+)?)*\s*")
_FIRST = 2  # columns before are id and text


def translations(kbest: KBest, row: int, source: Sequence[bytes]) -> list[Pair] | None:
    """Pairs of source word and translation of a candidate; None if its line has no such column.

    The translation of a word is the words aligned to it, in order. Without a word alignment the
    pairs are those of the segmentation, of phrases. source: words of the source sentence.
    InputError for positions that are not in the sentences.
    """
    columns = [] if kbest.lines is None else kbest.lines[row].split(b"|||")[_FIRST:]
    target = kbest.tokens(row)
    for pattern, read in ((_WORDS, _aligned), (_PHRASES, _segmented)):
        for column in reversed(columns):
            if pattern.fullmatch(column):
                try:
                    return list(read(column, source, target))
                except IndexError:
                    raise InputError(
                        f"alignment {column.strip().decode()[:60]!r}: expected positions in "
                        f"a source sentence of {len(source)} words and a hypothesis of "
                        f"{len(target)}; are --source and the list of the same, tokenised text?",
                        source=kbest.source,
                        line=kbest.line_number(row),
                    ) from None
    return None


def _aligned(column: bytes, source: Sequence[bytes], target: Sequence[bytes]) -> Iterator[Pair]:
    """Aligned words by source position."""
    links: dict[int, set[int]] = {}
    for link in column.split():
        first, _, second = link.partition(b"-")
        links.setdefault(int(first), set()).add(int(second))
    for s, aligned in sorted(links.items()):
        yield source[s], b" ".join(target[t] for t in sorted(aligned))


def _segmented(column: bytes, source: Sequence[bytes], target: Sequence[bytes]) -> Iterator[Pair]:
    """Phrases and their translations."""
    for pair in column.split():
        ours, _, theirs = pair.partition(b"=")
        yield _phrase(ours, source), _phrase(theirs, target)


def _phrase(span: bytes, words: Sequence[bytes]) -> bytes:
    first, _, last = span.partition(b"-")
    end = int(last or first)
    words[end]  # IndexError where it ends outside of the sentence
    return b" ".join(words[int(first) : end + 1])
