r"""N-best lists of whole documents: a line a document, with its sentences as Docent writes them.

    0 ||| the first sentence \n the second \n  ||| LM0= -50.1 TM0= -4.2 ||| -20.3

`\n`, a backslash and an n, is a token after every sentence. Features and total are those of the
candidates, summed.

Source: https://github.com/chardmeier/docent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats.moses import append_features
from rerank.formats.tokens import shown, written

END = b"\\n"


@dataclass(frozen=True, slots=True)
class DocumentChoice:
    """A candidate of each sentence that has any, and the sum of their totals."""

    total: float
    rows: tuple[int, ...]


def best_documents(kbest: KBest, n: int) -> list[DocumentChoice]:
    """The n choices of candidates of largest summed total, best first; ties by lower ranks.

    Totals of sentences are independent, so that the n best of a prefix of the document and of the
    next sentence give those of both: O(T n K log(n K)) time, O(T n) memory. n = 1 takes the first
    candidate where lists are sorted. `InputError` if a candidate has no total and n > 1.
    """
    present = [kbest.rows(t) for t in np.flatnonzero(kbest.counts).tolist()]
    if kbest.totals is None:
        if n > 1:
            raise InputError(
                "expected totals of all candidates, by which documents are ordered, found none; "
                "give --n-best 1, or a list with totals",
                source=kbest.source,
            )
        return [DocumentChoice(0.0, tuple(rows[0] for rows in present))]
    sums = np.zeros(1)
    back: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # prefix, row of each choice
    for rows in present:
        every = (sums[:, None] + kbest.totals[rows.start : rows.stop]).ravel()
        order = np.argsort(-every, kind="stable")[:n]
        prefix, place = np.divmod(order, len(rows))
        back.append((prefix, rows.start + place))
        sums = every[order]
    return [
        DocumentChoice(float(total), tuple(reversed(list(_path(back, i)))))
        for i, total in enumerate(sums)
    ]


def document_line(number: int, kbest: KBest, choice: DocumentChoice) -> bytes:
    """The line of a document with the candidates of a choice."""
    chosen = iter(choice.rows)
    texts = [kbest.text(next(chosen)) if k else b"" for k in kbest.counts.tolist()]
    for text in texts:
        if grammar.SEPARATOR in text or END in text.split(b" "):
            raise InputError(
                f"expected no '|||' and no '\\n' in a sentence of a document list, found "
                f"{shown(text)}; give --escape moses",
                source=kbest.source,
            )
    text = b"".join(b"%s %s " % (text, END) if text else END + b" " for text in texts)
    sums = kbest.dense[list(choice.rows)].sum(axis=0).tolist()
    line = b"%d ||| %s ||| " % (number, text)
    values = iter(sums)
    blocks = []
    for label in kbest.labels:
        numbers = [written(next(values), label.name, digits=9) for _ in range(label.width)]
        blocks.append(label.name.encode() + b"= " + b" ".join(numbers))
    line += b" ".join(blocks)
    total = None if kbest.totals is None else choice.total
    for name, value in _sparse(kbest, choice).items():
        line += b" %s= %s" % (name.encode(), written(value, name, digits=9))
    return append_features(line, (), total)


def document_lines(number: int, kbest: KBest, n: int) -> Iterator[bytes]:
    """The lines of the n best choices of a document."""
    for choice in best_documents(kbest, n):
        yield document_line(number, kbest, choice)


def _sparse(kbest: KBest, choice: DocumentChoice) -> dict[str, float]:
    """Sparse features of a choice, summed."""
    found: dict[str, float] = {}
    for row in choice.rows if kbest.sparse.names else ():
        for name, value in kbest.sparse.row(row).items():
            found[name] = found.get(name, 0.0) + value
    return found


def _path(back: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], i: int) -> Iterator[int]:
    """Rows of a choice from the last sentence to the first."""
    for prefix, rows in reversed(back):
        yield int(rows[i])
        i = int(prefix[i])
