"""`rerank decode`: the best candidates of whole documents."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.files.lines import is_pipe
from rerank.files.outputs import check_outputs, to_json
from rerank.files.paths import FilePath, display
from rerank.files.signature import run_entries
from rerank.files.terminal import say
from rerank.formats.review_tables import TableWriter, check_table, table_writer
from rerank.formats.run_records import Choice, to_line
from rerank.options import Command, flag, option, optional_file, part, record
from rerank.runs.options import Messages, RunOptions, ScorerOptions, default_weight_option
from rerank.runs.search import SearchOptions
from rerank.values import FILE, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from decoders.result import SearchResult
    from rerank.corpus.kbest import KBest
    from rerank.notices import Notices, Printer
    from rerank.report.explanation import ReviewRows
    from rerank.runs.lists import Lists, ListSource
    from rerank.runs.results import CorpusResult, DocumentResult
    from rerank.runs.run import DecodedDocument, LinearModel, Run
    from rerank.runs.search import Search
    from rerank.scorers.features import DocumentFeatures

    Reviewed: TypeAlias = tuple[Choice, float | None, float | None]
    """A choice, its score and its agreement."""


@record
class WeightsFile:
    """Weights under which candidates are chosen."""

    weights: str | None = optional_file(
        "Feature weights: JSON, rescore.ini, moses.ini or run*.dense.\n\n"
        "Without them candidates of --systems and of lists without scores are chosen by "
        "their agreement with the others (see --agreement); the searches mbr, smc and ffbs "
        "take all votes to be as likely, those of a list with scores, too."
    )
    default_weight: float | None = default_weight_option()

    def model(self, search: Search, scorers: ScorerOptions, notices: Notices) -> LinearModel:
        """The weights of the file; without one those beside agreement, or 0 for every feature.

        UsageError without a file for scorers whose weights nothing else gives.
        """
        from rerank.formats.weights import Weights
        from rerank.runs.run import LinearModel
        from rerank.scorers.agreement import AGREEMENT

        if self.weights is not None:
            return LinearModel.read(self.weights, self.default_weight, notices)
        weights = {} if search.uniform else {AGREEMENT: 1.0, **scorers.beside_agreement}
        for kind, named in scorers.names.items():
            if missing := [name for name, _ in named if name not in weights]:
                raise UsageError(
                    f"--{kind}: it is of no use without weights; add --weights FILE, which "
                    "tune-mert writes with references; without any, a file of your own, as with "
                    f"the line `{missing[0]}= 1`, and --default-weight 0 for other features"
                )
        if self.default_weight is not None:
            raise UsageError(
                "--default-weight: it is of no use without weights; add --weights FILE"
            )
        return LinearModel(Weights({name: (value,) for name, value in weights.items()}), "", 0.0)


@record
class DecodingOutput:
    """What is written of a decoding."""

    out: str = option("Chosen translations, one line per source sentence.", type=FILE, default="-")
    kbest_out: str | None = optional_file(
        "The k-best list with the features that were added, and new totals.\n\n"
        "Features of weight 0 are in it, too. Features that depend on context hold for the "
        "chosen path: a candidate with a larger total than the chosen one may lose more in "
        "other sentences.",
        rare=True,
    )
    summary: str | None = optional_file("Choices and scores of every document, as JSON.", rare=True)
    n_best: int = option(
        "Number of best paths per document in the summary.", type=Whole(), default=1, rare=True
    )
    table: str | None = optional_file(
        "Table for reviewers, .xlsx, .csv or .tsv: a row for each sentence.\n\n"
        "Its columns: line, document, segment from 0; source, with --source; engine, of "
        "--systems, and the chosen text, what it has other than the first marked in .xlsx; decided "
        "by: the feature with the largest share of the margin over the next text; changed: whether "
        "the first engine has another text; the text of each engine; terms of --glossary; "
        "score: the weighted sum of all features; agreement: mean chrF2 against the other "
        "candidates; defects: with --defects avoid, how many candidates are no translations; "
        "errors: what a judge of --scorer with form=errors has found.\n\n"
        "The last, final, is for reviewers: evaluate --ref FILE reads it back. .tsv begins with "
        "comments of how it was made, and has no quotes; .xlsx needs rerank-mt[xlsx].",
        metavar="FILE",
    )
    trace: str | None = optional_file(
        "Features, margins and marginals of every sentence, as JSON lines; see rerank explain."
    )
    dry_run: bool = flag("Count what is to be scored and stop.", rare=True)

    def check(self) -> None:
        """UsageError for paths that are listed nowhere, and for a table of no kind."""
        if self.n_best > 1 and self.summary is None:
            raise UsageError(
                "--n-best: the summary lists the paths of a document; give --summary FILE"
            )
        if self.table is not None:
            check_table(self.table)

    @property
    def paths(self) -> Mapping[str, FilePath]:
        """The files to write, by name."""
        paths = {
            **{"kbest": self.kbest_out, "summary": self.summary},
            **{"trace": self.trace, "table": self.table},
        }
        return {"out": self.out} | {name: path for name, path in paths.items() if path is not None}


@record
class DecodeOptions:
    """Options of `rerank decode`."""

    run: RunOptions = part(RunOptions)
    searching: SearchOptions = part(SearchOptions, "Search")
    weights: WeightsFile = part(WeightsFile, "Weights")
    output: DecodingOutput = part(DecodingOutput, "Output")
    messages: Messages = part(Messages, "Messages")


def decode(options: DecodeOptions) -> None:
    r"""Choose the best candidates for whole documents.

    Example:
      rerank decode --kbest test.nbest.gz --docs test.docids --lm codclm=models/codclm \
        --weights weights.json --out test.out
    """
    from rerank.runs.distribution import announce_work, outputs, share_scores

    weights, output, messages = options.weights, options.output, options.messages
    announce, dry_run = messages.announce, output.dry_run
    if not dry_run and not share_scores(decode, options):
        return
    messages.announce_threads(options.run.machine.threads)
    with messages.warnings() as notices, ExitStack() as opened:
        read = [weights.weights, *options.run.files]
        inputs = check_outputs(output.paths.values(), read, options.run.scorers.folders)
        search = options.searching.chosen().listing(output.n_best)
        model = weights.model(search, options.run.scorers, notices)
        search = search.at(model.weights)
        run = opened.enter_context(_open(options, model, search, notices))
        search = run.choose_search(search, announce)
        approximate = _is_approximate(run, model, announce)
        if dry_run or run.shard is None:
            passes = int(output.trace is not None or output.table is not None)
            announce_work(run, search, say if dry_run else announce, passes=passes, dry_run=dry_run)
        if dry_run:
            return
        with outputs(run, output.paths, announce) as files:
            with ExitStack() as ordered:
                writer = _Writer(run, files, ordered, approximate=approximate)
                writer.state(search, weights.weights, output.table)
                for batch in model.batches(run, search):
                    for document in batch.documents:
                        writer.write(document, batch.weights)
                writer.finish()
            if run.shard is None:
                result = writer.result(search, weights, announce)
                run.warn()
            inputs.check()
            if run.shard is None:
                writer.summarise(result)
        run.report(announce, messages.detail)
        if weights.weights is None and run.shard is None and (line := writer.agreement.to_text()):
            announce(line)
    if run.shard is None:
        announce("\n".join([*model.weights.remarks(), result.to_text()]))
        messages.detail(result.signature)


COMMAND = Command("decode", DecodeOptions, decode)


@contextmanager
def _open(
    options: DecodeOptions, model: LinearModel, search: Search, notices: Notices
) -> Iterator[Run[ListSource]]:
    """The run of a decoding; without a weights file candidates are chosen by agreement or votes.

    UsageError for a list with scores that only weights can use.
    """
    from rerank.runs.opening import open_run

    weighted, announce, output = bool(model.source), options.messages.announce, options.output
    settings, choice = options.run.as_tuned(model.weights), list[str]()
    if output.kbest_out is None:  # of which other tuners need all features
        settings = replace(settings, scorers=settings.scorers.used_by(model.weights, model.default))
    lists = settings.inputs()
    lists.check()
    if not weighted:
        settings, lists, choice = _without_weights(settings, lists, search)
    with open_run(
        lists,
        notices,
        settings,
        announce=announce,
        programs=search.programs(),
        check_side=settings.scorers.names == options.run.scorers.names,
        sources=output.table is not None,  # which it shows
    ) as run:
        if not (weighted or search.uniform) and run.has_scores():
            merged = (display(path) for _, path in run.source.lists.merged)
            names = " or ".join(merged) or run.source.name
            if not options.run.scorers.agreement:
                raise UsageError(
                    f"Missing option '--weights': {names} has scores, which nothing but weights "
                    "can use; add --weights FILE, or, to choose without the scores, --agreement "
                    "for the candidate that agrees most with the others, or --search mbr, smc or "
                    "ffbs"
                )
            choice.append(f"the scores of {names} are not used")
        for line in choice:
            announce(line)
        yield run


def _without_weights(
    settings: RunOptions, lists: Lists, search: Search
) -> tuple[RunOptions, Lists, list[str]]:
    """Options and lists for a choice by agreement, or by votes alone, and lines that say which.

    Where nothing tells documents apart, each sentence is one.
    """
    from rerank.runs.lists import own_documents
    from rerank.scorers.agreement import OF_SYSTEMS, RULE

    choice = "as likely as they have votes, whatever scores the lists have"
    settings = settings.avoiding_defects()
    if not search.uniform:
        settings = settings.with_agreement()
        of_systems = lists.systems and not lists.merged
        choice = f"chosen by agreement: {RULE}{OF_SYSTEMS if of_systems else ''}"
        for name, weight in settings.scorers.beside_agreement.items():
            choice += f"; and {weight:g} times {name}"
    lines = [f"without --weights, candidates are {choice}"]
    if not (lists.docs or lists.no_docs or is_pipe(lists.kbest)) and own_documents(lists) is None:
        lines.append("without --docs, each sentence is a document")
        lists = replace(lists, no_docs="each")
    return settings, lists, lines


def _is_approximate(run: Run[ListSource], model: LinearModel, announce: Printer) -> bool:
    """Whether a feature is approximate, so that no search proves a path best; which is said."""
    from rerank.scorers.agreement import DOCUMENT_BLEU

    if not (run.source.systems and any(model.weights.dense.get(DOCUMENT_BLEU, ()))):
        return False
    announce(
        f"{DOCUMENT_BLEU}: approximate, whatever the search: choices of a document that no change "
        "of a single sentence makes better"
    )
    return True


class _Writer:
    """The files of a decoding, written a document at a time.

    agreement: of choices; approximate: whether a feature is, so that no search proves a path best.
    """

    def __init__(
        self,
        run: Run[ListSource],
        files: dict[str, BinaryIO],
        opened: ExitStack,
        *,
        approximate: bool,
    ) -> None:
        from rerank.runs.lists import in_source_order
        from rerank.scorers.agreement import MeanAgreement

        self.run, self.files, self.approximate = run, files, approximate
        self.in_order = {
            name: opened.enter_context(in_source_order(files[name], run.source.documents))
            for name in ("out", "kbest")
            if name in files
        }
        self.agreement = MeanAgreement()
        self.results: list[DocumentResult] = []
        self.overtaken = 0  # chosen candidates that have smaller totals in the list than others
        self.stated: Mapping[str, object] = {}
        self.entries: Mapping[str, object] = {}
        self.rows: ReviewRows  # and the table, if there is one
        self.table: TableWriter

    def state(self, search: Search, weights: FilePath | None, table: FilePath | None) -> None:
        """Begin the table, and keep what it and traces state of the run and of scorers."""
        from rerank.formats.translations import SOURCE
        from rerank.report.explanation import ReviewRows, labels_of

        run, files = self.run, self.files
        self.stated = {**run.scorers_by_kind.entries(run.options.scorers), **search.entries()}
        if {"trace", "table"} & {*files}:
            read = [*run.source.lists.files, *run.options.scorers.files]
            self.entries = run_entries([*read, weights] if weights else read)
        if table is not None:
            merged = {name for name, _ in run.source.lists.merged}
            self.rows = ReviewRows(
                engines=[name for name in run.source.systems.values() if name not in merged],
                labels=labels_of(
                    run.source.systems, [model.name for model in run.scorers_by_kind.models]
                ),
                sources=SOURCE in run.source.kinds,
                terms=run.scorers_by_kind.glossary is not None,
                by_utility=search.method == "mbr",
            )
            self.table = table_writer(table, files["table"], self.rows.headings, self.entries)

    def write(self, document: DecodedDocument, weights: NDArray[np.float64]) -> None:
        """Write the lines of a document, decoded under weights (F,), and keep its result."""
        from rerank.runs.results import DocumentResult, write_list

        run, files, (name, kbest, features, result) = self.run, self.files, document
        if self.approximate:
            result = replace(result, exact=False, optimal=False)
        reviewed: Mapping[int, Reviewed] = {}
        if features is not None:
            result, reviewed = self._explained(kbest, features, result, weights)
            self.agreement.add(kbest, features, result.choices)
        with run.watch.lap("writing"):
            if "table" in files:
                self._review(name, kbest, reviewed)
            self.in_order["out"](enumerate(kbest.chosen(result.choices), kbest.first))
            if "kbest" in files:
                write, choices = self.in_order["kbest"], result.choices
                self.overtaken += write_list(
                    run.source, write, kbest, features, choices, weights=weights
                )
        # its marginals would make memory grow with the number of documents
        result = replace(result, posterior=None)
        self.results.append(DocumentResult.of(name, kbest, result, systems=run.source.systems))

    def _explained(
        self,
        kbest: KBest,
        features: DocumentFeatures,
        result: SearchResult,
        weights: NDArray[np.float64],
    ) -> tuple[SearchResult, Mapping[int, Reviewed]]:
        """The result with its margins; traces are written, and rows of the table returned.

        Of each sentence with candidates its choice, score and agreement, by number.
        """
        from rerank.runs.results import Trace
        from rerank.scorers.features import counted

        run, counts = self.run, counted(self.run.scorers, kbest, result.choices)
        if not {"trace", "table", "summary"} & {*self.files}:
            return result, {}
        with run.watch.lap("trace"):
            trace = Trace.of(kbest, features, weights, result, run.scorers)
            reviewed: dict[int, Reviewed] = {}
            if {"trace", "table"} & {*self.files}:
                for scorer in run.scorers:
                    counts |= scorer.explain(kbest)
                trace = trace.with_totals_alone(run.scorers)
                lists = [name for name, _ in run.source.lists.merged]
                agreement = trace.agreement() if "table" in self.files else repeat(None)
                records = trace.records(run.source.systems, lists, counts, self.stated)
                for record, value in zip(records, agreement, strict=False):
                    if "trace" in self.files:
                        first, self.entries = self.entries, {}
                        line = to_line(record | ({"run": first} if first else {}))
                        self.files["trace"].write(line)
                    if "table" in self.files:
                        reviewed[record["sentence"]] = Choice.of(record), record["total"], value
            return trace.result, reviewed

    def finish(self) -> None:
        """Complete the table."""
        if "table" in self.files:
            with self.run.watch.lap("writing"):
                self.table.finish()

    def _review(self, document: str, kbest: KBest, reviewed: Mapping[int, Reviewed]) -> None:
        """Write the rows of a document."""
        from rerank.formats.translations import SOURCE

        sources = kbest.side.get(SOURCE)
        for t in range(len(kbest)):
            line = self.run.source.documents.line(kbest.first + t) + 1
            source = None if sources is None else sources[t].decode()
            cells = self.rows.row((line, document, t), source, *reviewed.get(t, (None,)))
            self.table.write(cells)

    def result(self, search: Search, weights: WeightsFile, announce: Printer) -> CorpusResult:
        """The result of all documents, with its signature."""
        from rerank.runs.results import CorpusResult, signature_of

        if self.overtaken:
            announce(
                "--kbest-out: sentences in which another candidate has a larger total than the "
                f"chosen one: {self.overtaken}; totals leave out what a candidate changes in other "
                "sentences"
            )
        result = CorpusResult(tuple(self.results), approximate=self.approximate)
        signature = signature_of(
            self.run, search, result, weights=weights.weights, default_weight=weights.default_weight
        )
        return replace(result, signature=signature)

    def summarise(self, result: CorpusResult) -> None:
        """Write the summary, if it is asked for."""
        if "summary" in self.files:
            summary = (
                result.to_dict() | self.agreement.to_dict() | self.run.scorers_by_kind.summary()
            )
            self.files["summary"].write(to_json(summary))
