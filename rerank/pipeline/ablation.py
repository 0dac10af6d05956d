"""`rerank ablate`: what the contexts of a decoding are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.commands.document_run import LinearModel, ListRun, choose_search
from rerank.commands.lists import Lists
from rerank.corpus.kbest import KBest
from rerank.errors import UsageError
from rerank.files.lines import InputFiles, spool
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.formats.translations import files_of
from rerank.formats.weights import read_weights
from rerank.metrics import metric
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices, Printer, PythonWarnings, log
from rerank.pipeline.references import read_targets
from rerank.pipeline.searching import AUTO, Search
from rerank.report.comparison import EvaluatedTexts, SystemText
from rerank.report.comparison import evaluate as judge
from rerank.report.evaluation import Evaluation
from rerank.scorers.features import (
    DocumentFeatures,
    after_texts,
    have_contexts,
    without_context,
    without_null,
)

Array = NDArray[np.float64]
EMPTIED, OTHER, DECODED, REFERENCE, RETUNED, FIRST = (
    *("no context", "another document", "as decoded", "references"),
    *("no context, own weights", "first candidates"),
)


def ablate(
    lists: Lists,
    references: Sequence[str | Path],
    weights: str | Path,
    *,
    null_weights: str | Path | None = None,
    search: Search = AUTO,
    default_weight: float | None = None,
    notices: Notices | None = None,
    announce: Printer = log.info,
    details: Printer = log.debug,
) -> Evaluation:
    """Decode as `decode` does, then choose each sentence's candidate in other contexts.

    The weights stay the same; null_weights: weights that were tuned without context, for one more
    choice. In a given context the best candidate of each sentence is its own argmax. The contexts
    of another document are those that the decoding chose there, from the first sentence on and
    around again; each document has another one, by the search's seed. UsageError if no score
    depends on other sentences. Memory: the chosen texts of the corpus.
    """
    notices = notices or PythonWarnings()
    files = [
        *files_of(references, "reference"),
        weights,
        *([null_weights] if null_weights else []),
        *lists.files,
    ]
    check_outputs([], files)
    inputs = InputFiles(files)
    model = LinearModel(read_weights(weights, notices), display(weights), default_weight)
    search = search.at(model.weights.alpha, model.weights.mbr_spread)
    seed = search.options.seed or 1
    with ExitStack() as opened:
        if lists.kbest:  # its own documents are read before the lists
            lists = replace(lists, kbest=opened.enter_context(spool(lists.kbest)).path)
        documents, targets = read_targets(lists, references, notices, announce)
        source = opened.enter_context(ListRun.open(lists, notices, documents=documents))
        if not have_contexts(source.scorers):
            raise UsageError("no scorer here depends on other sentences; give --lm NAME=DIR of one")
        if names := without_null(source.scorers):
            raise UsageError(
                f"--pair-scores {names[0]}: a file has no scores in other contexts; leave it out"
            )
        search = choose_search(source, search, announce)
        found = {DECODED: _decoded(source, model, search)}
        source.warn()  # of words that are counted once: the lists are scored again
        for scorer in source.scorers:
            scorer.lazily()  # in a context that is given, all other histories are in vain
        models = {EMPTIED: model}
        if null_weights is not None:
            own = read_weights(null_weights, notices)
            models[RETUNED] = LinearModel(own, display(null_weights), default_weight)
        for name, texts in _in_contexts(source, models, found[DECODED], targets, seed):
            found.setdefault(name, []).append(texts)
        source.report(announce, details)
    inputs.check()
    names = [name for name in (EMPTIED, OTHER, DECODED, REFERENCE, RETUNED, FIRST) if name in found]
    lines = {name: [line for texts in found[name] for line in texts] for name in names}
    evaluation = judge(
        source.documents,
        EvaluatedTexts(targets, [SystemText(name, lines[name]) for name in names]),
        metric=Bleu(),
        others={name: metric(name) for name in ("chrf", "ter")},
        seed=seed,
    )
    changed = {
        name: sum(a != b for a, b in zip(own, lines[DECODED], strict=True))
        for name, own in lines.items()
    }
    return replace(evaluation, changed=changed)


def _decoded(source: ListRun, model: LinearModel, search: Search) -> list[list[bytes]]:
    """The texts of each document as `decode` chooses them."""
    return [
        kbest.chosen(result.choices)
        for batch in model.batches(source, search)
        for _, kbest, _, result in batch.each()
    ]


def _in_contexts(
    source: ListRun,
    models: dict[str, LinearModel],
    decoded: Sequence[Sequence[bytes]],
    targets: Sequence[Sequence[bytes]],
    seed: int,
) -> Iterator[tuple[str, list[bytes]]]:
    """Name of a kind of context and the texts chosen in it, document by document."""
    model, documents = models[EMPTIED], source.documents
    others = _others(len(documents), seed)
    d = -1
    for batch in model.batches(source):
        for _, kbest, document, _ in batch.each():
            d += 1
            start, stop = documents.span(d)
            if document is None:
                for name in (*models, REFERENCE, FIRST, *([OTHER] if others else [])):
                    yield name, [b""] * (stop - start)
                continue
            yield FIRST, kbest.chosen(document.first())
            alone = without_context(document, source.scorers, kbest)
            for name, one in models.items():
                yield name, _best(alone, document, kbest, one, source.notices)
            contexts = {REFERENCE: [lines[0] for lines in targets[start:stop]]}
            if others:
                other = decoded[others[d]]
                contexts[OTHER] = [other[t % len(other)] for t in range(stop - start)]
            for name, texts in contexts.items():
                features = after_texts(document, source.scorers, kbest, texts)
                yield name, _best(features, document, kbest, model, source.notices)


def _others(n: int, seed: int) -> dict[int, int]:
    """Another document for each of n, in one cycle through all; none for a single one."""
    order = np.random.default_rng(seed).permutation(n).tolist()
    return dict(zip(order, order[1:] + order[:1], strict=True)) if n > 1 else {}


def _best(
    features: Array, document: DocumentFeatures, kbest: KBest, model: LinearModel, notices: Notices
) -> list[bytes]:
    """Text of each sentence's candidate with the largest total."""
    weights = model.vector(document.space, notices)
    totals = features @ weights + kbest.sparse.dot(model.weights.sparse)
    lists = np.split(totals, document.offsets[1:-1])
    return kbest.chosen([int(scores.argmax()) for scores in lists])
