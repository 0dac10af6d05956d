"""Words of the Moses tokenizer (sacremoses), of texts that are not tokenised yet.

Moses tokenises no text twice: `it 's` would become `it ' s`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rerank.corpus.spelling import unescaped
from rerank.errors import UsageError

PREFIX = "moses-"
_REMEMBERED = 1 << 16  # lines, as many as sacrebleu's tokenizers remember


@lru_cache(maxsize=4)
def moses_tokenizer(name: str) -> Callable[[str], str]:
    """The tokenizer `moses-LL` of a language: a line, with spaces between its words.

    Escapes are undone before, and none are made. The languages are those for which Moses has a
    list of abbreviations. About 20,000 lines a second; the last 65,536 distinct lines are
    remembered. UsageError for another language.
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
