"""`rerank report`: a decoding as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.corpus.documents import Documents
from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.files.outputs import atomic, check_folder, check_matplotlib, check_outputs, to_json
from rerank.files.paths import FilePath, display, file_of
from rerank.files.run_files import command_line
from rerank.files.signature import file_entry
from rerank.formats.document_files import chosen_documents
from rerank.formats.run_records import is_trace, read_summary, read_trace
from rerank.notices import Notices
from rerank.options import Command, option, optional_file, part, record
from rerank.report.measures import NOT_REPORTED, SYSTEMS, MeasureOptions, Page, tokenizer_of
from rerank.runs.options import Messages, ReferenceFiles, printed
from rerank.tuning.plan import refuse_repeated
from rerank.values import FILE, Pair

if TYPE_CHECKING:
    from rerank.report.run_report import Decoding, References, RunReport


@record
class DecodingFiles:
    """Files of a decoding."""

    trace: str = option("Trace of decode --trace.", type=FILE)
    baseline: tuple[str, ...] = option(
        "Text, or trace of another decoding of the same lists, that the decoding is compared "
        "with.\n\n"
        "A text has a line per sentence; of several texts the one with the best BLEU is "
        "taken. Default: of lists of --systems the best system, else the first candidates.",
        type=FILE,
        default=(),
    )
    beside: tuple[tuple[str, str], ...] = option(
        "Another output of the same sentences, a text or a trace, beside the decoding's; "
        "repeatable.\n\n"
        "Its scores, its gains in documents and its texts of changed sentences stand beside "
        "the decoding's.",
        type=Pair("NAME=FILE, for example mbr=mbr.out", FILE),
        default=(),
        metavar="NAME=FILE",
    )
    summary: str | None = optional_file("Summary of decode --summary: figures of the search.")
    decoding_weights: str | None = optional_file(
        "Weights file of the decoding: how it was tuned.", "--weights"
    )

    @property
    def systems(self) -> list[str]:
        """Names of all outputs, the baseline first; UsageError for two of one name."""
        names = [*SYSTEMS, *(name for name, _ in self.beside)]
        refuse_repeated("--beside", names, "another output has this name; take another one")
        return names


@record
class ReportedTexts:
    """Documents, references and sources of the decoding."""

    documents: DocumentOptions = part(DocumentOptions)
    references: ReferenceFiles = part(ReferenceFiles, without={"drop_unreferenced"})
    source: str | None = optional_file("Text in the source language, one sentence per line.")


@record
class ReportOptions:
    """Options of `rerank report`."""

    decoding: DecodingFiles = part(DecodingFiles, "Decoding")
    texts: ReportedTexts = part(ReportedTexts, "References")
    measures: MeasureOptions = part(MeasureOptions, "Measures", without=NOT_REPORTED)
    page: Page = part(Page, "Page")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def report(options: ReportOptions, notices: Notices) -> str | None:
    r"""Show a decoding as a page: whether it helped, where, what changed, and why.

    The page is one file, which opens offline in any browser.

    Example:
      rerank report --trace test.trace --summary test.json --weights weights.json \
        --docs test.docids --ref test.en --out report.html
    """
    from rerank.report.figures import write_figures
    from rerank.report.page import render

    page = options.page
    if page.figures is not None:
        check_matplotlib("--figures")
        check_folder(page.figures, f"--figures {page.figures}")
    result = _report(options, notices)
    content = render(result).encode() if page.form == "html" else to_json(result.to_dict())
    with atomic(page.out) as file:
        file.write(content)
        if page.figures is not None:
            for path in write_figures(page.figures, result):
                options.messages.announce(f"figure written to {path}")
    if page.out == "-":
        return None
    return "\n".join([*result.verdicts, f"report written to {page.out}"])


COMMAND = Command("report", ReportOptions, report)


def _report(options: ReportOptions, notices: Notices) -> RunReport:
    """The report of a decoding in files. The trace is read twice.

    Memory: the chosen texts of the corpus, and what is shown.
    """
    from rerank.formats.translations import read_translation
    from rerank.formats.weight_files import read_weights
    from rerank.formats.weights import Weights
    from rerank.report.run_report import report_of

    files, source, announce = options.decoding, options.texts.source, options.messages.announce
    score_files = options.measures.score_files(files.systems)
    read = _files(options, [path for paths in score_files.values() for path in paths])
    if "-" in (files.trace, *files.baseline, *dict(files.beside).values()):
        raise UsageError("-: a trace is read twice; give the name of a file")
    inputs = check_outputs([options.page.out], read.values())
    documents, references = _documents(options, notices)
    tuned = files.decoding_weights
    weights = Weights({}) if tuned is None else read_weights(tuned, notices)
    untokenised = options.texts.references.references
    tokenizer = tokenizer_of(options.measures.tokenize, untokenised, announce)
    metrics = replace(options.measures, tokenize=tokenizer).loaded_metrics(notices)
    decoding = _decoding(files, documents, references, notices)
    decoding.find_baseline(metrics[0], scored=bool(score_files))
    if source is not None:
        model = "the references" if references else "the trace"
        decoding.sources = read_translation(source, documents, notices, model=model, role="source")
    summary = None
    if files.summary is not None:
        summary = read_summary(files.summary, documents.ids, notices)
    entries = {what: file_entry(path) for what, path in read.items()}
    first = next(read_trace(files.trace, files.trace, Notices()), None)
    decoded_by = None if first is None else first.run.get("command")
    lines = {"tuning": weights.provenance.get("command"), "decoding": decoded_by}
    lines["page"] = command_line()
    result = report_of(
        decoding,
        weights,
        notices,
        metrics=metrics,
        page=options.page,
        score_files=score_files,
        summary=summary,
        announce=announce,
    )
    inputs.check()
    return replace(
        result,
        inputs=[(what, x["file"], x["digest"]) for what, x in entries.items() if x is not None],
        commands={what: line for what, line in lines.items() if isinstance(line, str)},
    )


def _documents(options: ReportOptions, notices: Notices) -> tuple[Documents, References]:
    """Documents and the references of their sentences; without references, those of the trace."""
    from rerank.formats.translations import read_with_documents

    described, trace = options.texts, options.decoding.trace
    docs, no_docs = described.documents.file, described.documents.no_docs
    references = described.references.references
    if references:
        return read_with_documents(docs, no_docs, references, notices)
    if options.measures.scores:
        raise UsageError("--scores: values are compared beside references; give --ref FILE, too")
    sizes: dict[str, int] = {}
    for choice in read_trace(trace, trace, Notices()):
        sizes[choice.document] = max(choice.sentence + 1, sizes.get(choice.document, 0))
    if docs is None and no_docs is None:
        return Documents.of_sizes(sizes), []
    return chosen_documents(docs, no_docs, lambda: sum(sizes.values()), notices), []


def _decoding(
    files: DecodingFiles, documents: Documents, references: References, notices: Notices
) -> Decoding:
    """The decoding of files, with the texts from which its baseline is taken."""
    from rerank.formats.translations import read_translation
    from rerank.report.run_report import Decoding, RecordedChoices

    def output(path: str) -> Sequence[bytes]:
        """The lines of a text, or those that a trace has chosen."""
        if is_trace(path):
            return Decoding(RecordedChoices.of_file(path), None, documents, notices).after
        model = "the references" if references else "the trace"
        return read_translation(path, documents, notices, model=model)

    texts = {display(path): output(path) for path in files.baseline if not is_trace(path)}
    if len(files.baseline) > max(1, len(texts)):
        raise UsageError("--baseline: expected texts or one trace, found both or several; give one")
    trace = None if texts or not files.baseline else RecordedChoices.of_file(files.baseline[0])
    decoding = Decoding(RecordedChoices.of_file(files.trace), trace, documents, notices)
    decoding.references = references
    decoding.candidates = texts
    decoding.others = {name: output(path) for name, path in files.beside}
    return decoding


def _files(options: ReportOptions, scores: list[str]) -> dict[str, FilePath]:
    """All files that are read, by what they are."""
    from rerank.formats.translations import files_of

    decoding, described, beside = options.decoding, options.texts, dict(options.decoding.beside)
    files: dict[str, FilePath | None] = {
        "trace": decoding.trace,
        "summary": decoding.summary,
        "weights": decoding.decoding_weights,
        "source": next(iter(files_of([described.source], "source")), None),
        "documents": next(iter(files_of([described.documents.file], "documents")), None),
    }
    others = zip(beside, files_of(beside.values(), "system"), strict=True)
    files |= {f"beside {name}": path for name, path in others}
    for i, path in enumerate(files_of(decoding.baseline, "system"), 1):
        files[f"baseline {i}" if len(decoding.baseline) > 1 else "baseline"] = path
    numbered = {
        "scores": dict.fromkeys(map(file_of, scores)),
        "reference": files_of(described.references.references, "reference"),
    }
    for what, paths in numbered.items():
        files |= {f"{what} {i}": path for i, path in enumerate(paths, 1)}
    return {what: path for what, path in files.items() if path is not None}
