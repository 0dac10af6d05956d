"""K-best lists read one document at a time, in memory bounded by the largest document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import (
    KBest,
    SparseColumns,
    column_names,
    offsets_of,
    places_of,
    split_words,
)
from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.files.lines import display, read_lines
from rerank.formats.moses import MAX_ID, Label
from rerank.formats.rows import Rows, concatenate, read_rows
from rerank.notices import Notices

__all__ = ["KBest", "Label", "SparseColumns", "column_names", "documents_of", "read_documents"]

_MAX_K = 1_000_000
_NAMED = 5  # ids listed in a message
_SIGNS = frozenset((b"<s>", b"</s>", b"<unk>", b"<pad>"))


def read_documents(
    path: str | Path,
    documents: Documents,
    notices: Notices,
    *,
    top: int | None = None,
    diverse: bool = False,
    first_id: int = 0,
    clip_inf: float | None = None,
    max_k: int = _MAX_K,
) -> Iterator[KBest]:
    """The k-best lists of each document, in the order of `documents`; see `documents_of`."""
    source = display(path)
    rows = read_rows(read_lines(path, notices), notices, source=source, clip=clip_inf)
    yield from documents_of(
        rows,
        documents,
        notices,
        source=source,
        top=top,
        diverse=diverse,
        first_id=first_id,
        max_k=max_k,
    )


def documents_of(
    rows: Iterable[Rows],
    documents: Documents,
    notices: Notices,
    *,
    source: str = "",
    top: int | None = None,
    diverse: bool = False,
    first_id: int = 0,
    max_k: int = _MAX_K,
) -> Iterator[KBest]:
    """One `KBest` per document, with one document and one chunk of lines in memory at a time.

    Sentence t has id `first_id + t`. Ids may come in any order within a document, but a document
    must not come again. `top` keeps that many candidates of each sentence: the first ones or,
    if they are to be `diverse`, once a document is read whole, those of
    `rerank.corpus.diversity.farthest_first`. `InputError` for a sentence with more than `max_k`
    to read. O(n log n) per document, and what the choice of diverse ones takes.
    """
    top = max_k + 1 if top is None else top
    assembly = _Assembly(
        documents, notices, source, top=top, diverse=diverse, first_id=first_id, max_k=max_k
    )
    expected = 0
    for d, group in groupby(assembly.parts(rows), key=itemgetter(0)):
        for empty in range(expected, d):
            yield assembly.document(empty, ())
        yield assembly.document(d, (part for _, part in group))
        expected = d + 1
    if expected == 0:
        raise InputError("expected a k-best list, found no hypotheses", source=source)
    for empty in range(expected, len(documents)):
        yield assembly.document(empty, ())
    assembly.report()


class _Assembly:
    """Rows → documents, and what is counted on the way."""

    def __init__(
        self,
        documents: Documents,
        notices: Notices,
        source: str,
        *,
        top: int,
        diverse: bool,
        first_id: int,
        max_k: int,
    ) -> None:
        self._documents, self._notices, self._source = documents, notices, source
        self._top, self._first_id, self._max_k = top, first_id, max_k
        self._read = max_k + 1 if diverse else top  # candidates of each sentence
        self._labels: tuple[Label, ...] = ()
        self._lowest_id = MAX_ID
        self._largest_k = 0
        self._missing: list[int] = []

    def parts(self, chunks: Iterable[Rows]) -> Iterator[tuple[int, Rows]]:
        """The rows cut where the document changes, each part with its document."""
        starts = np.array(self._documents.starts)
        latest = 0
        for rows in chunks:
            self._labels = rows.labels
            self._check_ids(rows)
            owners = np.searchsorted(starts, rows.sentences - self._first_id, side="right") - 1
            before = np.maximum.accumulate(np.append(latest, owners))
            self._check_return(rows, owners < before[:-1])
            latest = int(before[-1])
            for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(owners)) + 1):
                yield int(owners[part[0]]), rows if len(part) == len(rows) else rows.take(part)

    def document(self, d: int, parts: Iterable[Rows]) -> KBest:
        """The k-best lists of document d from its rows in the order of the file."""
        start, stop = self._documents.span(d)
        first = self._first_id + start
        counts = np.zeros(stop - start, np.int64)
        pieces = []
        for part in parts:
            ranks = _ranks(part.sentences - first, counts)
            self._check_k(part, ranks)
            kept = np.flatnonzero(ranks < self._read)
            pieces.append(part if len(kept) == len(part) else part.take(kept))
        self._largest_k = max(self._largest_k, counts.max(initial=0))
        self._missing += (first + np.flatnonzero(counts == 0)).tolist()
        rows = self._sorted(concatenate(pieces) if pieces else Rows.empty(self._labels))
        rows, ranks = self._chosen(rows, np.minimum(counts, self._read))
        kbest = KBest(
            source=self._source,
            first=start,
            offsets=offsets_of(np.minimum(counts, self._top)),
            blob=rows.blob,
            spans=rows.spans,
            text_spans=rows.text_spans,
            line_numbers=rows.line_numbers,
            ranks=ranks,
            dense=rows.dense,
            totals=None if np.isnan(rows.totals).any() else rows.totals,
            sparse=_sparse(rows),
            labels=self._labels,
        )
        self._note_texts(kbest)
        return kbest

    def report(self) -> None:
        """Add the notices that need the whole list."""
        if self._missing:
            named = ", ".join(map(str, self._missing[:_NAMED]))
            more = ", …" if len(self._missing) > _NAMED else ""
            self._notices.add(
                f"source line without hypotheses (ids {named}{more})",
                source=self._source,
                count=len(self._missing),
            )
        if self._largest_k == 1:
            self._notices.add(
                "list with one hypothesis per sentence: nothing to rerank", source=self._source
            )

    def _check_ids(self, rows: Rows) -> None:
        """`InputError` at an id that no source sentence has."""
        n = self._documents.n_lines
        self._lowest_id = min(self._lowest_id, int(rows.sentences.min()))
        places = rows.sentences - self._first_id
        wrong = np.flatnonzero((places < 0) | (places >= n))
        if not len(wrong):
            return
        sentence, place = int(rows.sentences[wrong[0]]), int(places[wrong[0]])
        message = f"expected ids from {self._first_id} on, found {sentence}"
        if place >= n:
            cure = "is it the list of another source?"
            if self._first_id == 0 and self._lowest_id == 1 and place == n:
                cure = "ids look 1-based; use --first-id 1"
            message = (
                f"expected ids of {n} source lines, found id {sentence}, "
                f"which needs {place + 1}; {cure}"
            )
        raise self._error(message, rows, wrong)

    def _check_return(self, rows: Rows, returned: NDArray[np.bool_]) -> None:
        """`InputError` at a row of a document that was left."""
        wrong = np.flatnonzero(returned)
        if len(wrong):
            raise self._error(
                f"expected ids of this document or a later one, found {rows.sentences[wrong[0]]}; "
                "sort the list with: sort -s -t'|' -k1,1n",
                rows,
                wrong,
            )

    def _check_k(self, rows: Rows, ranks: NDArray[np.int64]) -> None:
        """`InputError` at a candidate too many."""
        wrong = np.flatnonzero((ranks == self._max_k) & (ranks < self._read))
        if len(wrong):
            whole = self._read > self._top
            cure = "leave out --diverse" if whole else "give --top to keep the first ones"
            raise self._error(
                f"expected at most {self._max_k} hypotheses of a sentence, found more of sentence "
                f"{rows.sentences[wrong[0]]}; {cure}, or raise --max-k",
                rows,
                wrong,
            )

    def _error(self, message: str, rows: Rows, wrong: NDArray[np.int64]) -> InputError:
        return InputError(message, source=self._source, line=int(rows.line_numbers[wrong[0]]))

    def _sorted(self, rows: Rows) -> Rows:
        """The rows grouped by sentence, within a sentence in the order of the file."""
        falls = np.flatnonzero(np.diff(rows.sentences) < 0)
        if not len(falls):
            return rows
        self._note("ids that fall, grouped by id", rows.line_numbers[falls + 1])
        return rows.take(np.argsort(rows.sentences, kind="stable"))

    def _chosen(self, rows: Rows, counts: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """The rows to keep of lists of these sizes (T,), and their ranks."""
        ranks = places_of(counts)
        if (counts <= self._top).all():
            return rows, ranks
        from rerank.corpus.diversity import farthest_first  # loads numba

        texts, chosen = _texts(rows.blob, rows.text_spans), []
        for start, stop in pairwise(offsets_of(counts).tolist()):
            candidates = list(map(split_words, texts[start:stop]))
            chosen.append(start + farthest_first(candidates, self._top))
        kept = np.concatenate(chosen)
        return rows.take(kept), ranks[kept]

    def _note_texts(self, kbest: KBest) -> None:
        """Count empty and repeated hypotheses, and those with the signs of language models."""
        starts, stops = kbest.text_spans.T
        self._note("empty hypothesis", kbest.line_numbers[starts == stops])
        texts = _texts(kbest.blob, kbest.text_spans)
        repeated = [row for t in range(len(kbest)) for row in _repeated(texts, kbest.rows(t))]
        self._note("hypothesis that its list has already, kept", kbest.line_numbers[repeated])
        if any(sign in kbest.blob for sign in _SIGNS):
            spelled = [row for row, text in enumerate(texts) if _SIGNS & set(text.split(b" "))]
            self._note(
                "hypothesis with <s>, </s>, <unk> or <pad> spelled out, kept as a word like others",
                kbest.line_numbers[spelled],
            )

    def _note(self, kind: str, lines: NDArray[np.int64]) -> None:
        """Add a notice of a kind that came on these lines, if any."""
        if len(lines):
            line = int(lines.min())
            self._notices.add(kind, source=self._source, line=line, count=len(lines))


def _texts(blob: bytes, spans: NDArray[np.int64]) -> list[bytes]:
    """The bytes at each of the spans (n, 2)."""
    return list(map(blob.__getitem__, map(slice, *spans.T.tolist())))


def _repeated(texts: Sequence[bytes], rows: range) -> Iterator[int]:
    """Rows whose text an earlier one of them has."""
    if len(set(texts[rows.start : rows.stop])) == len(rows):
        return
    seen: set[bytes] = set()
    for row in rows:
        if texts[row] in seen:
            yield row
        seen.add(texts[row])


def _sparse(rows: Rows) -> SparseColumns:
    """The sparse features of the rows."""
    if not rows.sparse:
        return SparseColumns.empty(len(rows))
    return SparseColumns.of([rows.sparse.get(line, {}) for line in rows.line_numbers.tolist()])


def _ranks(sentences: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each row among those of its sentence, after the `counts` (T,) of earlier rows.

    The rows are added to `counts`.
    """
    order = np.argsort(sentences, kind="stable")
    grouped = sentences[order]
    n = np.arange(len(order))
    starts = np.maximum.accumulate(np.where(np.diff(grouped, prepend=-1) > 0, n, 0))
    ranks = np.empty_like(order)
    ranks[order] = counts[grouped] + n - starts
    np.add.at(counts, sentences, 1)
    return ranks
