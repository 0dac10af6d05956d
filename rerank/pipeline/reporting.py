"""`rerank report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import rerank
from rerank.corpus.documents import Documents
from rerank.corpus.references import read_with_documents
from rerank.corpus.translations import files_of, read_translation
from rerank.errors import InputError, UsageError
from rerank.files.inputs import InputFiles
from rerank.files.lines import digest
from rerank.files.outputs import atomic, check_folder, check_outputs, to_json
from rerank.files.paths import FilePath, display
from rerank.formats.summary import read_summary
from rerank.formats.trace import Choice, read_trace
from rerank.formats.weights import Weights, read_weights
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.curves import read_curve
from rerank.pipeline.evaluation import DEFAULT_METRICS, NO_ADDITIONS, Additions, measured
from rerank.registry import metric
from rerank.report.evaluation import Evaluation, Text
from rerank.report.explanation import Explanation
from rerank.report.page import render
from rerank.report.paper_figures import write_figures
from rerank.report.run_report import ChangedSentence, ReportedDocument, RunReport
from rerank.tuning.objectives.names import metrics_of

SYSTEMS = ("baseline", "decoded")
BEST, WORST, RANDOM = 100, 100, 50  # documents whose changed sentences are shown
SENTENCES = 5000  # that are shown at most: a page of some 5 MB


@dataclass(frozen=True, slots=True)
class Decoded:
    """Files of a decoding: its trace and, where there are, its summary and its weights.

    baseline: trace of another decoding of the same lists, whose choices take the place of the first
    candidates; source: text in the source language, a line a sentence.
    """

    trace: str | Path
    baseline: str | Path | None = None
    summary: str | Path | None = None
    weights: str | Path | None = None
    source: str | Path | None = None

    def files(self) -> dict[str, str | Path]:
        """The files that there are, by what they are."""
        return {name: path for name, path in asdict(self).items() if path is not None}


@dataclass(frozen=True, slots=True)
class Page:
    """How a report is shown: its title, its form, `html` or `json`, how much, and by what chance.

    shown: of how many documents changed sentences are shown, the best, the worst and some by
    chance; None for all; of each the first ones, so that they are at most `SENTENCES`, or one of
    each. seed: of intervals, tests and chance.
    """

    title: str | None = None
    shown: int | None = BEST + WORST + RANDOM
    form: str = "html"
    seed: int = 1


def report(
    decoded: Decoded,
    references: Sequence[str | Path],
    out: str | Path = "-",
    *,
    docs: FilePath | None = None,
    no_docs: str | None = None,
    page: Page = Page(),
    tokenize: str = "none",
    metrics: Sequence[str] = DEFAULT_METRICS,
    more: Additions = NO_ADDITIONS,
    notices: Notices | None = None,
) -> RunReport:
    """Write the report of a decoding as a page or, as form `json`, its numbers.

    tokenize, metrics, more: as of `rerank.pipeline.evaluation.evaluate`, of the systems `baseline`
    and `decoded`. The trace is read twice. Memory: the chosen texts of the corpus, and what is
    shown.
    """
    notices = notices or PythonWarnings()
    trace, baseline, summary = decoded.trace, decoded.baseline, decoded.summary
    files: dict[str, FilePath] = {**decoded.files()}
    if decoded.source is not None:
        files["source"] = files_of([decoded.source], "source")[0]
    if docs is not None:
        files["documents"] = files_of([docs], "documents")[0]
    more.check()
    score_files = more.score_files(SYSTEMS)
    values = dict.fromkeys(path for paths in score_files.values() for path in paths)
    files |= {f"scores {i}": path for i, path in enumerate(values, 1)}
    files |= {f"words {i}": path for i, path in enumerate(more.files, 1)}
    files |= {f"reference {i}": p for i, p in enumerate(files_of(references, "reference"), 1)}
    for path in (trace, baseline):
        if path == "-":
            raise UsageError("-: a trace is read twice; give the name of a file")
    check_outputs([out], files.values())
    inputs = InputFiles(files.values())
    documents, targets = read_with_documents(docs, no_docs, references, notices)
    decoding = _Decoding(trace, baseline, documents, notices)
    explanation = Explanation.of(decoding.noted())
    texts = zip(SYSTEMS, (decoding.before, decoding.after), strict=True)
    read = Weights({}) if decoded.weights is None else read_weights(decoded.weights, notices)
    tuned = metrics_of(str(read.provenance.get("objective", "")))
    evaluation = measured(
        documents,
        targets,
        [Text(name, lines) for name, lines in texts],
        metric=Bleu(tokenize),
        others={name: metric(name) for name in dict.fromkeys(metrics) if name != "bleu"},
        more=replace(more, weights=decoded.weights) if tuned else more,
        score_files=score_files,
        seed=page.seed,
        notices=notices,
    )
    found = None if summary is None else read_summary(summary, documents.ids, notices)
    sources = None
    if decoded.source is not None:
        sources = read_translation(
            decoded.source, documents, notices, model="the references", role="source"
        )
    chosen = _chosen(evaluation, page.shown, page.seed)
    result = RunReport(
        page.title or f"Reranking of {documents.n_lines:,} sentences",
        evaluation,
        explanation,
        _documents(decoding, evaluation, found, targets, sources, chosen),
        None if found is None else {k: v for k, v in found.items() if k != "documents"},
        _by_value(read),
        read.provenance,
        [
            (what, Path(path).name, digest(path).removeprefix("sha256:"))
            for what, path in files.items()
        ],
        rerank.__version__,
    )
    inputs.check()
    content = render(result).encode() if page.form == "html" else to_json(result.to_dict())
    with atomic(out) as file:
        file.write(content)
    return result


def draw(
    result: RunReport,
    folder: str | Path,
    curves: Sequence[tuple[str, str | Path]] = (),
    *,
    notices: Notices | None = None,
) -> list[Path]:
    """Write the figures of a report to a folder, as PDF and SVG; their paths.

    curves: (NAME, file) of learning curves that `train-lm --curve` has written.
    """
    check_folder(folder, f"--figures {folder}")
    notices = notices or PythonWarnings()
    found = {name: read_curve(path, notices) for name, path in curves}
    return write_figures(Path(folder), result, found)


class _Decoding:
    """The choices of a trace, and what is counted in their first reading.

    before, after: lines of the baseline and of the decoding; changed, by_context: sentences of each
    document.
    """

    def __init__(
        self, trace: str | Path, baseline: str | Path | None, documents: Documents, notices: Notices
    ) -> None:
        self._trace, self._baseline, self._notices = trace, baseline, notices
        self.documents = documents
        self.places = {name: documents.span(d) for d, name in enumerate(documents.ids)}
        self.before, self.after = [b""] * documents.n_lines, [b""] * documents.n_lines
        self.changed: Counter[str] = Counter()
        self.by_context: Counter[str] = Counter()

    def noted(self) -> Iterator[Choice]:
        """All choices, while they are counted."""
        seen: set[int] = set()
        for choice in self.choices(self._notices):
            start, stop = self.places.get(choice.document, (0, 0))
            line = start + choice.sentence
            if not start <= line < stop or line in seen:
                raise InputError(
                    f"expected sentences of the documents, each once, found sentence "
                    f"{choice.sentence} of {choice.document!r}; give the document ids of the "
                    "decoding",
                    source=display(self._trace),
                )
            seen.add(line)
            self.before[line] = (choice.texts["first"] or "").encode()
            self.after[line] = (choice.texts["chosen"] or "").encode()
            self.changed[choice.document] += choice.changed
            self.by_context[choice.document] += choice.by_context
            yield choice
        if lacking := self.documents.n_lines - len(seen):
            self._notices.add(
                "sentence that the trace has not, taken as one without candidates, whose "
                "translation is empty",
                source=display(self._trace),
                count=lacking,
            )

    def choices(self, notices: Notices) -> Iterator[Choice]:
        """The choices, those of a baseline in place of the first candidates."""
        ours = read_trace(self._trace, display(self._trace), notices)
        if self._baseline is None:
            yield from ours
            return
        name = display(self._baseline)
        theirs = read_trace(self._baseline, name, notices)
        for own in ours:
            other = next(theirs, None)
            if other is None or (other.document, other.sentence) != (own.document, own.sentence):
                raise InputError(
                    f"expected the sentences of {display(self._trace)} in their order, but not "
                    f"sentence {own.sentence} of {own.document!r}; give traces of the same lists",
                    source=name,
                )
            yield _against(own, other)
        if next(theirs, None) is not None:
            raise InputError(
                f"expected as many sentences as {display(self._trace)} has, found more; give "
                "traces of the same lists",
                source=name,
            )


def _against(own: Choice, other: Choice) -> Choice:
    """A choice with that of another decoding in place of the first candidate."""
    names = {**own.weighted, **other.weighted}
    added = {n: (own.weighted.get(n) or 0.0) - (other.weighted.get(n) or 0.0) for n in names}
    texts = {**own.texts, "first": other.texts["chosen"]}
    return replace(own, first=other.chosen, texts=texts, over_first=added)


def _chosen(evaluation: Evaluation, shown: int | None, seed: int) -> set[str]:
    """Documents to show: those with the largest gains and losses, and some by chance."""
    names = [one.id for one in sorted(evaluation.documents, key=lambda d: d.bleu[0] - d.bleu[1])]
    if shown is None or shown >= len(names):
        return set(names)
    best, worst = (shown * part // (BEST + WORST + RANDOM) for part in (BEST, WORST))
    kept = [*names[:best], *(names[-worst:] if worst else [])]
    rest = names[best : len(names) - worst]
    drawn = np.random.default_rng(seed).choice(len(rest), shown - len(kept), replace=False)
    return {*kept, *(rest[i] for i in drawn.tolist())}


def _documents(
    decoding: _Decoding,
    evaluation: Evaluation,
    summary: Mapping[str, Any] | None,
    targets: Sequence[Sequence[bytes]],
    sources: Sequence[bytes] | None,
    chosen: set[str],
) -> list[ReportedDocument]:
    """All documents, with the first changed sentences of those that are shown."""
    changes: dict[str, list[ChangedSentence]] = {name: [] for name in chosen}
    most = max(1, SENTENCES // max(1, len(chosen)))
    last: Choice | None = None
    for choice in decoding.choices(Notices()):
        if choice.changed and len(changes.get(choice.document, [None] * most)) < most:
            line = decoding.places[choice.document][0] + choice.sentence
            before = last if last is not None and last.document == choice.document else None
            changes[choice.document].append(
                ChangedSentence(
                    choice.sentence,
                    choice.source if sources is None else sources[line].decode(),
                    None if before is None else before.texts["chosen"],
                    choice.texts["first"] or "",
                    choice.texts["chosen"] or "",
                    targets[line][0].decode(),
                    choice.chosen,
                    choice.margin,
                    choice.alone["text"] if choice.alone and choice.by_context else None,
                    choice.over_first,
                )
            )
        last = choice
    searches = {} if summary is None else {one["id"]: one for one in summary["documents"]}
    contexts = last is not None and last.alone is not None
    return [
        ReportedDocument(
            one.id,
            one.sentences,
            decoding.changed[one.id],
            decoding.by_context[one.id] if contexts else None,
            one.bleu[0],
            one.bleu[1],
            **_of_search(searches.get(one.id)),
            shown=changes.get(one.id),
        )
        for one in evaluation.documents
    ]


def _of_search(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a summary says of a document."""
    if found is None:
        return {}
    score, first = found["score"], found["baseline_score"]
    gain = None if score is None or first is None else score - first
    return {"exact": found["exact"], "gap": found["gap"], "score_gain": gain}


def _by_value(weights: Weights) -> dict[str, float]:
    """Weights by the names of single values; the largest sparse ones last."""
    found = {}
    for name, values in weights.dense.items():
        for i, value in enumerate(values):
            found[name if len(values) == 1 else f"{name}_{i}"] = value
    return found | dict(weights.sparse)
