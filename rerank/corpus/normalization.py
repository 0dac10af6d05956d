"""Texts in Unicode's normal form NFC: `--normalize nfc`.

A character with an accent can be one code point (NFC) or a letter and a combining mark (NFD). The
two are equal for a reader, but count as different words. See https://unicode.org/reports/tr15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from unicodedata import is_normalized, normalize

from rerank.corpus.columns import with_texts_at
from rerank.corpus.rows import KBestRows

_PART = 1 << 20  # bytes that are looked at together


def nfc(text: bytes) -> bytes:
    """The text in NFC. One in ASCII is copied nowhere, one in NFC is only checked."""
    if text.isascii():
        return text
    characters = text.decode()
    if is_normalized("NFC", characters):
        return text
    return normalize("NFC", characters).encode()


def nfc_lines(rows: Sequence[Sequence[bytes]]) -> list[list[bytes]]:
    """Texts by sentence and file, in NFC."""
    return [list(map(nfc, row)) for row in rows]


def nfc_rows(rows: KBestRows) -> KBestRows:
    """Hypotheses in NFC, also in what their format keeps of them."""
    block = bytes(rows.lines.blob)  # no copy of bytes
    if block.isascii() or all(is_normalized("NFC", part.decode()) for part in _parts(block)):
        return rows
    texts = list(map(nfc, rows.texts.to_list()))
    lines, spans = with_texts_at(rows.lines, rows.text_spans, texts)
    return replace(rows, lines=lines, text_spans=spans)


def _parts(block: bytes) -> Iterator[bytes]:
    """The block in parts that end where a line does, with which nothing composes."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", start + _PART) + 1 or len(block)
        yield block[start:end]
        start = end
