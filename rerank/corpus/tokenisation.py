"""Tokens and capitals by the rules of Moses (sacremoses), made and undone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from rerank.corpus.spelling import unescaped
from rerank.errors import InputError, UsageError
from rerank.notices import Notices

PREFIX = "moses-"  # of tokenizers of Moses, before a language
FEW = 10  # lines that end a sentence: fewer do not tell how a text is written
_REMEMBERED = 1 << 16  # lines, as many as sacrebleu's tokenizers remember
_ATTACHED = re.compile(rb"[^\s.,!?;:\"')\]][.!?]$")  # `word.`
_APART = re.compile(rb"(?:^|\s)[.!?]$")  # `word .`


@lru_cache(maxsize=4)
def moses_tokenizer(name: str) -> Callable[[str], str]:
    """The tokenizer `moses-LL` of a language: a line, with spaces between its words.

    It is for texts that are not tokenised yet: `it 's` would become `it ' s`. Escapes are undone
    before, and none are made. The languages are those for which Moses has a list of abbreviations.
    About 20,000 lines a second; the last 65,536 distinct lines are remembered. UsageError for
    another language.
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
