"""`rerank report`: a decoding as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.options import Command, option, part, record
from rerank.report.measures import MeasureOptions, tokenizer_of
from rerank.runs.options import Messages, ReferenceFiles, form_option
from rerank.values import FILE, FOLDER, SEED, TEXT, Pair, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rerank.corpus.documents import Documents
    from rerank.files.paths import FilePath
    from rerank.formats.weights import Weights
    from rerank.metrics.bleu import Bleu
    from rerank.notices import Notices
    from rerank.report.comparison import EvaluatedTexts
    from rerank.report.explanation import Explanation
    from rerank.report.run_report import Decoding, RunReport

SYSTEMS = ("baseline", "decoded")


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
    summary: str | None = option(
        "Summary of decode --summary: figures of the search.", type=FILE, default=None
    )
    decoding_weights: str | None = option(
        "Weights file of the decoding: how it was tuned.", "--weights", type=FILE, default=None
    )

    @property
    def systems(self) -> list[str]:
        """Names of all outputs, the baseline first; UsageError for two of one name."""
        names = [*SYSTEMS, *(name for name, _ in self.beside)]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError(
                f"--beside {twice[0]}=…: another output has this name; take another one"
            )
        return names


@record
class ReportedTexts:
    """Documents, references and sources of the decoding."""

    documents: DocumentOptions = part(DocumentOptions)
    references: ReferenceFiles = part(ReferenceFiles, without={"drop_unreferenced"})
    source: str | None = option(
        "Text in the source language, one sentence per line.", type=FILE, default=None
    )


@record
class Page:
    """How the report is shown."""

    title: str | None = option("Title of the page.", type=TEXT, default=None)
    show_documents: int = option(
        "Number of documents whose changed sentences are shown: the best, the worst, and some by "
        "chance.",
        type=Whole(),
        default=250,
        rare=True,
    )
    seed: int = option(
        "Random seed of intervals, tests and chance.",
        type=SEED,
        default=1,
        rare=True,
    )
    form: str = form_option("html", "json", help="A page for people, or its numbers for machines.")
    out: str = option("The page.", type=FILE, default="-")
    figures: Path | None = option(
        "Folder for figures for papers, as PDF and SVG: gains of documents, what features add.",
        type=FOLDER,
        default=None,
        metavar="DIR",
    )
    curves: tuple[tuple[str, str], ...] = option(
        "Learning curve of train-lm --curve for the figures; repeatable.",
        "--curve",
        type=Pair("NAME=FILE, for example codclm=codclm.curve", FILE),
        default=(),
        metavar="NAME=FILE",
        rare=True,
        needs={"figures": "for the figures of --figures DIR; give it"},
    )


@record
class ReportOptions:
    """Options of `rerank report`."""

    decoding: DecodingFiles = part(DecodingFiles, "Decoding")
    texts: ReportedTexts = part(ReportedTexts, "References")
    measures: MeasureOptions = part(
        MeasureOptions, "Measures", without={"detokenize", "detruecase", "weights"}
    )
    page: Page = part(Page, "Page")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def report(options: ReportOptions) -> None:
    r"""Show a decoding as a page: whether it helped, where, what changed, and why.

    The page is one file, which opens offline in any browser.

    Example:
      rerank report --trace test.trace --summary test.json --weights weights.json \
        --docs test.docids --ref test.en --out report.html
    """
    from rerank.files.outputs import atomic, check_folder, check_matplotlib, to_json
    from rerank.formats.run_records import read_curve
    from rerank.report.figures import write_figures
    from rerank.report.page import render

    page = options.page
    if page.figures is not None:
        check_matplotlib("--figures")
        check_folder(page.figures, f"--figures {page.figures}")
    with options.messages.warnings() as notices:
        curves = {name: read_curve(path, notices) for name, path in page.curves}
        result = run_report(options, notices)
        content = render(result).encode() if page.form == "html" else to_json(result.to_dict())
        with atomic(page.out) as file:
            file.write(content)
            if page.figures is not None:
                for path in write_figures(page.figures, result, curves):
                    options.messages.announce(f"figure written to {path}")
    if page.out != "-":
        verdicts = result.evaluation.verdicts if result.evaluation else []
        options.messages.announce("\n".join([*verdicts, f"report written to {page.out}"]))


COMMAND = Command("report", ReportOptions, report)


def run_report(options: ReportOptions, notices: Notices) -> RunReport:
    """The report of a decoding. The trace is read twice.

    Memory: the chosen texts of the corpus, and what is shown.
    """
    from rerank.files.lines import InputFiles
    from rerank.files.outputs import check_outputs
    from rerank.files.signature import __version__, file_entry
    from rerank.formats.run_records import read_summary
    from rerank.formats.translations import read_translation
    from rerank.formats.weight_files import read_weights
    from rerank.formats.weights import Weights
    from rerank.notices import Notices
    from rerank.report.comparison import announce_programs, evaluate
    from rerank.report.explanation import Explanation
    from rerank.report.run_report import RunReport, reported_documents, shown_documents

    given, page, described = options.decoding, options.page, options.texts
    score_files = options.measures.score_files(given.systems)
    files = _files(options, [path for paths in score_files.values() for path in paths])
    if "-" in (given.trace, *given.baseline, *dict(given.beside).values()):
        raise UsageError("-: a trace is read twice; give the name of a file")
    check_outputs([page.out], files.values())
    inputs = InputFiles(files.values())
    documents, targets = _documents(options, notices)
    tuned = given.decoding_weights
    weights = Weights({}) if tuned is None else read_weights(tuned, notices)
    measures = _measures(options, weights)
    metrics = measures.loaded_metrics(notices)
    decoding, baseline, rivals = _decoding(
        given, documents, targets, metrics[0], notices, scored=bool(score_files)
    )
    sources = summary = None
    if described.source is not None:
        sources = read_translation(
            *(described.source, documents, notices),
            model="the references" if targets else "the trace",
            role="source",
        )
    if given.summary is not None:
        summary = read_summary(given.summary, documents.ids, notices)
    result = RunReport(
        title=page.title or f"Reranking of {documents.n_sentences:,} sentences",
        version=__version__,
        explanation=Explanation.of(decoding.choices(Notices())),
        search=summary and {key: summary[key] for key in summary if key != "documents"},
        weights=weights.by_value | dict(weights.sparse),
        remarks=weights.remarks(),
        tuning=weights.provenance,
        inputs=[
            (what, entry["file"], entry["digest"])
            for what, path in files.items()
            if (entry := file_entry(path)) is not None
        ],
        commands=_commands(given.trace, weights),
        baseline=baseline,
        rivals=rivals,
    )
    losses = dict.fromkeys(documents.ids, 0.0)
    if targets:
        texts = decoding.texts(given.systems, targets, sources)
        evaluation = evaluate(
            documents,
            texts,
            measures,
            notices,
            metrics=metrics,
            score_files=score_files,
            seed=page.seed,
        )
        announce_programs(metrics[1], options.messages.announce)
        result = replace(
            _with_bleu(result, decoding, texts, metrics[0], page.seed),
            evaluation=replace(evaluation, idle=_idle(weights, result.explanation)),
        )
        losses = {one.id: one.bleu[0] - one.bleu[1] for one in evaluation.documents}
    shown = shown_documents(losses, page.show_documents, page.seed)
    reported = reported_documents(decoding, result.evaluation, summary, targets, sources, shown)
    inputs.check()
    return replace(result, documents=reported)


def _with_bleu(
    result: RunReport, decoding: Decoding, texts: EvaluatedTexts, bleu: Bleu, seed: int
) -> RunReport:
    """The report with BLEU of each domain, without context, and against each other output."""
    from rerank.report.comparison import SystemText, by_domain, leads, values_of

    documents, without_context = decoding.documents, None
    if result.explanation.by_context is not None:
        alone = replace(texts, systems=[SystemText("alone", decoding.alone)])
        (without_context,) = values_of(alone, bleu, documents)
    both = replace(texts, systems=texts.systems[:2])
    found = leads(documents, texts, bleu, seed)
    return replace(
        result,
        domains=by_domain(documents, both, bleu, seed),
        without_context=without_context,
        leads=dict(zip(decoding.others, found, strict=True)),
    )


def _documents(
    options: ReportOptions, notices: Notices
) -> tuple[Documents, Sequence[Sequence[bytes]]]:
    """Documents and the references of their sentences; without references, those of the trace."""
    from rerank.corpus.documents import Documents
    from rerank.formats.document_files import chosen_documents
    from rerank.formats.run_records import read_trace
    from rerank.formats.translations import read_with_documents
    from rerank.notices import Notices

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


def _commands(trace: str, weights: Weights) -> dict[str, str]:
    """Command lines of the tuning, the decoding and the page, as far as the files tell them."""
    from rerank.files.run_files import command_line
    from rerank.formats.run_records import read_trace
    from rerank.notices import Notices

    first = next(read_trace(trace, trace, Notices()), None)
    lines = {
        "tuning": weights.provenance.get("command"),
        "decoding": None if first is None else first.run.get("command"),
        "page": command_line(),
    }
    return {what: line for what, line in lines.items() if isinstance(line, str)}


def _measures(options: ReportOptions, weights: Weights) -> MeasureOptions:
    """The measures, with the tokenizer of the references, and weights if metrics have roles."""
    from rerank.tuning.objective import metrics_of

    references = options.texts.references.references
    tokenizer = tokenizer_of(options.measures.tokenize, references, options.messages.announce)
    measures = replace(options.measures, tokenize=tokenizer)
    if metrics_of(str(weights.provenance.get("objective", ""))):  # else no metric has a role
        measures = replace(measures, weights=options.decoding.decoding_weights)
    return measures


def _idle(weights: Weights, explanation: Explanation) -> str:
    """Which language models of the weights contribute nothing."""
    from rerank.metrics.significance import idle

    models, by_value = weights.provenance.get("models"), weights.by_value
    figures = [
        (name, by_value.get(name, 0.0), explanation.decided[name])
        for name in (models if isinstance(models, dict) else {})
    ]
    return idle(figures, explanation.sentences)


def _decoding(
    given: DecodingFiles,
    documents: Documents,
    targets: Sequence[Sequence[bytes]],
    bleu: Bleu,
    notices: Notices,
    *,
    scored: bool,
) -> tuple[Decoding, str, dict[str, float]]:
    """The decoding beside its baseline, the name of that, and BLEU of those it is the best of.

    scored: whether there are files of the baseline's scores.
    """
    from rerank.files.paths import display
    from rerank.formats.run_records import is_trace
    from rerank.formats.weights import FIRST
    from rerank.report.comparison import EvaluatedTexts, SystemText, values_of
    from rerank.report.run_report import Decoding

    rivals: Mapping[str, Sequence[bytes]] = {
        display(path): _output(path, documents, targets, notices)
        for path in given.baseline
        if not is_trace(path)
    }
    if len(given.baseline) > max(1, len(rivals)):
        raise UsageError("--baseline: expected texts or one trace, found both or several; give one")
    trace = None if rivals else next(iter(given.baseline), None)
    decoding = Decoding(given.trace, trace, documents, notices)
    decoding.others = {
        name: _output(path, documents, targets, notices) for name, path in given.beside
    }
    if not given.baseline and targets and len(decoding.outputs) > 1:
        rivals = decoding.outputs
    if len(rivals) > 1 and not targets:
        raise UsageError(
            "--baseline: the best of several texts is found by references; give --ref FILE, too"
        )
    if rivals and not targets:
        ((name, lines),) = rivals.items()
        decoding.against(lines)
        return decoding, name, {}
    if not rivals:
        return decoding, FIRST if trace is None else display(trace), {}
    systems = [SystemText(name, lines) for name, lines in rivals.items()]
    found = values_of(EvaluatedTexts(targets, systems), bleu, documents)
    values = dict(zip(rivals, found, strict=True))
    name = max(values, key=values.__getitem__)
    if len(rivals) > 1 and scored:
        raise UsageError(
            f"--scores: values of one baseline are needed, and the best of several is {name}; "
            "give its text, and no other, as --baseline FILE"
        )
    decoding.against(rivals[name])
    return decoding, name, values


def _output(
    path: str, documents: Documents, targets: Sequence[Sequence[bytes]], notices: Notices
) -> Sequence[bytes]:
    """The lines of a text, or those that a trace has chosen."""
    from rerank.formats.run_records import is_trace
    from rerank.formats.translations import read_translation
    from rerank.report.run_report import Decoding

    if not is_trace(path):
        model = "the references" if targets else "the trace"
        return read_translation(path, documents, notices, model=model)
    return Decoding(path, None, documents, notices).after


def _files(options: ReportOptions, scores: list[str]) -> dict[str, FilePath]:
    """All files that are read, by what they are."""
    from rerank.files.paths import file_of
    from rerank.formats.translations import files_of

    given, described = options.decoding, options.texts
    files: dict[str, FilePath | None] = {
        "trace": given.trace,
        "summary": given.summary,
        "weights": given.decoding_weights,
    }
    if described.source is not None:
        files["source"] = files_of([described.source], "source")[0]
    if described.documents.file is not None:
        files["documents"] = files_of([described.documents.file], "documents")[0]
    beside = dict(given.beside)
    for name, path in zip(beside, files_of(list(beside.values()), "system"), strict=True):
        files[f"beside {name}"] = path
    number = len(given.baseline)
    for i, path in enumerate(files_of(given.baseline, "system"), 1):
        files[f"baseline {i}" if number > 1 else "baseline"] = path
    several = {
        "scores": dict.fromkeys(map(file_of, scores)),
        "words": options.measures.files,
        "reference": files_of(described.references.references, "reference"),
    }
    for what, paths in several.items():
        files |= {f"{what} {i}": path for i, path in enumerate(paths, 1)}
    return {what: path for what, path in files.items() if path is not None}
