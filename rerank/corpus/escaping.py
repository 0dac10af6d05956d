"""Moses' escapes of characters that its files use otherwise: `&apos;`, `&#124;`, ….

Source: scripts/tokenizer/escape-special-chars.perl and deescape-special-chars.perl of
https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from rerank.corpus.columns import TextColumn, with_texts_at
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
    lines, spans = with_texts_at(kbest.lines, kbest.texts.spans, new)
    return replace(kbest, lines=lines, texts=TextColumn(lines.blob, spans))
