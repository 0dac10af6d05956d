"""How texts are written: with Moses' escapes (`&apos;`) or without, in form NFC or NFD, in tokens.

Equal words that hypotheses and references write in two ways count as different ones. Source of the
escapes: scripts/tokenizer/escape-special-chars.perl and deescape-special-chars.perl of
https://github.com/moses-smt/mosesdecoder; of the forms: https://unicode.org/reports/tr15.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import unescape
from itertools import count, permutations
from pathlib import Path
from shlex import quote
from typing import Any
from unicodedata import is_normalized, normalize

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows, TextColumn
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, UsageError
from rerank.notices import Notices

_UNESCAPE = "Moses' deescape-special-chars.perl"
_PART = 1 << 20  # bytes that are looked at together
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
_ENTITY = re.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});")
_SPECIAL = re.compile(rb"[&|<>'\"\[\]]")
_BARE = {  # the character of each escape, as it stands in text without escapes
    escape: re.compile(re.escape(character) + (rb"(?![a-z#0-9]+;)" if character == b"&" else b""))
    for character, escape in _ESCAPES.items()
}
PREFIX = "moses-"  # of tokenizers of Moses, before a language
_REMEMBERED = 1 << 16  # lines, as many as sacrebleu's tokenizers remember


@dataclass(slots=True)
class _Lines:
    """Lines of one kind: how many, and the number of the first."""

    first: int | None
    count: int = 0


@dataclass(slots=True)
class Spelling:
    """What lines, added one after the other, have of escapes and normal forms.

    escapes: lines by their escapes, in order; bare: escapes whose character stands in a line;
    not_nfc: lines that are not in NFC; has_not_nfd: whether a line is not in NFD.
    """

    escapes: dict[tuple[bytes, ...], _Lines] = field(default_factory=dict)
    bare: set[bytes] = field(default_factory=set)
    not_nfc: _Lines | None = None
    has_not_nfd: bool = False

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Spelling:
        """That of a text, whose lines count from 1."""
        spelling = cls()
        spelling.add(lines, count(1))
        return spelling

    def add(self, lines: Iterable[bytes], numbers: Iterable[int | None]) -> None:
        """Add lines with these numbers in their file. O(bytes)."""
        for line, number in zip(lines, numbers, strict=False):
            entities = dict.fromkeys(_ENTITY.findall(line)) if b"&" in line else ()
            if escapes := tuple(entity for entity in entities if _character(entity)):
                self.escapes.setdefault(escapes, _Lines(number)).count += 1
            self.bare |= {e for e in _BARE.keys() - self.bare if _BARE[e].search(line)}
            if not line.isascii():
                text = line.decode()
                if not is_normalized("NFC", text):
                    self.not_nfc = self.not_nfc or _Lines(number)
                    self.not_nfc.count += 1
                self.has_not_nfd = self.has_not_nfd or not is_normalized("NFD", text)

    def escaped_unlike(self, other: Spelling) -> tuple[bytes, _Lines] | None:
        """An escape that the other lines do not have, and the lines of all such escapes.

        If the others have escapes, too, only those count whose character stands there unescaped.
        """
        shared = {escape for escapes in other.escapes for escape in escapes}
        alone = {escape for escapes in self.escapes for escape in escapes} - shared
        if shared:
            alone = {e for e in alone if _ESCAPES.get(_character(e), b"") in {b"", *other.bare}}
        kinds = [(escapes, lines) for escapes, lines in self.escapes.items() if alone & {*escapes}]
        if not kinds:
            return None
        of_html = sorted(alone - _CHARACTERS.keys())
        first = next(escape for escape in (*of_html, *kinds[0][0]) if escape in alone)
        return first, _Lines(kinds[0][1].first, sum(lines.count for _, lines in kinds))


def note_spelling(
    texts: Mapping[str, Spelling], notices: Notices, *, source: str = "", of_lists: bool = False
) -> bool:
    """Add a notice where only one text has Moses' escapes (`&apos;`), or is in Unicode form NFD.

    texts: two by their names in messages, such as hypotheses, whose file is `source`, and
    references; of_lists: whether the first are those of k-best lists. Returns whether there was a
    notice.
    """
    differs = False
    for (name, own), (other, others) in permutations(texts.items()):
        is_first = name == next(iter(texts))
        kinds = list[tuple[str, _Lines, dict[str, str]]]()
        if escaped := own.escaped_unlike(others):
            escape, lines = escaped
            of_moses, cures = escape in _CHARACTERS, list[str]()
            if of_moses or not (of_lists and is_first):
                tool = _UNESCAPE if of_moses else "html.unescape of Python"
                cures.append(f"unescape the {name} with {tool}")
            if of_lists and (of_moses or is_first):
                to = f"--escape {'none' if is_first else 'moses'} --to moses --out NEW"
                cures.append(f"write the list with: rerank convert --kbest {quote(source)} {to}")
            more = {"escape": escape.decode(), "cure": "; or ".join(cures)}
            kinds.append(("mixed-escaping", lines, more))
        if own.not_nfc and others.not_nfc is None and others.has_not_nfd:
            kinds.append(("mixed-normal-forms", own.not_nfc, {}))
        for kind, lines, more in kinds:
            line = lines.first if is_first else None
            called: dict[str, Any] = {"ours": name, "theirs": other, **more}
            notices.add(kind, source=source, line=line, count=lines.count, **called)
            differs = True
    return differs


def escaped(text: bytes) -> bytes:
    """The text with Moses' escapes; those that the text already has are not escaped again."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], unescaped(text))


