"""`rerank decode`: the best candidates of whole documents."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.errors import UsageError
from rerank.files.terminal import say
from rerank.options import Command, option, part, record
from rerank.runs.options import Messages, RunOptions, ScorerOptions, default_weight_option
from rerank.runs.search import SearchOptions
from rerank.table import tsv_line
from rerank.values import FILE, TEXT, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    import numpy as np
    from numpy.typing import NDArray

    from rerank.files.paths import FilePath
    from rerank.formats.run_records import Choice
    from rerank.notices import Notices
    from rerank.runs.lists import Lists, ListSource
    from rerank.runs.results import DocumentResult
    from rerank.runs.run import DecodedDocument, LinearModel, Run
    from rerank.runs.search import Search
    from rerank.scorers.features import FeatureSource


@record
class WeightsFile:
    """Weights under which candidates are chosen."""

    weights: str | None = option(
        "Feature weights: JSON, rescore.ini, moses.ini or run*.dense.\n\n"
        "Without them candidates of --systems and of lists without scores are chosen by "
        "their agreement with the others (see --agreement); the searches mbr, smc and ffbs "
        "take all votes to be as likely, those of a list with scores, too.",
        type=FILE,
        default=None,
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
        weights = {} if search.uniform else {AGREEMENT: 1.0, **_beside_agreement(scorers)}
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
    kbest_out: str | None = option(
        "The k-best list with the features that were added, and new totals.\n\n"
        "Features of weight 0 are in it, too. Features that depend on context hold for the "
        "chosen path: a candidate with a larger total than the chosen one may lose more in "
        "other sentences.",
        type=FILE,
        default=None,
        rare=True,
    )
    summary: str | None = option(
        "Choices and scores of every document, as JSON.",
        type=FILE,
        default=None,
        rare=True,
    )
    n_best: int = option(
        "Number of best paths per document in the summary.",
        type=Whole(),
        default=1,
        rare=True,
    )
    table: str | None = option(
        "Table with a line for each sentence: document, segment, engine, text, score, "
        "agreement.\n\n"
        "Cells are divided by TABs, under headings. Segments count from 0 in their document; "
        "engine: of --systems, or the name of a merged list; agreement: mean chrF2 against "
        "the other candidates. Cells have no quotes; TABs and line ends in them are spaces. "
        "Lines with # in front, before the headings, have the command, the version and "
        "digests of the inputs.",
        type=FILE,
        default=None,
    )
    trace: str | None = option(
        "Features, margins and marginals of every sentence, as JSON lines; see rerank explain.",
        type=FILE,
        default=None,
    )

    explain: str | None = option(
        "Say why the choices of a document, or of one sentence of it, counted from 0, were made.",
        type=TEXT,
        default=None,
        metavar="DOC[:SENT]",
        rare=True,
    )
    dry_run: bool = option("Count what is to be scored and stop.", default=False, rare=True)

    def check(self) -> None:
        """UsageError for paths that are listed nowhere."""
        if self.n_best > 1 and self.summary is None:
            raise UsageError(
                "--n-best: the summary lists the paths of a document; give --summary FILE"
            )

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
    from rerank.files.lines import InputFiles
    from rerank.files.outputs import check_outputs, to_json
    from rerank.report.explanation import Explanation
    from rerank.runs.distribution import share_scores
    from rerank.runs.results import CorpusResult
    from rerank.scorers.agreement import DOCUMENT_BLEU

    weights, messages = options.weights, options.messages
    if not options.output.dry_run and not share_scores(decode, options):
        return
    messages.announce_threads(options.run.machine.threads)
    with messages.warnings() as notices, ExitStack() as opened:
        paths = options.output.paths
        read = [*([weights.weights] if weights.weights else []), *options.run.files]
        inputs = InputFiles(read)
        check_outputs(paths.values(), [*read, *options.run.scorers.folders])
        search = options.searching.chosen().listing(options.output.n_best)
        model = weights.model(search, options.run.scorers, notices)
        search = search.at(model.weights)
        run = opened.enter_context(_opened(options, model, search, notices))
        search = run.choose_search(search, messages.announce)
        approximate = bool(run.systems) and any(model.weights.dense.get(DOCUMENT_BLEU, ()))
        if approximate:
            messages.announce(
                f"{DOCUMENT_BLEU}: approximate, whatever the search: choices of a document that no "
                "change of a single sentence makes better"
            )
        explained, sentence = _explained(run, options.output.explain)
        dry_run, traced = options.output.dry_run, options.output.trace is not None
        if dry_run or run.sharded is None:
            run.announce_work(search, messages.announce, passes=int(traced), dry_run=dry_run)
        if dry_run:
            return
        with run.outputs(paths, messages.announce) as files:
            with ExitStack() as ordered:
                writer = _Writer(
                    run,
                    files,
                    explained,
                    ordered,
                    approximate=approximate,
                    stated={**run.kinds.entries(run.options.scorers), **search.entries()},
                    weights=weights.weights,
                )
                for batch in model.batches(run, search):
                    for document in batch.documents:
                        writer.write(document, batch.weights)
            if run.sharded is None:
                if writer.overtaken:
                    messages.announce(
                        "--kbest-out: sentences in which another candidate has a larger total than "
                        f"the chosen one: {writer.overtaken}; totals leave out what a candidate "
                        "changes in other sentences"
                    )
                signature = _signature(run, weights, search, writer)
                result = CorpusResult(tuple(writer.results), signature, approximate)
                run.warn()
            inputs.check()
            if run.sharded is None and "summary" in files:
                files["summary"].write(
                    to_json(result.to_dict() | writer.agreement.to_dict() | run.kinds.summary())
                )
        run.report(messages.announce, messages.detail)
        if weights.weights is None and run.sharded is None and (line := writer.agreement.to_text()):
            messages.announce(line)
    if run.sharded is None:
        if explained is not None:  # a result, which --quiet leaves
            say(Explanation.of(writer.choices, explained, sentence).to_text().removesuffix("\n"))
        messages.announce("\n".join([*model.weights.remarks(), result.to_text()]))
        messages.detail(result.signature)


COMMAND = Command("decode", DecodeOptions, decode)


@contextmanager
def _opened(
    options: DecodeOptions, model: LinearModel, search: Search, notices: Notices
) -> Iterator[Run[ListSource]]:
    """The run of a decoding; UsageError for a list with scores that only weights can use."""
    from rerank.files.paths import display
    from rerank.runs.opening import open_run

    announce, weighted = options.messages.announce, options.weights.weights is not None
    settings, choice = options.run.as_tuned(model.weights), list[str]()
    if options.output.kbest_out is None:  # lists are written for tuners, which need all features
        scorers = settings.scorers.used_by(model.weights, model.default)
        settings = replace(settings, scorers=scorers)
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
    ) as run:
        if not (weighted or search.uniform) and run.has_scores():
            names = " or ".join(display(path) for _, path in run.source.lists.merged) or run.name
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
    from rerank.files.lines import is_pipe
    from rerank.runs.lists import own_documents
    from rerank.scorers.agreement import OF_SYSTEMS, RULE

    way = "as likely as they have votes, whatever scores the lists have"
    settings = settings.avoiding_defects()
    if not search.uniform:
        settings = settings.with_agreement()
        of_systems = lists.systems and not lists.merged
        way = f"chosen by agreement: {RULE}{OF_SYSTEMS if of_systems else ''}"
        for name, weight in _beside_agreement(settings.scorers).items():
            way += f"; and {weight:g} times {name}"
    lines = [f"without --weights, candidates are {way}"]
    if not (lists.docs or lists.no_docs or is_pipe(lists.kbest)) and own_documents(lists) is None:
        lines.append("without --docs, each sentence is a document")
        lists = replace(lists, no_docs="each")
    return settings, replace(lists, by_name=True), lines


def _beside_agreement(scorers: ScorerOptions) -> dict[str, float]:
    """Weights, beside that of agreement, of the features that have one without a file."""
    from rerank.scorers.glossary import WEIGHT
    from rerank.scorers.model_options import GLOSSARY

    return {GLOSSARY: WEIGHT} if scorers.glossary else {}


def _explained(run: Run[ListSource], place: str | None) -> tuple[str | None, int | None]:
    """The document, and perhaps the sentence of it, whose choices are to be explained."""
    from rerank.report.explanation import split_place

    if place is None:
        return None, None
    name, sentence = split_place(place, run.source.documents.ids, run.name)
    start, stop = run.source.documents.span(run.source.documents.ids.index(name))
    if sentence is not None and sentence >= stop - start:
        raise UsageError(
            f"--explain {place}: {name!r} has {stop - start:,} sentences, counted from 0"
        )
    return name, sentence


class _Writer:
    """The files of a decoding, written a document at a time.

    results: of the documents so far; choices: of the document that is to be explained; overtaken:
    how many chosen candidates have smaller totals in the list than others; agreement: of choices;
    approximate: whether a feature is, so that no search proves a path best; stated: what traces
    state of models, of scorers, and of programs of the search; weights: the file of these.
    """

    def __init__(
        self,
        run: Run[ListSource],
        files: dict[str, BinaryIO],
        explained: str | None,
        opened: ExitStack,
        *,
        approximate: bool,
        stated: Mapping[str, object],
        weights: FilePath | None,
    ) -> None:
        from rerank.files.signature import comment, run_entries
        from rerank.runs.lists import in_source_order
        from rerank.runs.results import TABLE
        from rerank.scorers.agreement import MeanAgreement

        self.run, self.files, self.explained, self.approximate = run, files, explained, approximate
        self.in_order = {
            name: opened.enter_context(in_source_order(files[name], run.source.documents))
            for name in ("out", "kbest")
            if name in files
        }
        read = [*run.source.lists.files, *run.options.scorers.files]
        read += [weights] if weights else []
        self.entries = run_entries(read) if {"trace", "table"} & {*files} else {}
        if "table" in files:
            files["table"].write(f"{comment(self.entries)}{tsv_line(TABLE)}\n".encode())
        self.results: list[DocumentResult] = []
        self.choices: list[Choice] = []
        self.overtaken = 0
        self.agreement = MeanAgreement()
        self.stated = stated

    def write(self, document: DecodedDocument, weights: NDArray[np.float64]) -> None:
        """Write the lines of a document, decoded under weights (F,), and keep its result."""
        from rerank.formats.run_records import Choice, to_line
        from rerank.runs.results import DocumentResult, Trace
        from rerank.runs.run import write_list
        from rerank.scorers.features import counted

        run, files, (name, kbest, features, result) = self.run, self.files, document
        if self.approximate:
            result = replace(result, exact=False, optimal=False)
        reasons, counts = "trace" in files or name == self.explained, {}
        if features is not None:
            counts = counted(run.scorers, kbest, result.choices)
        rows: Iterator[str] = (tsv_line([name, t, *[None] * 4]) for t in range(len(kbest)))
        if features is not None and (reasons or {"summary", "table"} & {*files}):
            with run.watch.lap("trace"):
                trace = Trace.of(kbest, features, weights, result, run.scorers)
                result = trace.result
                rows = trace.table(run.systems)
                if reasons:
                    lists = [name for name, _ in run.source.lists.merged]
                    trace = trace.with_totals_alone(run.scorers)
                    records = list(trace.records(run.systems, lists, counts, self.stated))
                    if "trace" in files:
                        first = {"run": self.entries} if self.entries else {}
                        records[0], self.entries = records[0] | first, {}
                        files["trace"].writelines(map(to_line, records))
                    if name == self.explained:
                        self.choices += map(Choice.of, records)
        with run.watch.lap("writing"):
            if "table" in files:
                files["table"].writelines(f"{row}\n".encode() for row in rows)
            self.in_order["out"](enumerate(kbest.chosen(result.choices), kbest.first))
            if "kbest" in files:
                write, choices = self.in_order["kbest"], result.choices
                self.overtaken += write_list(
                    run.source, write, kbest, features, choices, weights=weights
                )
        if features is not None:
            self.agreement.add(kbest, features, result.choices)
        # its marginals would make memory grow with the number of documents
        result = replace(result, posterior=None)
        self.results.append(DocumentResult.of(name, kbest, result, systems=run.systems))


def _signature(run: Run[ListSource], weights: WeightsFile, search: Search, writer: _Writer) -> str:
    """The signature of a decoding."""
    from decoders.result import NO_CANDIDATES, Direction
    from rerank.corpus.documents import DocumentFile
    from rerank.corpus.reading import AS_NFC, AS_SOURCE
    from rerank.files.signature import LENGTH, short_digest, signature
    from rerank.runs.lists import digest_of_ids

    def digests(scorers: Sequence[FeatureSource]) -> str | None:
        named = (f"{scorer.name}={scorer.digest[:LENGTH]}" for scorer in scorers)
        return ",".join(named) or None

    results = [document.search for document in writer.results]
    exact = "approximate" if writer.approximate else all(result.exact for result in results)
    results = [result for result in results if result.decoder != NO_CANDIDATES.decoder]
    decoders = sorted({result.decoder for result in results})
    ways = sorted({result.direction for result in results})
    docs = short_digest(run.source.lists.docs)
    if run.source.lists.made and run.source.lists.docs is None:
        docs = digest_of_ids(run.source.documents)[:LENGTH]
    lists, models, machine = run.source.lists, run.kinds.models, run.options.machine
    return signature(
        {
            "search": "+".join(decoders),
            **search.signed(decoders),
            "exact": exact,
            "k": "all" if lists.top is None else lists.top,
            "div": True if lists.diverse else None,
            "norm": AS_NFC if lists.in_nfc else None,
            "missing": AS_SOURCE if lists.missing == AS_SOURCE else None,
            "ctx": "all" if run.order is None else run.order,
            "dir": None if set(ways) <= {Direction.FORWARD} else "+".join(ways),
            "lm": digests(models),
            "scores": digests(run.kinds.score_files),
            "scorers": digests(run.kinds.plugins),
            "terms": run.kinds.glossary and run.kinds.glossary.digest[:LENGTH],
            "dtype": machine.dtype if models and machine.dtype != "float32" else None,
            "det": True if models and machine.deterministic else None,
            "w": run.kinds.agreement and run.kinds.agreement.name
            if weights.weights is None
            else short_digest(weights.weights),
            "dw": weights.default_weight,
            "docs": lists.no_docs or docs,
            "field": lists.docs.field if isinstance(lists.docs, DocumentFile) else None,
        }
    )
