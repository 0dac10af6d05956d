"""Source lines for which a k-best list has no hypotheses: what `--missing` makes of them.

By default they are empty lines of the output; or they are an error; or the source line itself is
their only candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import SparseColumns, TextColumn
from rerank.corpus.reading import AS_ERROR, AS_SOURCE
from rerank.corpus.rows import KBestRows, concatenate
from rerank.errors import InputError
from rerank.files.arrays import ArrayStore
from rerank.notices import Notices

_NAMED = 5  # ids listed in a message


def note_missing(ids: Sequence[int], policy: str, notices: Notices, *, source: str) -> None:
    """Count the source lines without hypotheses, or refuse them if the policy says so.

    ids: as in the list, in any order; source: the name of the list.
    """
    if not ids:
        return
    named = ", ".join(map(str, sorted(ids)[:_NAMED])) + (", …" if len(ids) > _NAMED else "")
    if policy == AS_ERROR:
        fault = InputError(
            f"expected hypotheses of every source line, found none of {len(ids):,} (ids {named}); "
            "translate these lines again, or give --missing empty or --missing source",
            source=source,
        )
        notices.refuse(fault, count=len(ids))
        return
    kind = "source line without hypotheses"
    if policy == AS_SOURCE:
        kind = "source line that is its own translation, for lack of hypotheses"
    notices.add(f"{kind} (ids {named})", source=source, count=len(ids))


def with_sources(
    rows: KBestRows,
    offsets: NDArray[np.int64],
    ids: Sequence[int],
    lines: Sequence[bytes],
    *,
    total: float,
    store: ArrayStore | None = None,
) -> KBestRows:
    """The rows of a document, with its source line for each sentence without any.

    All features of such a row are 0. offsets: (T + 1,) of the sentences among the rows; ids: of the
    sentences without rows, in order; lines: (T,) source lines; total: of the new rows; store: where
    the rows are, if not in memory.
    """
    gaps = np.flatnonzero(np.diff(offsets) == 0)
    if not len(gaps):
        return rows
    n, g = len(rows), len(gaps)
    texts = TextColumn.of([lines[t].strip(b" ") for t in gaps.tolist()])
    new = KBestRows(
        labels=rows.labels,
        lines=texts,
        text_spans=texts.spans,
        line_numbers=np.zeros(g, np.int64),
        sentences=np.array(ids, np.int64),
        dense=np.zeros((g, rows.dense.shape[1])),
        totals=np.full(g, total),
        sparse=SparseColumns.empty(g),
    )
    order = np.insert(np.arange(n), offsets[gaps], n + np.arange(g))
    return concatenate([rows, new], store).in_order(order, store)
