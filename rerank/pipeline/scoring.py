"""`rerank score`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rerank.commands.distribution import distributed
from rerank.commands.document_run import LinearModel, ListRun, choose_search
from rerank.commands.lists import Lists, in_source_order
from rerank.errors import UsageError
from rerank.files.lines import InputFiles
from rerank.files.outputs import atomic, check_outputs, nowhere
from rerank.files.paths import display
from rerank.formats.weights import read_weights
from rerank.notices import Notices, Printer, PythonWarnings, log
from rerank.pipeline.searching import AUTO, Search


def score(
    lists: Lists,
    out: str | Path = "-",
    *,
    weights: str | Path | None = None,
    default_weight: float | None = None,
    search: Search = AUTO,
    notices: Notices | None = None,
    announce: Printer = log.info,
    details: Printer = log.debug,
) -> None:
    """Write the list back, or that made of systems, with the scorers' features appended.

    All candidates of a sentence are scored in the same context: the first candidates of its
    document's earlier sentences (later ones, for models that read documents from the last
    sentence), or the decoded path where weights are given. Several processes may share the
    documents, as for `decode`.
    """
    run = partial(_score, out=out, weights=weights, default_weight=default_weight, search=search)
    distributed(run, lists, notices or PythonWarnings(), announce, details)


def _score(
    lists: Lists,
    notices: Notices,
    announce: Printer,
    details: Printer,
    *,
    out: str | Path,
    weights: str | Path | None,
    default_weight: float | None,
    search: Search,
) -> None:
    """`score` in one process; with a shard only its scores, which go to the cache."""
    if not any(lists.names.values()) and not lists.systems:
        raise UsageError("nothing to score with; give at least one --lm NAME=DIR")
    unused = replace(search, options=replace(search.options, alpha=None, seed=None))
    if weights is None and (unused != Search() or default_weight is not None):
        raise UsageError(
            "--search, its options and --default-weight are for the path decoded with --weights; "
            "give these"
        )
    files = [*lists.files, *([weights] if weights else [])]
    inputs = InputFiles(files)
    check_outputs([out], files)
    model = None
    if weights is not None:
        model = LinearModel(read_weights(weights, notices), display(weights), default_weight)
        search = search.at(model.weights.alpha, model.weights.mbr_spread)
    prefix = "first candidates" if model is None else "decoded path"
    if any(lists.names.values()):
        announce(f"candidates are scored after the {prefix} of their document's earlier sentences")
    with ListRun.open(lists, notices) as source:
        for scorer in source.scorers:
            if scorer.given_later:
                announce(
                    f"{scorer.name}: after the {prefix} of later sentences, since its model reads "
                    "documents from the last"
                )
            if not scorer.causal:
                announce(
                    f"{scorer.name}: given the {prefix} of both sides, since its model reads the "
                    "next sentence, too"
                )
        if model is not None:
            search = choose_search(source, search, announce)
        if source.sharded is not None:
            with source.scoring_shard(announce), nowhere(1) as (file,):
                _write_lists(file, source, model, search)
            inputs.check()
        else:
            if source.scorers:
                source.estimate(search if model else None, announce)
            with atomic(out) as file:
                _write_lists(file, source, model, search)
                source.warn()
                inputs.check()
        source.report(announce, details)


def _write_lists(
    file: BinaryIO, source: ListRun, model: LinearModel | None, search: Search
) -> None:
    """Write all lists with the scorers' features under first candidates or the decoded path."""
    batches = model.batches(source, search) if model else source.batches(lambda space: None)
    with in_source_order(file, source.documents) as write:
        for batch in batches:
            for _, kbest, document, result in batch.each():
                first = () if document is None else document.first()
                source.write_list(write, kbest, document, result.choices if model else first)
