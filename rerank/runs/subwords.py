"""`--tokenizer`: the subword units that a language model reads and predicts in place of words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.paths import display
from rerank.values import FILE, MOST, ParsedType

if TYPE_CHECKING:
    from lm.side_information import SideText
    from lm.subwords import SubwordVocabulary

SENTENCEPIECE = "sentencepiece"
_LEARNT = re.compile("(unigram|bpe):([1-9][0-9]{2,6})")


class TokenizerName(ParsedType):
    """`unigram:SIZE` or `bpe:SIZE`, learnt from a text, or `sentencepiece:FILE`, as it is given."""

    name = "tokenizer"

    def parsed(self, value: str) -> str:
        """The value as it is given."""
        kind, _, rest = value.partition(":")
        found = _LEARNT.fullmatch(value)
        if kind == SENTENCEPIECE and rest:
            FILE.parsed(rest)
        elif found is None or not 256 < int(found[2]) <= MOST:
            raise ValueError(
                f"expected unigram:SIZE or bpe:SIZE with more than 256 and at most {MOST:,} "
                f"pieces, or sentencepiece:FILE, found {value!r:.60}"
            )
        return value


TOKENIZER = TokenizerName()
TOKENIZER_HELP = (
    "Subword units in place of words: unigram:SIZE, bpe:SIZE, or sentencepiece:FILE.\n\n"
    "unigram and bpe are learnt from the training text, 256 pieces are bytes, so that no "
    "word is unknown; FILE is a .model of SentencePiece. Numbers of words in other options "
    "then count pieces."
)


def tokenizer_files(tokenizers: Iterable[str]) -> list[str]:
    """The files of those tokenizers that are `sentencepiece:FILE`."""
    parts = (tokenizer.partition(":") for tokenizer in tokenizers)
    return [rest for kind, _, rest in parts if kind == SENTENCEPIECE]


def check_package(option: str, tokenizer: str) -> None:
    """UsageError if pieces are to be learnt without the package that does it."""
    if not tokenizer_files([tokenizer]) and find_spec("tokenizers") is None:
        raise UsageError(
            f"{option} {tokenizer}: to learn subword units needs the package tokenizers: pip "
            "install 'rerank-mt[subwords]'; a file, sentencepiece:FILE, needs none"
        )


def subwords(option: str, tokenizer: str, words: list[bytes], text: SideText) -> SubwordVocabulary:
    """The pieces of a tokenizer for an interned text, most frequent first.

    option: that names it, for messages. InputError for a file that is not of SentencePiece,
    UsageError for more or fewer pieces than the text allows.
    """
    import numpy as np

    from lm.subwords import MOST_BYTES, SubwordError, learn, read_pieces

    counts = np.bincount(text.tokens, minlength=len(words)).tolist()
    frequencies = dict(zip(words, counts, strict=True))
    for path in tokenizer_files([tokenizer]):
        try:
            with open(path, "rb") as file:
                return read_pieces(file.read(MOST_BYTES), frequencies)
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise InputError(f"cannot be read: {reason}", source=display(path)) from None
        except SubwordError as fault:
            raise InputError(str(fault), source=display(path)) from None
    kind, _, size = tokenizer.partition(":")
    try:
        return learn(kind, int(size), frequencies)
    except SubwordError as fault:
        raise UsageError(f"{option} {tokenizer}: {fault}") from None
