"""Pools from the files of Moses' extractor: pairs of features.dat and scores.dat, merged.

`mert-moses.pl` hands i such pairs to `mert` in its i-th round, and hypotheses repeat from round to
round. A duplicate, equal to an earlier hypothesis of its sentence in features (sparse ones too) and
statistics, is left out. (Moses does not compare sparse features.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import SparseColumns, offsets_of
from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.files.lines import display, read_lines
from rerank.formats.moses_tuning import Block, FeatureBlock, feature_blocks, statistics_blocks
from rerank.notices import Notices
from rerank.tuning.pools.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedLists:
    """Hypotheses of S sentences as numbers, n in all.

    labels: names of the features, whose widths sum to F; sentences: (S,) ids, rising; offsets:
    (S+1,), sentence s is rows offsets[s]:offsets[s+1]; features: (n, F) float64, finite;
    statistics: (n, 9) int64, columns as in `rerank.metrics.bleu`; n_repeated: duplicates left out.
    """

    labels: tuple[Label, ...]
    sentences: NDArray[np.int64]
    offsets: NDArray[np.int64]
    features: NDArray[np.float64]
    statistics: NDArray[np.int64]
    sparse: SparseColumns
    n_repeated: int = 0

    def pool(self, sparse_weights: Mapping[str, float]) -> Pool:
        """The pool; its fixed part is the weighted sparse features, one without weight counts 0."""
        fixed = self.sparse.dot(sparse_weights)
        return Pool(self.offsets, self.features, self.statistics, fixed)


def read_extracted(
    features: Sequence[str | Path], scores: Sequence[str | Path], notices: Notices
) -> ExtractedLists:
    """The hypotheses of pairs of files, merged by sentence; of equal ones the first is kept.

    `InputError` for files of another metric, of several systems, or that do not belong together.
    O(n F) time and memory.
    """
    if len(features) != len(scores) or not features:
        raise UsageError(
            f"expected a file of scores for each file of features, found {len(scores)} for "
            f"{len(features)}; name both as often, in the same order"
        )
    blocks: list[FeatureBlock] = []
    statistics: list[NDArray[np.int64]] = []
    for features_path, scores_path in zip(features, scores, strict=True):
        for theirs, counted in _pairs(features_path, scores_path, notices):
            if blocks and theirs.labels != blocks[0].labels:
                raise InputError(
                    f"expected the features of {display(features[0])}, {_named(blocks[0])}, found "
                    f"{_named(theirs)}; tune lists of one system at a time",
                    source=display(features_path),
                    line=theirs.line,
                )
            blocks.append(theirs)
            statistics.append(counted.values.astype(np.int64))
    if not any(map(len, blocks)):
        raise InputError("expected hypotheses to tune on, found none", source=display(features[0]))
    return _distinct(_grouped(blocks, statistics))


def _pairs(
    features: str | Path, scores: str | Path, notices: Notices
) -> Iterator[tuple[FeatureBlock, Block]]:
    """The blocks of two files, in pairs; `InputError` where they do not belong together."""
    names = display(features), display(scores)
    for theirs, counted in zip_longest(
        feature_blocks(read_lines(features, notices), notices, source=names[0]),
        statistics_blocks(read_lines(scores, notices), notices, source=names[1]),
    ):
        if theirs is not None and counted is not None and _same(theirs, counted):
            yield theirs, counted
            continue
        expected = f"{_said(theirs)} as in {names[0]}" + (f":{theirs.line}" if theirs else "")
        raise InputError(
            f"expected {expected}, found {_said(counted)}; "
            "take both files from one run of extractor",
            source=names[1],
            line=counted.line if counted else None,
        )


def _same(theirs: Block, counted: Block) -> bool:
    return theirs.sentence == counted.sentence and len(theirs) == len(counted)


def _said(block: Block | None) -> str:
    """Description of a block, for a message."""
    if block is None:
        return "the end of the file"
    return f"{len(block)} hypotheses of sentence {block.sentence}"


def _named(block: FeatureBlock) -> str:
    return " ".join(f"{label.name}({label.width})" for label in block.labels[:20])


def _grouped(
    blocks: Sequence[FeatureBlock], statistics: Sequence[NDArray[np.int64]]
) -> ExtractedLists:
    """The blocks in the order of their sentences, those of one sentence as they came."""
    order = sorted(range(len(blocks)), key=lambda b: blocks[b].sentence)
    blocks = [blocks[b] for b in order]
    ids = np.array([block.sentence for block in blocks])
    sentences, places = np.unique(ids, return_inverse=True)
    counts = np.bincount(places, weights=list(map(len, blocks))).astype(np.int64)
    return ExtractedLists(
        blocks[0].labels,
        sentences,
        offsets_of(counts),
        np.concatenate([block.values for block in blocks]),
        np.concatenate([statistics[b] for b in order]),
        SparseColumns.of([b.sparse.get(row, {}) for b in blocks for row in range(len(b))]),
    )


def _distinct(found: ExtractedLists) -> ExtractedLists:
    """The hypotheses without duplicates within a sentence. O(n F)."""
    dense = [(found.features + 0.0).view(np.int64), found.statistics]  # + 0.0: of −0 it makes 0
    keys = np.concatenate(dense, axis=1)
    rows = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1])))[:, 0]
    has_sparse = np.diff(found.sparse.indptr) > 0
    kept: list[int] = []
    counts = []
    for start, stop in pairwise(found.offsets.tolist()):
        first: dict[object, int] = {}
        for row, key in enumerate(rows[start:stop].tolist(), start):
            sparse = found.sparse.row(row).items() if has_sparse[row] else ()
            first.setdefault((key, frozenset(pair for pair in sparse if pair[1] != 0)), row)
        kept += first.values()
        counts.append(len(first))
    if len(kept) == len(found.features):
        return found
    chosen = np.array(kept)
    return replace(
        found,
        offsets=offsets_of(np.array(counts)),
        features=found.features[chosen],
        statistics=found.statistics[chosen],
        sparse=found.sparse.take(chosen),
        n_repeated=len(found.features) - len(chosen),
    )
