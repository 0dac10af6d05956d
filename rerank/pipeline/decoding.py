"""`rerank decode` and `rerank score`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.features import TOTAL, Document, Space
from rerank.formats.moses_writing import append_features
from rerank.kbest import KBest
from rerank.lines import display
from rerank.notices import Notices
from rerank.outputs import atomic, atomic_all, check_outputs, to_json
from rerank.pipeline.estimate import estimate
from rerank.pipeline.lists import Announce, Lists, Opened
from rerank.pipeline.searching import AUTO, Search, Searched, say_search, searched
from rerank.signature import LENGTH, short_digest, signature
from rerank.totals import Disagreement
from rerank.weights import Weights, read_weights, vector


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided for one document.

    score: of the path found; baseline_score: of the path of first candidates; exact:
    whether no path can be better; choices: index into each sentence's list, None where it
    has no candidates.
    """

    id: str
    score: float
    baseline_score: float
    exact: bool
    search: str
    choices: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """All documents' choices, and totals; `signature` says what decided them."""

    documents: tuple[Choice, ...]
    signature: str = ""

    def to_dict(self) -> dict[str, object]:
        """The `--summary` object."""
        changed = sum(1 for d in self.documents for c in d.choices if c)
        return {
            "schema": 1,
            "signature": self.signature,
            "documents": [
                {
                    "id": d.id,
                    "score": d.score,
                    "baseline_score": d.baseline_score,
                    "exact": d.exact,
                    "search": d.search,
                    "choices": list(d.choices),
                }
                for d in self.documents
            ],
            "score": sum(d.score for d in self.documents),
            "baseline_score": sum(d.baseline_score for d in self.documents),
            "exact": all(d.exact for d in self.documents),
            "sentences": sum(len(d.choices) for d in self.documents),
            "changed": changed,
        }

    def to_text(self) -> str:
        """One line for people."""
        total = self.to_dict()
        searches = sorted({d.search for d in self.documents})
        exact = "exact" if total["exact"] else "not exact"
        return (
            f"{len(self.documents)} documents, {total['sentences']} sentences, {total['changed']} "
            f"changed; model score {total['score']:.3f} (first candidates "
            f"{total['baseline_score']:.3f}); search {', '.join(searches)}, {exact}"
            + (f"\n{self.signature}" if self.signature else "")
        )


def decode(
    lists: Lists,
    weights: str | Path,
    out: str | Path,
    *,
    search: Search = AUTO,
    default_weight: float | None = None,
    kbest_out: str | Path | None = None,
    summary: str | Path | None = None,
    dry_run: bool = False,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> Decoding | None:
    """Choose one candidate for every sentence, document by document, and write them.

    `out` gets one line per source sentence (empty where there is no candidate), `kbest_out`
    the list with the features of the language models under the decoded path and new totals,
    `summary` the choices as JSON; after a fault none of them is written. Memory: the documents
    searched together (`Opened.batches`); at order 1 their K×K scores (4 bytes each) as well.
    None after a dry run.
    """
    read = [weights, lists.kbest, *([lists.docs] if lists.docs else [])]
    named = {"out": out, "kbest_out": kbest_out, "summary": summary}
    outputs = {name: path for name, path in named.items() if path is not None}
    check_outputs(outputs.values(), read)
    found = _Given(read_weights(weights, notices), display(weights), default_weight)
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
    lists, scorers = opened.lists, opened.scorers
    orders = [scorer.order for scorer in scorers]
    models = [f"{scorer.name}={scorer.saved.digest[:LENGTH]}" for scorer in scorers]
    scoring = lists.scoring
    return signature(
        {
            "search": "+".join(searches),
            "beam": how.beam if "beam" in searches else None,
            "exact": all(choice.exact for choice in choices),
            "k": "all" if lists.top is None else lists.top,
            "ctx": "all" if None in orders else max([0, *filter(None, orders)]),
            "lm": ",".join(models) or None,
            "dtype": scoring.dtype if scorers and scoring.dtype != "float32" else None,
            "det": True if scorers and scoring.deterministic else None,
            "w": short_digest(weights),
            "dw": default,
            "docs": lists.no_docs or short_digest(lists.docs),
        }
    )


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
    if not lists.lms:
        raise UsageError("nothing to score with; give at least one --lm NAME=DIR")
    if weights is None and search != Search():
        raise UsageError("--search and --beam are for the path decoded with --weights; give these")
    read = [lists.kbest, *(path for path in (lists.docs, weights) if path)]
    check_outputs([out], read)
    found = None if weights is None else read_weights(weights, notices)
    source = display(weights or "")
    prefix = "first candidates" if found is None else "decoded path"
    announce(f"candidates are scored after the {prefix} of their document's earlier sentences")
    with Opened(lists, notices) as opened:
        if found is None:
            estimate(opened, Search("greedy", 1), announce)
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
                        paths = [one.choices for one in searched(documents, column, search)]
                for (_, kbest), document, choices in zip(filled, documents, paths, strict=True):
                    _write_list(file, kbest, document, choices)
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
    text, rescored = files["out"], files.get("kbest_out")
    totals = Disagreement(display(opened.lists.kbest))
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
                paths = searched(documents, column, how)
        done = iter(zip(documents, paths, strict=True))
        for name, kbest in batch:
            if not kbest.n:
                text.write(b"\n" * len(kbest))
                yield Choice(name, 0.0, 0.0, True, "none", (None,) * len(kbest))
                continue
            document, found = next(done)
            if not opened.scorers and not document.space.total:
                totals.add(kbest, document.static @ column + document.sparse)
            with opened.watch.lap("writing"):
                choices = _written(kbest, document, found, text)
                if rescored is not None:
                    _write_list(rescored, kbest, document, found.choices, column)
            yield Choice(
                name, found.score, found.baseline_score, found.exact, found.decoder, choices
            )
        opened.finished(documents)
    totals.report(opened.notices)


def _written(
    kbest: KBest, document: Document, found: Searched, text: BinaryIO
) -> tuple[int | None, ...]:
    """The choice of every sentence, its text written."""
    choices: list[int | None] = [None] * len(kbest)
    for t, choice in zip(document.present.tolist(), found.choices, strict=True):
        choices[t] = choice
    for t, chosen in enumerate(choices):
        text.write(b"" if chosen is None else kbest.text(kbest.rows(t)[chosen]))
        text.write(b"\n")
    return tuple(choices)


def _write_list(
    file: BinaryIO,
    kbest: KBest,
    document: Document,
    choices: Sequence[int],
    weights: NDArray[np.float64] | None = None,
) -> None:
    """The document's lines with the scorers' features under a path and, given weights, totals."""
    space = document.space
    features = document.under(choices)
    totals = None if weights is None else features @ weights + document.sparse
    added = features[:, space.list_width :]
    names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
    for row in range(kbest.n):
        values = list(zip(names, added[row].tolist(), strict=True))
        total = None if totals is None else float(totals[row])
        file.write(append_features(kbest.line(row), values, total) + b"\n")
