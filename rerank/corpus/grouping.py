"""K-best lists grouped by document, in memory bounded by the largest document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import (
    KBestRows,
    SparseColumns,
    TextColumn,
    column_names,
    concatenate,
    offsets_of,
    places_of,
    runs_of_lists,
)
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import MAX_ID, KBest
from rerank.corpus.reading import AS_ERROR, AS_SOURCE, ReadingOptions
from rerank.errors import InputError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.notices import Notices

_TOGETHER = 1 << 16  # hypotheses that are looked at together
_NAMED = 5  # ids listed in a message
_SPECIAL_WORDS = frozenset((b"<s>", b"</s>", b"<unk>", b"<pad>"))


ALL = ReadingOptions()


class Grouping:
    """Groups rows by document and sentence, and counts what the user should know about.

    sources: the source lines of each document, which are the candidates of sentences without any;
    sampled: whether equal texts of a sentence may be samples, of which each is a vote.
    """

    def __init__(
        self,
        documents: Documents,
        notices: Notices,
        options: ReadingOptions = ALL,
        *,
        source: str = "",
        store: ArrayStore = IN_MEMORY,
        sources: Iterator[Sequence[bytes]] | None = None,
        sampled: bool = False,
    ) -> None:
        self.documents, self.notices, self.options = documents, notices, options
        self.duplicate = "equal-samples" if sampled else "duplicate-hypothesis"
        self.source, self.store, self.sources = source, store, sources
        self.numbers = None  # (n_file_lines,) sentence of a line, or −1
        if documents.lines is not None:
            self.numbers = np.full(documents.n_file_lines, -1)
            self.numbers[list(documents.lines)] = np.arange(documents.n_sentences)
        # candidates to keep of each sentence
        self.top = options.max_k + 1 if options.top is None else options.top
        self.no_rows: KBestRows  # with the labels of the list
        self.has_totals, self.lowest_id, self.largest_k = False, MAX_ID, 0
        self.missing: list[int] = []  # ids without candidates
        self.order: _ListOrder | None = None

    def lists(self, rows: Iterable[KBestRows]) -> Iterator[KBest]:
        """The lists of each document, with a document and a chunk of lines in memory at a time.

        Within a document ids may be interleaved; a document must be one run of rows, unless the
        lines of the documents themselves stand apart: all rows are then held. Rows of lines that
        the documents leave out are skipped. `InputError` for a sentence from which more than
        `max_k` candidates would be read. O(n log n) per document.
        """
        after = 0  # the document after the last one that was yielded
        parts = self.gathered(rows) if self.documents.interleaved else self.parts(rows)
        for d, group in groupby(parts, key=itemgetter(0)):
            yield from map(self.document, range(after, d))
            yield self.document(d, (part for _, part in group))
            after = d + 1
        if after == 0:
            raise InputError("expected a k-best list, found no hypotheses", source=self.source)
        yield from map(self.document, range(after, len(self.documents)))
        self.report()

    def parts(self, chunks: Iterable[KBestRows]) -> Iterator[tuple[int, KBestRows]]:
        """The rows split where the document changes: (document, its rows)."""
        starts = np.array(self.documents.starts)
        latest, in_order = 0, not self.documents.interleaved
        for rows in chunks:
            self.no_rows = rows.take(np.zeros(0, np.int64))
            self.has_totals = not np.isnan(rows.totals[0])
            rows = self._of_source(rows)
            owners = np.searchsorted(starts, self._numbers(rows), side="right") - 1
            if in_order:
                before = np.maximum.accumulate(np.append(latest, owners))
                latest, returned = int(before[-1]), owners < before[:-1]
                self._refuse(
                    "expected ids of this document or a later one, found {id} (interleaved ids); "
                    "if all candidates of an id are of one sentence, rerank check --fix NEW sorts "
                    "the list",
                    rows,
                    returned,
                )
                rows, owners = rows.where(~returned), owners[~returned]
            if not len(rows):
                continue
            for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(owners)) + 1):
                yield int(owners[part[0]]), rows if len(part) == len(rows) else rows.take(part)

    def gathered(self, chunks: Iterable[KBestRows]) -> Iterator[tuple[int, KBestRows]]:
        """The parts of all rows, which are held, document after document: (document, its rows)."""
        held: dict[int, list[KBestRows]] = {}
        size = 0
        for d, part in self.parts(chunks):
            size += part.nbytes
            part = part if self.store.has_room(size) else part.filed(self.store)
            held.setdefault(d, []).append(part)
        for d in sorted(held):
            for part in held.pop(d):
                yield d, part

    def document(self, d: int, parts: Iterable[KBestRows] = ()) -> KBest:
        """The k-best lists of document d from its rows, in the order of the file."""
        start, stop = self.documents.span(d)
        counts = np.zeros(stop - start, np.int64)
        pieces, size, files = list[KBestRows](), 0, None
        for part in parts:
            ranks = _ranks(self._numbers(part) - start, counts)
            self._refuse(
                f"expected at most {self.options.max_k} hypotheses of a sentence, found more of "
                "sentence {id}; give --top to keep the first ones, or raise --max-k",
                part,
                (ranks == self.options.max_k) & (ranks < self.top),
            )
            part = part.where(ranks < self.top)
            size += part.nbytes
            if files is None and not self.store.has_room(2 * size):  # once more when it is joined
                files = self.store
                pieces = [piece.filed(files) for piece in pieces]
            pieces.append(part if files is None else part.filed(files))
        self.largest_k = max(self.largest_k, counts.max(initial=0))
        gaps = (start + np.flatnonzero(counts == 0)).tolist()
        missing = [self.options.first_id + self.documents.line(t) for t in gaps]
        self.missing += missing
        rows = concatenate(pieces or [self.no_rows], files)
        if len(falls := np.flatnonzero(np.diff(rows.sentences) < 0)):
            self._note("interleaved-ids", rows.file_lines[falls + 1])
            rows = rows.take(np.argsort(rows.sentences, kind="stable"))
        kept = np.minimum(counts, self.top)
        ranks, offsets = places_of(kept), offsets_of(kept)
        self._note_texts(rows, offsets)
        self.order = self.order or _ListOrder([*column_names(rows.labels), "total"])
        self.order.add(rows, offsets)
        if self.sources is not None:
            total, lines = 0.0 if self.has_totals else np.nan, next(self.sources)
            rows = with_sources(rows, offsets, missing, lines, total=total, store=files)
            ranks = np.insert(ranks, offsets[:-1][counts == 0], 0)
            offsets = offsets_of(np.maximum(np.diff(offsets), 1))
        return KBest(
            source=self.source,
            first=start,
            offsets=offsets,
            texts=rows.texts,
            ranks=ranks,
            labels=rows.labels,
            dense=rows.dense,
            sparse=rows.sparse.without_unused_names(),
            totals=None if np.isnan(rows.totals).any() else rows.totals,
            lines=rows.lines,
            line_numbers=rows.line_numbers,
            places=rows.places,
            truncated=rows.truncated,
        )

    def report(self) -> None:
        """Add the notices that need all documents."""
        self._note_missing()
        known = {one.kind.name for one in self.notices}
        if self.order is not None and "unlabelled-costs" not in known:
            self.order.report(self.notices, self.source)
        if self.largest_k == 1:
            self.notices.add("nothing-to-rerank", source=self.source)

    def _note_missing(self) -> None:
        """Count the source lines without hypotheses, or refuse them if `--missing` says so."""
        if not self.missing:
            return
        n, first = len(self.missing), sorted(self.missing)[:_NAMED]
        named = ", ".join(map(str, first)) + (", …" if n > _NAMED else "")
        if self.options.missing == AS_ERROR:
            fault = InputError(
                f"expected hypotheses of every source line, found none of {n:,} (ids {named}); "
                "translate these lines again, or give --missing empty or --missing source",
                source=self.source,
            )
            self.notices.refuse(fault, count=n)
            return
        as_source = self.options.missing == AS_SOURCE
        self.notices.add(
            "source-as-translation" if as_source else "source-line-without-hypotheses",
            source=self.source,
            count=n,
            asked=as_source,
            ids=named,
            hint="; if ids count from 1, give --first-id 1"
            if first[0] == self.options.first_id == 0 and self.lowest_id == 1
            else "",
        )

    def _of_source(self, rows: KBestRows) -> KBestRows:
        """The rows of sentences; `InputError` at an id outside the range of the source lines."""
        n, first_id = self.documents.n_file_lines, self.options.first_id
        self.lowest_id = min(self.lowest_id, int(rows.sentences.min()))
        places = rows.sentences - first_id
        wrong = (places < 0) | (places >= n)
        message = f"expected ids from {first_id} on, found {{id}}"
        if len(beyond := places[wrong]) and (place := int(beyond[0])) >= n:
            cure = self.documents.cure or "is it the list of another source?"
            if first_id == 0 and self.lowest_id == 1 and place == n == places.max():
                cure = "ids look 1-based; use --first-id 1"
            needed = f"found id {{id}}, which needs {place + 1}"
            message = f"expected ids of {n} source lines, {needed}; {cure}"
        self._refuse(message, rows, wrong)
        rows = rows.where(~wrong)
        return rows.where(self._numbers(rows) >= 0) if self.documents.n_left_out else rows

    def _numbers(self, rows: KBestRows) -> NDArray[np.int64]:
        """Numbers (n,) of the sentences of rows, from 0; -1 where the documents have none."""
        lines = rows.sentences - self.options.first_id
        return lines if self.numbers is None else self.numbers[lines]

    def _refuse(self, message: str, rows: KBestRows, wrong: NDArray[np.bool_]) -> None:
        """Refuse the wrong rows, if there are any; `{id}` in the message is that of the first."""
        if not wrong.any():
            return
        row = int(wrong.argmax())
        message = message.replace("{id}", str(rows.sentences[row]))
        fault = InputError(message, source=self.source, line=int(rows.file_lines[row]))
        self.notices.refuse(fault, count=int(wrong.sum()))

    def _note_texts(self, rows: KBestRows, offsets: NDArray[np.int64]) -> None:
        """Count empty and duplicate hypotheses, and those with special words of language models."""
        starts, stops = rows.text_spans.T
        self._note("empty-hypothesis", rows.file_lines[starts == stops])
        lines = rows.lines
        suspected = lines.block_has(b"<") and any(map(lines.block_has, _SPECIAL_WORDS))
        repeated, special = list[int](), list[int]()
        for begin, end in runs_of_lists(offsets, _TOGETHER):
            starts = offsets[begin : end + 1].tolist()
            first = starts[0]
            texts = TextColumn(lines.blob, rows.text_spans[first : starts[-1]]).to_list()
            for a, b in pairwise(starts):
                repeated += (first + k for k in _repeated(texts, range(a - first, b - first)))
            if suspected:
                words = (_SPECIAL_WORDS & set(text.split(b" ")) for text in texts)
                special += (first + k for k, present in enumerate(words) if present)
        if rows.dense.shape[1] or rows.sparse.names or self.has_totals:  # otherwise they are votes
            self._note(self.duplicate, rows.file_lines[repeated])
        self._note("special-word", rows.file_lines[special])

    def _note(self, kind: str, lines: NDArray[np.int64]) -> None:
        """Add a notice of this kind with the number of these lines, if there are any."""
        if len(lines):
            line = int(lines.min())
            self.notices.add(kind, source=self.source, line=line, count=len(lines))


class _ListOrder:
    """What the order of the candidates in all lists says about their features and totals.

    names: of the F features and the total, which is a lone feature where there is none; rises,
    falls: (F + 1,) whether no list falls, or rises; steps: (F + 1,) between neighbours that differ.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [*names]
        self.rises, self.falls = np.ones((2, len(names)), np.bool_)
        self.steps = np.zeros(len(names), np.int64)
        self.n_lists = self.n_not_best = self.line = 0

    def add(self, rows: KBestRows, offsets: NDArray[np.int64]) -> None:
        """Add the lists of a document; offsets: (T + 1,) of its sentences among the rows."""
        for begin, end in runs_of_lists(offsets, _TOGETHER):
            bounds = offsets[begin : end + 1]
            counts = np.diff(bounds)
            part = slice(int(bounds[0]), int(bounds[-1]))
            totals = rows.totals[part]
            if rows.dense.shape[1] == 1 and np.isnan(totals).all():
                totals, self.names[1] = rows.dense[part, 0], self.names[0]
            numbers = np.column_stack([rows.dense[part], totals])
            inside = np.diff(np.repeat(np.arange(len(counts)), counts)) == 0
            steps = np.diff(numbers, axis=0)[inside]
            self.rises &= (steps >= 0).all(axis=0) & (numbers >= 0).all(axis=0)
            self.falls &= (steps <= 0).all(axis=0)
            self.steps += (steps != 0).sum(axis=0)
            starts = bounds[:-1][counts > 0] - bounds[0]
            if len(starts):  # of lists that are not empty
                later = np.flatnonzero(np.maximum.reduceat(totals, starts) > totals[starts])
                self.n_lists += len(starts)
                self.n_not_best += len(later)
                if len(later) and not self.line:
                    self.line = int(rows.file_lines[part][starts[later[0]]])

    def report(self, notices: Notices, source: str) -> None:
        """Warn of numbers that look like costs, else of first candidates that are not the best."""
        costs = self.rises & (self.steps > 1)
        unordered = not (self.falls & (self.steps > 0)).any()
        if costs[-1] or (costs.any() and unordered and not self.n_not_best):
            names = [name for name, cost in zip(self.names, costs.tolist(), strict=True) if cost]
            notices.add("likely-costs", source=source, names=[*dict.fromkeys(names)])
        elif self.n_not_best > 1:  # one alone may be a list that somebody has edited
            notices.add(
                "first-is-not-best",
                source=source,
                line=self.line or None,
                count=self.n_not_best,
                name=self.names[-1],
                n=f"{self.n_not_best:,}",
                lists=f"{self.n_lists:,}",
            )


