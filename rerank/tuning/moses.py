"""Files of Moses' tuning: features.dat and scores.dat of its extractor, and init.opt of its mert.

`mert-moses.pl` hands i pairs of features.dat and scores.dat to `mert` in its i-th round. A
duplicate, equal to an earlier hypothesis of its sentence in features (sparse ones too) and
statistics, is left out. In init.opt are

    0.3 0.3 -0.2        where to start, a number for each of the F features
    0 0 0               least and
    1 1 1               largest value; random starts of `mert` are drawn between them
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label, SparseColumns
from rerank.errors import InputError, RerankError, UsageError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.files.lines import MAX_LINE_BYTES, read_lines
from rerank.files.paths import display
from rerank.formats.moses_tuning import ExtractorBlock, feature_blocks, statistics_blocks
from rerank.formats.tokens import Place
from rerank.notices import Notices, Printer
from rerank.scorers.features import FeatureSpace
from rerank.tuning.cross_validation import cross_validate
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objective import length_of, objective_of, sentence_bleu
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch, SavedSearches
from rerank.tuning.rounds import TuningLists, search_of_tuned
from rerank.tuning.run import ZEROS, beside_first, gain_text
from rerank.tuning.scale import Scale, fit_scale
from rerank.tuning.selection import Selection
from rerank.tuning.tuners.ascent import Optimum
from rerank.tuning.tuners.mert import PoolResult

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedLists:
    """Hypotheses of S sentences as numbers, n in all.

    labels: names of the features, whose widths sum to F; sentences: (S,) ids, rising; offsets:
    (S+1,), sentence s is rows offsets[s]:offsets[s+1]; features: (n, F) float64, finite;
    statistics: (n, 9) int64, columns as in `rerank.metrics.bleu`; n_repeated: duplicates left out.
    """

    labels: tuple[Label, ...]
    sentences: Integers
    offsets: Integers
    features: Floats
    statistics: Integers
    sparse: SparseColumns
    n_repeated: int = 0

    @property
    def space(self) -> FeatureSpace:
        """The dense features."""
        return FeatureSpace.of(self.labels, (), total=False)


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
    pairs: list[tuple[ExtractorBlock, ExtractorBlock]] = []
    for features_path, scores_path in zip(features, scores, strict=True):
        for block, counts in _pairs(features_path, scores_path, notices):
            if pairs and block.labels != pairs[0][0].labels:
                raise InputError(
                    f"expected the features of {display(features[0])}, {_named(pairs[0][0])}, "
                    f"found {_named(block)}; tune lists of one system at a time",
                    source=display(features_path),
                    line=block.line,
                )
            pairs.append((block, counts))
    if not any(block.n for block, _ in pairs):
        raise InputError("expected hypotheses to tune on, found none", source=display(features[0]))
    return _merged(*zip(*pairs, strict=True))


def _pairs(
    features: str | Path, scores: str | Path, notices: Notices
) -> Iterator[tuple[ExtractorBlock, ExtractorBlock]]:
    """The blocks of two files, in pairs; `InputError` where they do not belong together."""
    names = display(features), display(scores)
    for block, counts in zip_longest(
        feature_blocks(read_lines(features, notices), notices, source=names[0]),
        statistics_blocks(read_lines(scores, notices), notices, source=names[1]),
    ):
        if block and counts and _described(block) == _described(counts):
            yield block, counts
            continue
        expected = f"{_described(block)} as in {names[0]}" + (f":{block.line}" if block else "")
        raise InputError(
            f"expected {expected}, found {_described(counts)}; "
            "take both files from one run of extractor",
            source=names[1],
            line=counts.line if counts else None,
        )


def _described(block: ExtractorBlock | None) -> str:
    if block is None:
        return "the end of the file"
    return f"{block.n} hypotheses of sentence {block.sentence}"


def _named(block: ExtractorBlock) -> str:
    return " ".join(f"{label.name}({label.width})" for label in block.labels[:20])


def _merged(blocks: Sequence[ExtractorBlock], counts: Sequence[ExtractorBlock]) -> ExtractedLists:
    """The hypotheses in the order of their sentences, without duplicates. O(n F log n)."""
    sentences = np.repeat([block.sentence for block in blocks], [block.n for block in blocks])
    features = np.concatenate([block.values for block in blocks])
    statistics = np.concatenate([block.values for block in counts]).astype(np.int64)
    nothing: Mapping[str, float] = {}
    sparse = SparseColumns.of([b.sparse.get(row, nothing) for b in blocks for row in range(b.n)])
    bits = (features + 0.0).view(np.int64)  # + 0.0: of −0 it makes 0
    keys = np.column_stack([sentences, bits, statistics, _sparse_keys(sparse)])
    rows = keys.view(np.dtype((np.void, keys.dtype.itemsize * keys.shape[1])))[:, 0]
    kept = np.sort(np.unique(rows, return_index=True)[1])  # the first of equal rows
    kept = kept[np.argsort(sentences[kept], kind="stable")]
    ids = np.unique([block.sentence for block in blocks])
    return ExtractedLists(
        blocks[0].labels,
        ids,
        np.append(np.searchsorted(sentences[kept], ids), len(kept)),
        features[kept],
        statistics[kept],
        sparse.take(kept),
        n_repeated=len(features) - len(kept),
    )


def _sparse_keys(sparse: SparseColumns) -> Integers:
    """A number (n,) for each row, equal for rows with equal sparse features."""
    keys = np.zeros(len(sparse.indptr) - 1, np.int64)
    numbers: dict[frozenset[tuple[str, float]], int] = {}
    for row in np.flatnonzero(np.diff(sparse.indptr)).tolist():
        present = frozenset(pair for pair in sparse.row(row).items() if pair[1] != 0)
        keys[row] = numbers.setdefault(present, len(numbers) + 1) if present else 0
    return keys


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedTuning:
    """Weights (F,) tuned on extracted lists, and where they come from.

    pool, search: of the tuned columns; result: the weights on the pool; selection: what
    cross-validation chose, None without it
    """

    weights: Floats
    pool: Pool
    search: PoolSearch
    result: PoolResult
    selection: Selection | None

    def verdict(self) -> str:
        """Whether the weights are better than the first hypotheses on held-out lists, in words."""
        n_units = self.selection.n_units if self.selection else 0
        return beside_first(self.selection, "BLEU", n_units)

    def scale(self, notices: Notices) -> Scale | None:
        """The scale of p(hypothesis) ∝ exp(α · score) on these lists, if it can be fitted."""
        scores = self.pool.scores(self.result.best.weights)
        return fit_scale(scores, sentence_bleu(self.pool.statistics), self.pool.offsets, notices)

    def entries(self) -> dict[str, object]:
        """Entries of a weights file about the lists that the weights were tuned on."""
        best, optima = self.result.best, [optimum.bleu for optimum in self.result.optima]
        return {
            "statistics": "Moses' extractor",
            "bleu": best.bleu,
            "length_ratio": length_of(best.statistics),
            "optima": {
                "found": len(optima),
                "bleu": np.quantile(optima, [0, 0.5, 1]).tolist() if optima else [],
            },
        }

    def to_text(self) -> str:
        """One line for people: BLEU before and after, and the price of direction."""
        start = "start", self.result.start.statistics
        return gain_text(self.result.best.statistics, start, self.search.goal, self.selection)


def tune_extracted(
    data: ExtractedLists, features: TunedFeatures, plan: Plan, notices: Notices, announce: Printer
) -> ExtractedTuning:
    """Weights tuned on extracted lists; RerankError where only all-zero weights are reached."""
    columns, full = features.columns(data.space), features.start(data.space)
    held = np.setdiff1d(np.arange(len(full)), columns)
    # what is not tuned is fixed: these columns, and sparse features; one without weight counts 0
    fixed = data.sparse.dot(features.other_sparse(data.space)) + data.features[:, held] @ full[held]
    pool = Pool(data.offsets, data.features[:, columns], data.statistics, fixed)
    start, lists = full[columns], TuningLists(pool)
    search = search_of_tuned(
        plan,
        features,
        data.space,
        objective_of(plan.objective_options, ()),
        first=pool.first.sum(axis=0),
        settled=bool(pool.fixed.any()),
        lists=lambda: lists,
        saved=SavedSearches(),
    )
    announce(f"maximised: {search.goal.name}")
    selection = cross_validate(lists, start, search, notices, announce)
    search.report(pool, notices)
    if selection and not start.any() and selection.beside_first.difference < 0:
        notices.add("worse-than-first")
    if selection:
        chosen = Optimum.at(pool, selection.weights(selection.tuned), search.goal)
        result = PoolResult(chosen, Optimum.at(pool, start, search.goal))
    else:
        result = search.result(pool, start)
    full[columns] = result.best.weights
    if not full.any():
        raise RerankError(ZEROS)
    return ExtractedTuning(full, pool, search, result, selection)


def read_init_opt(path: str | Path, names: Sequence[str], notices: Notices) -> Floats:
    """Start weights of the F features `names`, from an init.opt; a notice of ranges unlike 0 to 1.

    `InputError` for another number of lines or of values, for a value that is not finite, and for
    a least value above the largest.
    """
    place, rows = Place(display(path), notices), list[Floats]()
    for line in place.numbered(read_lines(path, notices, max_bytes=MAX_LINE_BYTES)):
        tokens = line.split()
        row = [float(token) if NUMBER.fullmatch(token) else math.nan for token in tokens]
        for token, value in zip(tokens, row, strict=True):
            if not abs(value) <= LARGEST:
                raise place.fault(f"expected a finite decimal number, found {shown(token)}")
        if row and len(row) != len(names):
            raise place.fault(
                f"expected {len(names)} values, for {names[0]} … {names[-1]}, found {len(row)}"
            )
        rows += [np.array(row)] if row else []
        if len(rows) > 3:
            break
    if len(rows) != 3:
        more = " or more" if len(rows) > 3 else ""
        raise InputError(
            f"expected three lines, start, least and largest values, found {len(rows)}{more}",
            source=place.source,
        )
    start, lowest, highest = rows
    for name, least, largest in zip(names, lowest, highest, strict=True):
        if least > largest:
            raise InputError(
                f"expected a range for {name}, found {least:g} to {largest:g}; "
                "lines are start, least, largest",
                source=place.source,
            )
    if lowest.any() or (highest != 1).any():  # 0 to 1 is the default of mert-moses.pl
        notices.add("other-ranges", source=place.source)
    return start
