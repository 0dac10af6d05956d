"""`rerank tune-moses`: weights from the files of Moses' extractor, in place of its mert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rerank
from rerank.bleu import corpus_bleu
from rerank.columns import column_names
from rerank.errors import InputError, RerankError, UsageError
from rerank.formats.moses import Label
from rerank.formats.moses_ini import merged
from rerank.formats.unnamed import by_place
from rerank.lines import digest, display, read_lines
from rerank.notices import Notices
from rerank.outputs import check_outputs
from rerank.pipeline.lists import Announce
from rerank.tuning.ascent import Optimum
from rerank.tuning.extracted import Extracted, read_extracted
from rerank.tuning.mert import Settings, optimise
from rerank.tuning.pool import Pool
from rerank.tuning.scale import Scale, fit_scale
from rerank.tuning.start import read_init_opt
from rerank.weights import SUFFIXES, Weights, read_weights, vector, write_weights


@dataclass(frozen=True, slots=True)
class MosesTuning:
    """What `tune_moses` found, on its pool: BLEU and length ratio, the start weights' too."""

    weights: Weights
    bleu: float
    length_ratio: float
    start_bleu: float
    start_ratio: float

    def to_text(self) -> str:
        """One line for people."""
        return (
            f"tuned BLEU {self.bleu:.2f} (length ratio {self.length_ratio:.3f}); start "
            f"{self.start_bleu:.2f} ({self.start_ratio:.3f})"
        )


def tune_moses(
    features: Sequence[str | Path],
    scores: Sequence[str | Path],
    out: str | Path,
    *,
    start: str | Path | None = None,
    init: str | Path | None = None,
    base: str | Path | None = None,
    settings: Settings | None = None,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> MosesTuning:
    """Tune weights on pairs of features.dat and scores.dat, and write them to `out`.

    All dense features are tuned. They start from `start`, any file of weights, or from `init`, an
    init.opt, or from 0; what `start` says of sparse features counts, but is not tuned. `base` is a
    moses.ini: `out` is then that file with the new weights in it. Of the pairs of all rounds of
    mert-moses.pl, hypotheses that come again count once. O(n F) memory.
    """
    settings = settings or Settings()
    files = [*features, *scores, *(path for path in (start, init, base) if path)]
    check_outputs([out], files)
    if Path(out).suffix not in (SUFFIXES if base is None else (".ini",)):
        expected = " or ".join(SUFFIXES) if base is None else ".ini, as --base is one"
        raise UsageError(f"--out {out}: expected a weights file {expected}")
    given = None if start is None else read_weights(start, notices)
    frame = None if base is None else list(read_lines(base, notices))
    data = read_extracted(features, scores, notices)
    announce(
        f"{len(data.features)} hypotheses of {len(data.sentences)} sentences, "
        f"{data.n_repeated} that came again left out"
    )
    begin = _Start.of(data, given, notices, files=(start, init), announce=announce)
    if lacking := set(data.sparse.names) - begin.sparse.keys():
        kind = "sparse feature without weight, counted as 0"
        notices.add(kind, source=display(start or features[0]), count=len(lacking))
    if frame is not None:  # refused before the work, not after it
        zeros = _by_name(np.zeros_like(begin.dense), data.labels)
        merged(frame, zeros, begin.sparse, None, Notices(), source=display(base or ""))
    pool = data.pool(begin.sparse)
    names = column_names(data.labels)
    found = optimise(pool, begin.dense, notices, names=names, settings=settings)
    best = found.best
    if not best.weights.any():
        raise RerankError("tuning found no weights; give some to start from with --start")
    scale = _scale(pool, best.weights, notices)
    if scale:
        announce(scale.to_text())
    weights = Weights(
        _by_name(best.weights, data.labels),
        begin.sparse,
        scale.alpha if scale else None,
        _provenance(files, settings, best, scale),
    )
    write_weights(out, weights, base=frame, notices=notices)
    return MosesTuning(weights, best.bleu, best.ratio, found.start.bleu, found.start.ratio)


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """Weights (F,) of the dense features to start from, and those of the sparse ones."""

    dense: NDArray[np.float64]
    sparse: Mapping[str, float]

    @classmethod
    def of(
        cls,
        data: Extracted,
        given: Weights | None,
        notices: Notices,
        *,
        files: tuple[str | Path | None, str | Path | None],
        announce: Announce,
    ) -> _Start:
        """The start for the features of the data; `files` are those of --start and --init."""
        start, init = (None if path is None else display(path) for path in files)
        dense = np.zeros(data.features.shape[1])
        if files[1] is not None:
            ranges = read_init_opt(files[1], column_names(data.labels), notices)
            if not ranges.usual:
                notices.add(
                    "ranges other than 0 to 1, not kept to: weights may leave them, as those of "
                    "Moses' mert may",
                    source=init or "",
                )
            dense = ranges.weights
        if given is None or start is None:
            return cls(dense, {})
        if init is not None:
            announce(f"start weights are those of {start}, not of {init}")
        known = by_place(given.dense, data.labels, source=start)
        missing = [label.name for label in data.labels if label.name not in known]
        if missing:
            announce(f"features that {start} has no weight for begin at 0: {', '.join(missing)}")
        _refuse_columns(given, data, start)
        return cls(vector(given, data.labels, default=0.0, source=start), given.sparse)


def _refuse_columns(given: Weights, data: Extracted, source: str) -> None:
    """`InputError` for weights of `LM0_0`, which would be those of a sparse feature."""
    columns = {f"{label.name}_{i}" for label in data.labels for i in range(label.width)}
    if wrong := sorted(columns & given.sparse.keys()):
        name = wrong[0].rpartition("_")[0]
        raise InputError(
            f"expected weights of features as a line '{name}= w w', found one of {wrong[0]!r}",
            source=source,
        )


def _scale(pool: Pool, weights: NDArray[np.float64], notices: Notices) -> Scale | None:
    """The scale of weights (F,): the best candidates of each list by BLEU."""
    quality = corpus_bleu(pool.statistics.astype(np.int64), effective_order=True)
    return fit_scale(pool.scores(weights), quality, pool.offsets, notices)


def _by_name(weights: NDArray[np.float64], labels: Sequence[Label]) -> dict[str, tuple[float, ...]]:
    ends = np.cumsum([label.width for label in labels])[:-1]
    parts = np.split(weights, ends)
    return {label.name: tuple(part.tolist()) for label, part in zip(labels, parts, strict=True)}


def _provenance(
    files: Sequence[str | Path], settings: Settings, best: Optimum, scale: Scale | None
) -> dict[str, object]:
    """What a weights file says of its making: objective, seed, digests of the inputs."""
    return {
        "rerank": rerank.__version__,
        "algorithm": "mert",
        "objective": "corpus BLEU of the statistics of Moses' extractor",
        "seed": settings.seed,
        "random_starts": settings.random_starts,
        "inputs": [{"file": Path(f).name, "digest": digest(f)} for f in files if Path(f).is_file()],
        "bleu": best.bleu,
        "length_ratio": best.ratio,
        **({"alpha_error": scale.error, "alpha_lists": scale.n_lists} if scale else {}),
    }
