"""`rerank evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rerank.corpus.references import (
    note_differences,
    note_identity,
    read_translation,
    read_with_documents,
)
from rerank.files.inputs import InputFiles
from rerank.files.outputs import check_outputs
from rerank.files.paths import display
from rerank.metrics.bleu import Bleu
from rerank.metrics.oracle import list_extremes
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.lists import KBestFile, Lists
from rerank.report.evaluation import Evaluation, Text
from rerank.report.evaluation import evaluate as judge


def evaluate(
    docs: str | Path | None,
    references: Sequence[str | Path],
    systems: Sequence[str | Path],
    *,
    notices: Notices | None = None,
    no_docs: str | None = None,
    kbest: str | Path | Lists | None = None,
    tokenize: str = "none",
    seed: int = 1,
) -> Evaluation:
    """Scores of `systems`, the baseline first, against `references`, all of them files.

    Without a file of document ids `no_docs` says what a document is: `each` line, or all as `one`.
    With a k-best list its oracle is reported too.
    """
    notices = notices or PythonWarnings()
    lists = Lists(kbest) if isinstance(kbest, str | Path) else kbest
    more = [*([docs] if docs else []), *([lists.kbest] if lists else [])]
    inputs = InputFiles([*references, *systems, *more])
    check_outputs([], [*references, *systems, *more])
    metric = Bleu(tokenize)
    documents, targets = read_with_documents(docs, no_docs, references, notices)
    model = display(references[0] if docs is None else docs)
    texts = [
        Text(display(path), read_translation(path, documents.n_lines, notices, model=model))
        for path in systems
    ]
    flat = [line for sentence in targets for line in sentence]
    for text in texts:
        note_differences(text.lines, flat, notices, source=text.name)
        note_identity(text.lines, targets, notices, source=text.name)
    extremes = None
    if lists:
        read = KBestFile(Path(lists.kbest), lists).read(documents, notices)
        extremes = list_extremes((found for _, found in read), targets, metric)
    inputs.check()
    return judge(documents, targets, texts, metric=metric, extremes=extremes, seed=seed)
