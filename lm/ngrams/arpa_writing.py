"""N-gram models as ARPA files, the text format of SRILM, KenLM and others.

A model of stupid back-off has a line above the data that says so. KenLM refuses such a file, and
should: it would not step back over contexts that the model does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lm.ngrams.model import NGramModel
from lm.vocabulary import SPECIAL

STUPID_BACKOFF = b"stupid backoff"
_LINES = 1 << 16  # in a block


def arpa(model: NGramModel) -> Iterator[bytes]:
    """The file in blocks of lines; numbers have the 9 digits that give back the same float32."""
    ngrams = model.ngrams
    if not model.normalised:
        yield STUPID_BACKOFF + b" %.9g: scores, not probabilities\n\n" % 10**model.unseen
    yield b"\\data\\\n"
    yield b"".join(b"ngram %d=%d\n" % pair for pair in enumerate(ngrams.counts, 1))
    words, parents = [*SPECIAL, *model.vocabulary.words], ngrams.parents()
    for n in range(1, ngrams.order + 1):
        yield b"\n\\%d-grams:\n" % n
        level = ngrams.level(n)
        for begin in range(level.start, level.stop, _LINES):
            nodes = np.arange(begin, min(begin + _LINES, level.stop))
            columns = []
            for _ in range(n):
                columns.append(map(words.__getitem__, ngrams.words[nodes].tolist()))
                nodes = parents[nodes]
            texts = map(b" ".join, zip(*reversed(columns), strict=True))
            yield _block(model, slice(begin, min(begin + _LINES, level.stop)), texts)
    yield b"\n\\end\\\n"


def _block(model: NGramModel, nodes: slice, texts: Iterator[bytes]) -> bytes:
    """The lines of some n-grams of one order; a back-off follows those that are contexts."""
    probs = model.log10_probs[nodes].tolist()
    backoffs = model.log10_backoffs[nodes].tolist()
    if not backoffs:
        return b"".join(b"%.9g\t%s\n" % line for line in zip(probs, texts, strict=True))
    lines = zip(probs, texts, backoffs, strict=True)
    return b"".join(b"%.9g\t%s\t%.9g\n" % line for line in lines)
