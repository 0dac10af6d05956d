"""`rerank evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rerank.corpus.documents import Documents
from rerank.corpus.references import (
    check_length,
    note_differences,
    note_identity,
    read_with_documents,
)
from rerank.files.lines import display, read_lines
from rerank.files.outputs import check_outputs
from rerank.formats.table import read_documents
from rerank.metrics.bleu import Bleu
from rerank.metrics.oracle import Extremes, list_extremes
from rerank.notices import Notices, PythonWarnings
from rerank.report.evaluation import Evaluation, Text
from rerank.report.evaluation import evaluate as judge


@dataclass(frozen=True, slots=True)
class OracleList:
    """The k-best list whose oracle is reported, and how it is read; see `read_documents`."""

    path: str | Path
    top: int | None = None
    diverse: bool = False
    first_id: int = 0
    clip_inf: float | None = None

    def extremes(
        self,
        documents: Documents,
        references: Sequence[Sequence[bytes]],
        metric: Bleu,
        notices: Notices,
    ) -> Extremes:
        """The extremes of the list under the references, [sentence][reference]."""
        lists = read_documents(
            self.path,
            documents,
            notices,
            top=self.top,
            diverse=self.diverse,
            first_id=self.first_id,
            clip_inf=self.clip_inf,
        )
        return list_extremes(lists, references, metric)


def evaluate(
    docs: str | Path | None,
    references: Sequence[str | Path],
    systems: Sequence[str | Path],
    *,
    notices: Notices | None = None,
    no_docs: str | None = None,
    kbest: str | Path | OracleList | None = None,
    tokenize: str = "none",
    seed: int = 1,
) -> Evaluation:
    """Scores of `systems`, the baseline first, against `references`, all of them files.

    Without a file of document ids `no_docs` says what a document is: `each` line, or all as `one`.
    With a k-best list its oracle is reported too.
    """
    notices = notices or PythonWarnings()
    listed = OracleList(kbest) if isinstance(kbest, str | Path) else kbest
    named = [docs, listed.path if listed else None]
    check_outputs([], [*references, *systems, *(path for path in named if path is not None)])
    metric = Bleu(tokenize)
    documents, targets = read_with_documents(docs, no_docs, references, notices)
    texts = [Text(display(path), list(read_lines(path, notices))) for path in systems]
    model = display(references[0] if docs is None else docs)
    for text in texts:
        check_length(text.lines, documents.n_lines, source=text.name, model=model)
        _note_oddities(text, targets, notices)
    extremes = listed.extremes(documents, targets, metric, notices) if listed else None
    return judge(documents, targets, texts, metric=metric, extremes=extremes, seed=seed)


def _note_oddities(text: Text, references: Sequence[Sequence[bytes]], notices: Notices) -> None:
    """Notices of outputs that differ from the references in their form, or not at all."""
    flat = [line for sentence in references for line in sentence]
    note_differences(text.lines, flat, notices, source=text.name)
    note_identity(text.lines, references, notices, source=text.name)
