"""`rerank decode`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from decoders.result import NO_CANDIDATES, Direction
from rerank.commands.distribution import distributed
from rerank.commands.document_run import LinearModel, ListRun, choose_search
from rerank.commands.lists import LineWriter, Lists, in_source_order
from rerank.commands.trace import Trace, trace_lines
from rerank.corpus.documents import DocumentFile
from rerank.corpus.reading import AS_NFC, AS_SOURCE
from rerank.errors import UsageError
from rerank.files.lines import InputFiles
from rerank.files.outputs import atomic_all, check_outputs, nowhere, to_json
from rerank.files.paths import display
from rerank.formats.trace import Choice
from rerank.formats.weights import read_weights
from rerank.notices import Notices, Printer, PythonWarnings, log
from rerank.pipeline.results import CorpusResult, DocumentResult
from rerank.pipeline.searching import AUTO, Search
from rerank.report.explanation import Explanation, split_place
from rerank.scorers import FeatureSource
from rerank.signature import LENGTH, short_digest, signature


@dataclass(frozen=True, slots=True)
class Reports:
    """Files written beside the chosen text.

    kbest: the list with the features of the scorers under the decoded path and new totals;
    summary: choices and scores as JSON; trace: why each choice was made (`trace_file`). explain:
    a document, or a sentence of it (`split_place`), whose choices are explained in words.
    """

    kbest: str | Path | None = None
    summary: str | Path | None = None
    trace: str | Path | None = None
    explain: str | None = None

    def paths(self) -> dict[str, str | Path]:
        """The files to write, by name."""
        files = {"kbest": self.kbest, "summary": self.summary, "trace": self.trace}
        return {name: path for name, path in files.items() if path is not None}


NO_REPORTS = Reports()


def decode(
    lists: Lists,
    weights: str | Path,
    out: str | Path,
    *,
    search: Search = AUTO,
    default_weight: float | None = None,
    reports: Reports = NO_REPORTS,
    dry_run: bool = False,
    notices: Notices | None = None,
    announce: Printer = log.info,
    details: Printer = log.debug,
) -> CorpusResult | None:
    """Choose one candidate for every sentence, document by document, and write them.

    `out` gets one line per source sentence (empty where there is no candidate); after a fault
    neither it nor a report is written. Several processes may share the documents
    (`rerank.commands.distribution`). None after a dry run, after a shard, and in processes of
    `torchrun` other than the first. Memory: the documents searched together
    (`Run.batches`); at order 1 their K×K scores (4 bytes each) as well.
    """
    run = partial(
        _decode,
        weights=weights,
        out=out,
        search=search,
        default_weight=default_weight,
        reports=reports,
        dry_run=dry_run,
    )
    return distributed(run, lists, notices or PythonWarnings(), announce, details)


def _decode(
    lists: Lists,
    notices: Notices,
    announce: Printer,
    details: Printer,
    *,
    weights: str | Path,
    out: str | Path,
    search: Search,
    default_weight: float | None,
    reports: Reports,
    dry_run: bool,
) -> CorpusResult | None:
    """`decode` in one process; with a shard only its scores, which go to the cache."""
    outputs = {"out": out, **reports.paths()}
    inputs = InputFiles([weights, *lists.files])
    check_outputs(outputs.values(), [weights, *lists.files])
    model = LinearModel(read_weights(weights, notices), display(weights), default_weight)
    search = search.at(model.weights.alpha, model.weights.mbr_spread)
    if search.options.n_best > 1 and reports.summary is None:
        raise UsageError("--n-best: the summary lists the paths of a document; give --summary FILE")
    with ListRun.open(lists, notices) as source:
        search = choose_search(source, search, announce)
        explained, sentence = _explained(source, reports.explain)
        if source.sharded is not None and not dry_run:
            with source.scoring_shard(announce), nowhere(len(outputs)) as opened_files:
                files = dict(zip(outputs, opened_files, strict=True))
                for _ in _written(source, model, search, files, explained, lambda line: None):
                    pass
            inputs.check()
            source.report(announce, details)
            return None
        if source.scorers or dry_run:
            source.estimate(search, announce)
        if dry_run:
            return None
        with atomic_all(list(outputs.values())) as opened_files:
            files = dict(zip(outputs, opened_files, strict=True))
            documents = tuple(_written(source, model, search, files, explained, announce))
            signed = _signed(source, weights, search, default_weight, documents)
            result = CorpusResult(documents, signed)
            source.warn()
            inputs.check()
            if "summary" in files:
                files["summary"].write(to_json(result.to_dict()))
        source.report(announce, details)
    for name, found in explained.items():
        result = replace(result, explanation=Explanation.of(found, name, sentence))
    return result


def _explained(source: ListRun, place: str | None) -> tuple[dict[str, list[Choice]], int | None]:
    """A place for the choices of the document that is to be explained, and the sentence."""
    if place is None:
        return {}, None
    name, sentence = split_place(place, source.documents.ids, source.name)
    start, stop = source.documents.span(source.documents.ids.index(name))
    if sentence is not None and sentence >= stop - start:
        raise UsageError(
            f"--explain {place}: {name!r} has {stop - start:,} sentences, counted from 0"
        )
    return {name: []}, sentence


def _signed(
    source: ListRun,
    weights: str | Path,
    search: Search,
    default: float | None,
    results: Sequence[DocumentResult],
) -> str:
    """The signature of a decoding."""
    decoders = sorted({one.search.decoder for one in results} - {NO_CANDIDATES.decoder})
    found = [one.search for one in results if one.search.decoder != NO_CANDIDATES.decoder]
    ways = sorted({one.direction for one in found})
    lists, models, scoring = source.lists, source.models, source.lists.scoring
    return signature(
        {
            "search": "+".join(decoders),
            **search.signed(decoders),
            "exact": all(one.exact for one in results),
            "k": "all" if lists.top is None else lists.top,
            "div": True if lists.diverse else None,
            "norm": AS_NFC if lists.in_nfc else None,
            "missing": AS_SOURCE if lists.missing == AS_SOURCE else None,
            "ctx": "all" if source.order is None else source.order,
            "dir": None if set(ways) <= {Direction.FORWARD} else "+".join(ways),
            "lm": _digests(models),
            "scores": _digests(source.score_files),
            "scorers": _digests(source.plugins),
            "dtype": scoring.dtype if models and scoring.dtype != "float32" else None,
            "det": True if models and scoring.deterministic else None,
            "w": short_digest(weights),
            "dw": default,
            "docs": lists.no_docs or short_digest(lists.docs),
            "field": lists.docs.field if isinstance(lists.docs, DocumentFile) else None,
        }
    )


def _digests(scorers: Sequence[FeatureSource]) -> str | None:
    """`codclm=ab12cd34,…` of some scorers; None without any."""
    return ",".join(f"{scorer.name}={scorer.digest[:LENGTH]}" for scorer in scorers) or None


def _written(
    source: ListRun,
    model: LinearModel,
    search: Search,
    files: Mapping[str, BinaryIO],
    explained: Mapping[str, list[Choice]],
    announce: Printer,
) -> Iterator[DocumentResult]:
    """The result of each document, while its lines are written.

    explained: gets the choices of the documents that it names.
    """
    with ExitStack() as opened:
        ordered = {
            name: opened.enter_context(in_source_order(files[name], source.documents))
            for name in ("out", "kbest")
            if name in files
        }
        yield from _searched(source, model, search, files, ordered, explained, announce)


def _searched(
    source: ListRun,
    model: LinearModel,
    search: Search,
    files: Mapping[str, BinaryIO],
    ordered: Mapping[str, LineWriter],
    explained: Mapping[str, list[Choice]],
    announce: Printer,
) -> Iterator[DocumentResult]:
    """`_written` with writers of the files that have lines for each sentence."""
    errors = tuple(scorer.error for scorer in source.scorers)
    overtaken = 0
    for batch in model.batches(source, search):
        for name, kbest, document, result in batch.each():
            reasons = "trace" in files or name in explained
            if document is not None and (reasons or "summary" in files):
                with source.watch.lap("trace"):
                    trace = Trace.of(document, batch.weights, result, errors)
                    result = trace.result
                    if reasons:
                        trace = trace.with_totals_alone(
                            document, batch.weights, source.scorers, kbest
                        )
                        lines = [
                            *trace_lines(kbest, document, batch.weights, trace, source.systems)
                        ]
                        if "trace" in files:
                            files["trace"].writelines(lines)
                        if name in explained:
                            explained[name].extend(Choice.of(json.loads(line)) for line in lines)
            with source.watch.lap("writing"):
                texts = kbest.chosen(result.choices)
                ordered["out"](enumerate(texts, kbest.first))
                if "kbest" in ordered:
                    write = ordered["kbest"]
                    overtaken += source.write_list(
                        write, kbest, document, result.choices, weights=batch.weights
                    )
            # its marginals would make memory grow with the number of documents
            yield DocumentResult.of(name, kbest, replace(result, posterior=None))
    if overtaken:
        announce(
            "--kbest-out: sentences in which another candidate has a larger total than the chosen "
            f"one: {overtaken}; totals leave out what a candidate changes in other sentences"
        )
