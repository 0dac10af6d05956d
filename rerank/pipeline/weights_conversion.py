"""Weights of one tool written for another."""

from __future__ import annotations

from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.files.inputs import InputFiles
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import FilePath, display
from rerank.formats.moses_ini import merged
from rerank.formats.table import opened
from rerank.formats.weight_formats import to_bytes
from rerank.formats.weights import Weights, fitted_to, read_base, read_weights
from rerank.notices import Notices, PythonWarnings
from rerank.registry import MOSES_INI, WEIGHT_FORMATS


def convert_weights(
    source: FilePath,
    to: str,
    out: FilePath = "-",
    *,
    base: FilePath | None = None,
    kbest: FilePath | None = None,
    notices: Notices | None = None,
) -> Weights:
    """Write the weights of a file in the format `to`, and return them.

    The format of the file is recognised (`read_weights`). to: a name of
    `rerank.registry.WEIGHT_FORMATS`, or
    `moses-ini`, for which `base` is the moses.ini to write them into. kbest: a list for whose
    features the weights are, for weights without names (F0, F1, …) or with those of other tools
    (`rerank.formats.weight_names`), and for the formats cdec and travatar, which get its names.
    O(number of weights).
    """
    notices = notices or PythonWarnings()
    if to != MOSES_INI:
        WEIGHT_FORMATS.named(to)
    if (base is not None) != (to == MOSES_INI):
        raise UsageError("--to moses-ini and --base: expected both or none; give both")
    files = [path for path in (source, base, kbest) if path is not None]
    check_outputs([out], files)
    inputs = InputFiles(files)
    weights = read_weights(source, notices)
    if kbest is not None:
        weights = _named(weights, kbest, display(source))
    if base is None:
        content = to_bytes(weights, to, notices)
    else:
        lines = read_base(base, notices)
        new = merged(
            lines, weights.dense, weights.sparse, weights.alpha, notices, source=display(base)
        )
        content = b"".join(line + b"\n" for line in new)
    inputs.check()
    with atomic(out) as file:
        file.write(content)
    return weights


def _named(weights: Weights, kbest: FilePath, source: str) -> Weights:
    """The weights under the names of a list's features."""
    labels = _labels(kbest)
    named = fitted_to(weights, labels, source=source)
    if (named.dense, named.decoder_names) == (weights.dense, weights.decoder_names):
        raise UsageError(
            f"--kbest {display(kbest)}: the weights have names of the list already, or the "
            "features of the list have none; leave it out"
        )
    return named


def _labels(kbest: FilePath) -> tuple[Label, ...]:
    """The features of a list."""
    notices = Notices()
    known, lines = opened(kbest, notices)
    for rows in known.read(lines, notices, source=display(kbest), clip=1.0):
        return tuple(rows.labels)
    raise InputError("expected a k-best list, found no hypotheses", source=display(kbest))
