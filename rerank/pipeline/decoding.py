"""`rerank decode` and `rerank score`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.corpus.totals import Disagreement
from rerank.errors import UsageError
from rerank.files.lines import display
from rerank.files.outputs import atomic, atomic_all, check_outputs, to_json
from rerank.formats.weights import Weights, read_weights, vector
from rerank.notices import Notices
from rerank.pipeline.choices import Choice, Decoding
from rerank.pipeline.estimate import estimate
from rerank.pipeline.lists import Announce, Lists, Opened
from rerank.pipeline.searching import (
    AUTO,
    Search,
    Searched,
    note_extinction,
    say_search,
    searched,
)
from rerank.pipeline.tracing import Traced, stated_error, trace_lines
from rerank.scorers import Scorer
from rerank.scorers.features import TOTAL, Document, Space
from rerank.signature import LENGTH, short_digest, signature


@dataclass(frozen=True, slots=True)
class Reports:
    """Files that tell more of a decoding than the chosen text.

    kbest: the list with the features of the scorers under the decoded path and new totals;
    summary: choices and scores as JSON; trace: why each choice was made (`tracing`).
    """

    kbest: str | Path | None = None
    summary: str | Path | None = None
    trace: str | Path | None = None

    def asked(self) -> dict[str, str | Path]:
        """Those that are wanted, by name."""
        named = {"kbest": self.kbest, "summary": self.summary, "trace": self.trace}
        return {name: path for name, path in named.items() if path is not None}


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
    notices: Notices,
    announce: Announce = lambda line: None,
) -> Decoding | None:
    """Choose one candidate for every sentence, document by document, and write them.

    `out` gets one line per source sentence (empty where there is no candidate); after a fault
    neither it nor a report is written. Memory: the documents searched together
    (`Opened.batches`); at order 1 their K×K scores (4 bytes each) as well. None after a dry run.
    """
    read = [weights, *lists.files]
    outputs = {"out": out, **reports.asked()}
    check_outputs(outputs.values(), read)
    found = _Given(read_weights(weights, notices), display(weights), default_weight)
    search = search.at(found.weights.alpha)
    if search.options.n_best > 1 and reports.summary is None:
        raise UsageError("--n-best: the summary tells the paths of a document; give --summary FILE")
    with Opened(lists, notices) as opened:
        search = say_search(opened, search, announce)
        if opened.scorers or dry_run:
            estimate(opened, search, announce)
        if dry_run:
            return None
        with atomic_all(list(outputs.values())) as opened_files:
            files = dict(zip(outputs, opened_files, strict=True))
            choices = tuple(_decoded(opened, found, search, files))
            result = Decoding(choices, _signed(opened, weights, search, found.default, choices))
            opened.warn()
            if "summary" in files:
                files["summary"].write(to_json(result.to_dict()))
        opened.report(announce)
    return result


def _signed(
    opened: Opened,
    weights: str | Path,
    how: Search,
    default: float | None,
    choices: Sequence[Choice],
) -> str:
    """The signature of a decoding."""
    searches = sorted({choice.search for choice in choices if choice.search != "none"})
    lists, models = opened.lists, opened.models
    orders = [scorer.order for scorer in opened.scorers]
    scoring = lists.scoring
    return signature(
        {
            "search": "+".join(searches),
            **how.signed(searches),
            "exact": all(choice.exact for choice in choices),
            "k": "all" if lists.top is None else lists.top,
            "div": True if lists.diverse else None,
            "ctx": "all" if None in orders else max([0, *filter(None, orders)]),
            "lm": _digests(models),
            "scores": _digests(opened.outside),
            "dtype": scoring.dtype if models and scoring.dtype != "float32" else None,
            "det": True if models and scoring.deterministic else None,
            "w": short_digest(weights),
            "dw": default,
            "docs": lists.no_docs or short_digest(lists.docs),
        }
    )


def _digests(scorers: Sequence[Scorer]) -> str | None:
    """`codclm=ab12cd34,…` of some scorers, None of none."""
    return ",".join(f"{scorer.name}={scorer.digest[:LENGTH]}" for scorer in scorers) or None


def score(
    lists: Lists,
    out: str | Path = "-",
    *,
    weights: str | Path | None = None,
    search: Search = AUTO,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> None:
    """Write the list back with the features of the language models appended.

    All candidates of a sentence are scored after the same prefix: the first candidates of
    its document's earlier sentences, or the decoded path where weights are given.
    """
    if not lists.lms and not any(lists.outside.values()):
        raise UsageError("nothing to score with; give at least one --lm NAME=DIR")
    if weights is None and search != Search():
        raise UsageError(
            "--search and its options are for the path decoded with --weights; give these"
        )
    check_outputs([out], [*lists.files, *([weights] if weights else [])])
    found = None if weights is None else read_weights(weights, notices)
    search = search.at(found.alpha if found else None)
    source = display(weights or "")
    prefix = "first candidates" if found is None else "decoded path"
    announce(f"candidates are scored after the {prefix} of their document's earlier sentences")
    with Opened(lists, notices) as opened:
        if found is None:
            estimate(opened, Search("greedy"), announce)
        else:
            search = say_search(opened, search, announce)
            estimate(opened, search, announce)
        column: NDArray[np.float64] | None = None  # the labels of all documents are the same
        with atomic(out) as file:
            for batch in opened.batches():
                filled = [(name, kbest) for name, kbest in batch if kbest.n]
                if not filled:
                    continue
                space = opened.space(filled[0][1], total=found is not None and TOTAL in found.dense)
                documents = opened.prepared(filled, space, found.sparse if found else {})
                paths = [document.first() for document in documents]
                if found is not None:
                    if column is None:
                        column = vector(found, space.labels, notices=notices, source=source)
                    with opened.searching():
                        kbests = [kbest for _, kbest in filled]
                        found_paths = searched(documents, column, search, kbests)
                    for one in found_paths:
                        note_extinction(one, opened)
                    paths = [one.choices for one in found_paths]
                for (_, kbest), document, choices in zip(filled, documents, paths, strict=True):
                    file.writelines(_list_lines(opened, kbest, document, choices))
                opened.finished(documents)
            opened.warn()
        opened.report(announce)


@dataclass(frozen=True, slots=True)
class _Given:
    """Weights, the file they come from, and what features count that it lacks."""

    weights: Weights
    source: str
    default: float | None

    def vector(self, space: Space, notices: Notices) -> NDArray[np.float64]:
        """Weights (F,) of a space's columns."""
        return vector(
            self.weights, space.labels, default=self.default, notices=notices, source=self.source
        )


