"""Lists of a document written back with the features of the scorers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.formats.table import lines_of
from rerank.pipeline.input_order import LineWriter
from rerank.pipeline.kbest_source import KBestSource
from rerank.scorers.features import DocumentFeatures


def write_list(
    write: LineWriter,
    source: KBestSource,
    kbest: KBest,
    document: DocumentFeatures | None,
    choices: Sequence[int],
    *,
    weights: NDArray[np.float64] | None = None,
) -> int:
    """Write a document's lines with the scorers' features under a path and, given weights, totals.

    document: None without any candidates, for which JSON lines have lines, too.
    Returns in how many sentences another total is larger than that of the path's candidate.
    """
    form, first_id = source.file.format, source.lists.first_id
    kbest = source.file.with_annotations(kbest, source.documents)
    if document is None:
        nothing = np.zeros((kbest.n, 0))
        write(lines_of(form, kbest, source.documents, (), nothing, None, first_id=first_id))
        return 0
    space = document.space
    features = document.under(choices)
    totals = None if weights is None else features @ weights + document.sparse
    added = features[:, space.list_width :]
    names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
    write(lines_of(form, kbest, source.documents, names, added, totals, first_id=first_id))
    if totals is None or not len(document.present):
        return 0
    largest = np.maximum.reduceat(totals, document.offsets[:-1])
    return int((largest > totals[document.rows(choices)]).sum())
