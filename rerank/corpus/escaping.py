"""Moses' escapes of characters that its files use otherwise: `&apos;`, `&#124;`, ….

Source: scripts/tokenizer/escape-special-chars.perl and deescape-special-chars.perl of
https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rerank.corpus.columns import TextColumn
from rerank.corpus.kbest import KBest

_ESCAPES = {  # & first, as Moses has it
    b"&": b"&amp;",
    b"|": b"&#124;",
    b"<": b"&lt;",
    b">": b"&gt;",
    b"'": b"&apos;",
    b'"': b"&quot;",
    b"[": b"&#91;",
    b"]": b"&#93;",
}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()} | {
    b"&bar;": b"|",  # of old versions
    b"&bra;": b"[",
    b"&ket;": b"]",
}
_SPECIAL = re.compile(rb"[&|<>'\"\[\]]")
_ESCAPE = re.compile(b"|".join(map(re.escape, _CHARACTERS)))


def escaped(text: bytes) -> bytes:
    """The text with Moses' escapes; a text that already has some does not change them."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], unescaped(text))


def unescaped(text: bytes) -> bytes:
    """The text with the characters that Moses' escapes stand for, each replaced once."""
    return _ESCAPE.sub(lambda found: _CHARACTERS[found[0]], text) if b"&" in text else text


FORMS: dict[str, Callable[[bytes], bytes]] = {"moses": escaped, "none": unescaped}


def with_texts(kbest: KBest, change: Callable[[bytes], bytes]) -> KBest:
    """The lists with changed texts, also in the lines of their file."""
    old = kbest.texts.to_list()
    new = list(map(change, old))
    if old == new:
        return kbest
    if kbest.lines is None:
        return replace(kbest, texts=TextColumn.of(new))
    starts = (kbest.texts.spans[:, 0] - kbest.lines.spans[:, 0]).tolist()
    lines = [
        line[:start] + text + line[start + len(before) :]
        for line, start, before, text in zip(kbest.lines.to_list(), starts, old, new, strict=True)
    ]
    column = TextColumn.of(lines)
    first = column.spans[:, 0] + np.array(starts, np.int64)
    sizes = np.fromiter(map(len, new), np.int64, len(new))
    texts = TextColumn(column.blob, np.stack([first, first + sizes], axis=1))
    return replace(kbest, lines=column, texts=texts)
