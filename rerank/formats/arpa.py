"""N-gram models in ARPA files, opened and written; `lm.ngrams` knows their lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.outputs import atomic
from rerank.files.paths import FilePath, display
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.ngrams.model import NGramModel


def read_ngrams(path: FilePath, notices: Notices) -> NGramModel:
    """The n-gram model of an ARPA file, plain or compressed; `-` is standard input.

    InputError, with the line, for another file.
    """
    from lm.ngrams.arpa import read_arpa

    with _located(path):
        # unusual characters in its words are those of the training text: nothing to warn of here
        model = read_arpa(read_lines(path, Notices()))
    if not model.unknown_share:
        notices.add(
            "n-gram model without <unk>: unknown words get the log10 probability -100, as in "
            "KenLM; train it with an unknown class if the texts have such words",
            source=display(path),
        )
    return model


def write_ngrams(path: FilePath, model: NGramModel) -> None:
    """Write an ARPA file atomically, compressed if its suffix says so."""
    from lm.ngrams.arpa import arpa

    with atomic(str(path)) as file:
        for block in arpa(model):
            file.write(block)


@contextmanager
def _located(path: FilePath) -> Iterator[None]:
    from lm.ngrams.arpa import ArpaError

    try:
        yield
    except ArpaError as fault:
        raise InputError(str(fault), source=display(path), line=fault.line) from None
