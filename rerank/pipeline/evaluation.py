"""`rerank evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rerank.corpus.detokenisation import detokenised, note_detokenised
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
from rerank.registry import metric as registered
from rerank.report.evaluation import Detokenised, Evaluation, Text
from rerank.report.evaluation import evaluate as judge

DEFAULT_METRICS = ("bleu", "chrf", "ter")


def evaluate(
    docs: str | Path | None,
    references: Sequence[str | Path],
    systems: Sequence[str | Path],
    *,
    notices: Notices | None = None,
    no_docs: str | None = None,
    kbest: str | Path | Lists | None = None,
    tokenize: str = "none",
    metrics: Sequence[str] = DEFAULT_METRICS,
    detokenize: str | None = None,
    seed: int = 1,
) -> Evaluation:
    """Scores of `systems`, the baseline first, against `references`, all of them files.

    Without a file of document ids `no_docs` says what a document is: `each` line, or all as `one`.
    With a k-best list its oracle is reported too. metrics: names of `rerank.registry.METRICS`,
    beside BLEU, which is always there; detokenize: language of the texts, to score them
    detokenised, too.
    """
    notices = notices or PythonWarnings()
    lists = Lists(kbest) if isinstance(kbest, str | Path) else kbest
    more = [*([docs] if docs else []), *([lists.kbest] if lists else [])]
    inputs = InputFiles([*references, *systems, *more])
    check_outputs([], [*references, *systems, *more])
    metric = Bleu(tokenize)
    others = {name: registered(name) for name in dict.fromkeys(metrics) if name != "bleu"}
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
        if tokenize == "none":
            note_detokenised(text.lines, notices, source=text.name)
    extremes = None
    if lists:
        read = KBestFile(Path(lists.kbest), lists).read(documents, notices)
        extremes = list_extremes((found for _, found in read), targets, metric)
    inputs.check()
    return judge(
        documents,
        targets,
        texts,
        metric=metric,
        others=others,
        detokenised=None if detokenize is None else _readable(targets, texts, detokenize),
        extremes=extremes,
        seed=seed,
    )


def _readable(
    targets: Sequence[Sequence[bytes]], texts: Sequence[Text], language: str
) -> Detokenised:
    """References and systems, detokenised."""
    columns = [detokenised(lines, language) for lines in zip(*targets, strict=True)]
    return Detokenised(
        list(zip(*columns, strict=True)),
        [Text(text.name, detokenised(text.lines, language)) for text in texts],
    )