def _decoded(
    opened: Opened,
    given: _Given,
    how: Search,
    files: Mapping[str, BinaryIO],
) -> Iterator[Choice]:
    """Choices of each document, while its lines are written."""
    text, rescored = files["out"], files.get("kbest")
    totals = Disagreement(display(opened.lists.kbest))
    errors = tuple(scorer.error for scorer in opened.scorers)
    column = np.zeros(0)  # the labels of all documents are the same
    for batch in opened.batches():
        filled = [(name, kbest) for name, kbest in batch if kbest.n]
        documents: list[Document] = []
        paths: list[Searched] = []
        if filled:
            space = opened.space(filled[0][1], total=TOTAL in given.weights.dense)
            if not len(column):
                column = given.vector(space, opened.notices)
            documents = opened.prepared(filled, space, given.weights.sparse)
            with opened.searching():
                paths = searched(documents, column, how, [kbest for _, kbest in filled])
        done = iter(zip(documents, paths, strict=True))
        for name, kbest in batch:
            if not kbest.n:
                text.write(b"\n" * len(kbest))
                yield Choice.empty(name, len(kbest))
                continue
            document, found = next(done)
            note_extinction(found, opened)
            if not opened.scorers and not document.space.total:
                totals.add(kbest, document.static @ column + document.sparse)
            near_ties = None
            if files.keys() & {"summary", "trace"}:
                with opened.watch.lap("trace"):
                    near_ties = _traced(kbest, document, column, found, errors, files.get("trace"))
            with opened.watch.lap("writing"):
                _write_text(text, kbest, document, found.choices)
                if rescored is not None:
                    rescored.writelines(_list_lines(opened, kbest, document, found.choices, column))
            yield Choice.of(name, kbest, found, near_ties)
        opened.finished(documents)
    totals.report(opened.notices)


def _traced(
    kbest: KBest,
    document: Document,
    weights: NDArray[np.float64],
    found: Searched,
    errors: tuple[float, ...],
    file: BinaryIO | None,
) -> int:
    """The number of near-ties; the document's trace is written where there is a file for it."""
    traced = Traced.of(document, weights, found.choices)
    if file is not None:
        file.writelines(trace_lines(kbest, document, weights, found, traced))
    return traced.near_ties(stated_error(document, weights, errors))


def _write_text(file: BinaryIO, kbest: KBest, document: Document, choices: Sequence[int]) -> None:
    """The text of every sentence's choice, an empty line where it has no candidates."""
    lines = [b""] * len(kbest)
    for t, row in zip(document.present.tolist(), document.rows(choices).tolist(), strict=True):
        lines[t] = kbest.text(row)
    file.writelines(line + b"\n" for line in lines)


def _list_lines(
    opened: Opened,
    kbest: KBest,
    document: Document,
    choices: Sequence[int],
    weights: NDArray[np.float64] | None = None,
) -> Iterator[bytes]:
    """The document's lines with the scorers' features under a path and, given weights, totals."""
    space = document.space
    features = document.under(choices)
    totals = None if weights is None else features @ weights + document.sparse
    added = features[:, space.list_width :]
    names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
    first_id = opened.lists.first_id
    for line in opened.format.write(kbest, names, added, totals, first_id=first_id):
        yield line + b"\n"
