"""The value of `--lm NAME=hf:DIR[,OPTION=VALUE …]`: a Hugging Face model and its context."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rerank.errors import UsageError

PREFIX = "hf:"
JOINERS = ("newline", "space")
MOST = 1_000_000  # sentences or tokens of a window
_OPTION = re.compile(r"(.*),([a-z]+)=([^,/]*)", re.DOTALL)
_EXPECTED = "expected sentences=N, tokens=N, join=newline|space or detokenize=en"


@dataclass(frozen=True, slots=True)
class CausalOptions:
    """Folder of a causal language model, and what of a document is the context of a sentence.

    sentences: most sentences before it; tokens: most tokens of these, whole sentences; None for
    all of the document so far. join: `newline`, which ends every sentence and is predicted with
    it, or `space`, which is between two sentences and begins the second one. detokenize: language
    of tokenised lists, whose texts are given to the model detokenised, escapes undone.
    """

    folder: Path
    sentences: int | None = None
    tokens: int | None = None
    join: str = "newline"
    detokenize: str | None = None

    @property
    def order(self) -> int | None:
        """Number of earlier sentences that a score depends on; None if unbounded."""
        return self.sentences

    @property
    def identity(self) -> tuple[object, ...]:
        """All but the folder."""
        return self.sentences, self.tokens, self.join, self.detokenize


def is_causal(folder: str | Path) -> bool:
    """Whether the value of an `--lm` is a Hugging Face model."""
    return str(folder).startswith(PREFIX)


def causal_options(name: str, value: str | Path) -> CausalOptions:
    """The options in a value `hf:DIR,sentences=2,join=space`; UsageError for others.

    A folder whose own name ends in `,word=…` is given with a slash at its end.
    """
    own = f"--lm {name}={value}"
    rest, given = str(value).removeprefix(PREFIX), dict[str, str]()
    while found := _OPTION.fullmatch(rest):
        rest, option, text = found.groups()
        if option in given:
            raise UsageError(f"{own}: {option} is given twice; give it once")
        given[option] = text
    numbers: dict[str, int] = {}
    for option, text in given.items():
        if option == "join" and text in JOINERS:
            continue
        if option == "detokenize" and re.fullmatch("[a-z]{2}", text):
            continue
        number = re.fullmatch(r"[0-9]{1,7}", text)
        if option not in ("sentences", "tokens") or not number or int(text) > MOST:
            raise UsageError(f"{own}: {_EXPECTED} after the folder, found {option}={text}")
        numbers[option] = int(text)
    if not rest:
        raise UsageError(f"{own}: expected hf:DIR, the folder of a Hugging Face model")
    join, language = given.get("join", "newline"), given.get("detokenize")
    if numbers.get("tokens") == 0:
        numbers["sentences"] = 0  # the same, and of order 0
    return CausalOptions(Path(rest), **numbers, join=join, detokenize=language)