def _repeated(texts: Sequence[bytes], rows: range) -> Iterator[int]:
    """The rows whose text is that of an earlier row in the range."""
    if len(set(texts[rows.start : rows.stop])) == len(rows):
        return
    seen: set[bytes] = set()
    for row in rows:
        if texts[row] in seen:
            yield row
        seen.add(texts[row])


def _ranks(sentences: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank of each row in its list, of which `counts` (T,) candidates came in earlier chunks.

    Adds the rows to `counts`, in place.
    """
    order = np.argsort(sentences, kind="stable")
    sizes = np.bincount(sentences, minlength=len(counts))
    ranks = np.empty_like(order)
    ranks[order] = counts[sentences[order]] + places_of(sizes)
    counts += sizes
    return ranks


def with_sources(
    rows: KBestRows,
    offsets: NDArray[np.int64],
    ids: Sequence[int],
    lines: Sequence[bytes],
    *,
    total: float,
    store: ArrayStore | None,
) -> KBestRows:
    """The rows of a document, with its source line, of features 0, for each sentence without any.

    offsets: (T + 1,) of the sentences among the rows; ids: of those without rows; lines: (T,)
    source lines; total: of the new rows; store: where the rows are, if not in memory.
    """
    gaps = np.flatnonzero(np.diff(offsets) == 0)
    if not len(gaps):
        return rows
    n, g = len(rows), len(gaps)
    texts = TextColumn.of([lines[t].strip() for t in gaps.tolist()])
    new = KBestRows(
        labels=rows.labels,
        lines=texts,
        text_spans=texts.spans,
        line_numbers=np.zeros(g, np.int64),
        sentences=np.array(ids, np.int64),
        dense=np.zeros((g, rows.dense.shape[1])),
        totals=np.full(g, total),
        sparse=SparseColumns.empty(g),
        truncated=None if rows.truncated is None else np.zeros(g, np.bool_),
    )
    order = np.insert(np.arange(n), offsets[gaps], n + np.arange(g))
    return concatenate([rows, new], store).in_order(order, store)
