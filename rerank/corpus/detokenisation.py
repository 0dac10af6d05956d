"""Text as people read it, made of tokenised text by the Moses detokenizer (sacremoses)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rerank.errors import UsageError
from rerank.notices import Notices

FEW = 10  # lines that end a sentence: fewer do not tell how a text is written
_ATTACHED = re.compile(rb"[^\s.,!?;:\"')\]][.!?]$")  # `word.`
_APART = re.compile(rb"(?:^|\s)[.!?]$")  # `word .`


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


def note_detokenised(lines: Sequence[bytes], notices: Notices, *, source: str) -> None:
    """Add a notice if most lines end in punctuation that is attached to their last word.

    BLEU of white-space words then counts `end.` and `end` as two words.
    """
    attached = [n for n, line in enumerate(lines, 1) if _ATTACHED.search(line.rstrip())]
    apart = sum(_APART.search(line.rstrip()) is not None for line in lines)
    if len(attached) >= FEW and len(attached) > apart:
        notices.add(
            "line that looks detokenised, while BLEU counts words between white space; "
            "give --tokenize 13a",
            source=source,
            line=attached[0],
            count=len(attached),
        )