def unescaped(text: bytes) -> bytes:
    """The text with the characters that escapes of Moses and HTML stand for, replaced once."""
    return (
        _ENTITY.sub(lambda found: _character(found[0]) or found[0], text) if b"&" in text else text
    )


@lru_cache(maxsize=_REMEMBERED)
def _character(escape: bytes) -> bytes:
    """The character of an escape; nothing for what is none, and for one that ends a line."""
    if escape in _CHARACTERS:
        return _CHARACTERS[escape]
    character = unescape(escape.decode())
    is_plain = character.isprintable() or character == "\xa0"
    return character.encode() if is_plain and character != escape.decode() else b""


FORMS: dict[str, Callable[[bytes], bytes]] = {"moses": escaped, "none": unescaped}


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
    lines, spans = _with_texts_at(rows.lines, rows.text_spans, list(map(nfc, rows.texts.to_list())))
    return replace(rows, lines=lines, text_spans=spans)


def with_texts(kbest: KBest, change: Callable[[bytes], bytes]) -> KBest:
    """The lists with changed texts, also in the lines of their file."""
    old = kbest.texts.to_list()
    new = list(map(change, old))
    if old == new:
        return kbest
    if kbest.lines is None:
        return replace(kbest, texts=TextColumn.of(new))
    lines, spans = _with_texts_at(kbest.lines, kbest.texts.spans, new)
    return replace(kbest, lines=lines, texts=TextColumn(lines.blob, spans))


def _with_texts_at(
    lines: TextColumn, spans: NDArray[np.int64], texts: Sequence[bytes]
) -> tuple[TextColumn, NDArray[np.int64]]:
    """Lines (n,) with other texts in place of those at some spans, and the spans of the new ones.

    spans: (n, 2) in the block of the lines, each within its line.
    """
    starts = spans[:, :1] - lines.spans[:, :1]
    column = TextColumn.of(
        [
            line[:start] + text + line[start + size :]
            for line, (start,), (size,), text in zip(
                lines.to_list(), starts.tolist(), np.diff(spans).tolist(), texts, strict=True
            )
        ]
    )
    first = column.spans[:, :1] + starts
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))[:, None]
    return column, np.hstack([first, first + sizes])


def _parts(block: bytes) -> Iterator[bytes]:
    """The block in parts that end where a line does, with which nothing composes."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", start + _PART) + 1 or len(block)
        yield block[start:end]
        start = end


# Tokens and capitals by the rules of Moses (sacremoses), made and undone


@lru_cache(maxsize=4)
def moses_tokenizer(name: str) -> Callable[[str], str]:
    """The tokenizer `moses-LL` of a language: a line, with spaces between its words.

    It is for texts that are not tokenised yet: `it 's` would become `it ' s`. Escapes are undone
    before. About 20,000 lines a second. UsageError for a language without abbreviations of Moses.
    """
    from sacremoses import MosesTokenizer
    from sacremoses.corpus import NonbreakingPrefixes

    language = name.removeprefix(PREFIX)
    known = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in known:
        raise UsageError(
            f"--tokenize {name}: the Moses tokenizer has no such language; there are "
            f"{', '.join(known)}"
        )
    split = MosesTokenizer(lang=language).tokenize

    @lru_cache(maxsize=_REMEMBERED)
    def tokenise(line: str) -> str:
        plain = unescaped(line.encode()).decode()
        words: str = split(plain, return_str=True, escape=False)
        return words

    return tokenise


def detokenised(lines: Iterable[bytes], language: str) -> list[bytes]:
    """Lines without the white space that a tokenizer put around punctuation, escapes undone.

    language: ISO 639-1, of the rules of the Moses detokenizer. About 10,000 lines a second.
    UsageError for something else.
    """
    from sacremoses import MosesDetokenizer

    if not re.fullmatch("[a-z]{2}", language):
        raise UsageError(
            f"--detokenize {language}: expected a language as two letters, such as en or de"
        )
    join = MosesDetokenizer(lang=language).detokenize
    return [join(line.decode().split()).encode() for line in lines]


def truecaser(model: str | Path) -> Callable[[Iterable[bytes]], list[bytes]]:
    """What puts lines of words in the case of a model of Moses' `train-truecaser` or `sacremoses`.

    O(words) time. InputError for a file that is no such model.
    """
    from sacremoses import MosesTruecaser

    if not Path(model).is_file():
        raise InputError("expected a file with a truecase model, found none", source=str(model))
    try:
        change = MosesTruecaser(load_from=str(model)).truecase
    except (ValueError, OSError) as fault:
        raise InputError(
            f"expected a truecase model, lines WORD (COUNT/TOTAL) …, as of `sacremoses "
            f"train-truecase`: {' '.join(str(fault).split())}",
            source=str(model),
        ) from fault
    return lambda lines: [change(line.decode(), return_str=True).encode() for line in lines]


def detruecased(lines: Iterable[bytes]) -> list[bytes]:
    """Lines of words whose sentences begin with a capital, by Moses' rules. O(words) time."""
    from sacremoses import MosesDetruecaser

    change = MosesDetruecaser().detruecase
    return [change(line.decode(), return_str=True).encode() for line in lines]
