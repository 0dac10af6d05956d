"""Reranking in memory: what the shell does with files, for Python objects.

>>> from rerank import Document, Reranker
>>> talk = Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})]])
>>> (result,) = Reranker({"tm": 1.0}).decode([talk])
>>> result.choices, result.texts, result.score, result.exact
((0,), ('the cat',), -1.0, True)

Lines about a run go to the logger `rerank`; warnings are `rerank.RerankWarning`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate, chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import Document, KBest, items
from rerank.corpus.reading import AVOID, KEEP
from rerank.errors import ArgumentError, UsageError
from rerank.files.lines import RereadFile
from rerank.files.outputs import atomic
from rerank.files.paths import display
from rerank.formats.run_records import Choice
from rerank.formats.weight_files import read_weights, weights_from_lines
from rerank.formats.weights import Weights
from rerank.notices import Notices, log
from rerank.options import KeywordErrors, PythonWarnings, option, part, record, settings_of
from rerank.registry import SIDE_INFORMATION
from rerank.report.evaluation import Evaluation
from rerank.report.measures import METRIC, NOT_REPORTED, SYSTEMS, MeasureOptions, Page
from rerank.runs.lists import KBestFile, ListSource
from rerank.runs.memory import MemoryLists, check_kinds, ids_of, memory_run, texts_of
from rerank.runs.opening import InputCopies, add_agreement, check_scorers, open_scorers, open_source
from rerank.runs.options import ListFiles, ScorerOptions, ScoringMachine, default_weight_option
from rerank.runs.results import DocumentResult, DocumentResults, Trace
from rerank.runs.run import LinearModel, Run
from rerank.runs.search import Scorers, SearchOptions, settings_with_search
from rerank.scorers import AnyScorer
from rerank.scorers.agreement import AGREEMENT, DEFECTS
from rerank.scorers.features import counted
from rerank.scorers.model_options import LanguageModelOption
from rerank.scorers.plugin import PluginScorer
from rerank.tuning.plan import Plan
from rerank.values import (
    FILE,
    METRIC_WEIGHT,
    SEED,
    TEXT,
    Whole,
    check_value,
    interval_of,
    named_values,
)

if TYPE_CHECKING:
    from decoders.result import SearchResult
    from rerank.report.run_report import RecordedChoices

WeightsLike = Mapping[str, float | Sequence[float]] | Weights | str | Path
LanguageModel = LanguageModelOption | str | Path
References = Sequence[Sequence[str | Sequence[str]] | Document]
_OBJECTS = {"lm", "scores", "pair_scores", "ngram", "scorer", *SIDE_INFORMATION}  # in Python


class Reranker:
    """Weights, scorers and a search, which choose a candidate for every sentence of documents.

    weights: of each feature, by name, or what `rerank.tune` returned, or a weights file, or the
    object in a JSON one; {} for the choice by agreement of documents without scores, or by votes
    alone (`search="mbr"`), as the shell chooses without `--weights`; scorers: functions or
    objects that score candidates (`rerank.scorers.Scorer`), or values of `--scorer` such as
    "judge:…", by feature name; lm: folders of language models, by feature name, with their keys as
    in the shell, or `rerank.scorers.model_options.LanguageModelOption`; sparse: weights of features
    that a candidate may lack. `TypeError` for an option that `rerank decode` does not have.
    """

    @KeywordErrors("decode")
    def __init__(
        self,
        weights: WeightsLike,
        *,
        scorers: Mapping[str, AnyScorer] | None = None,
        lm: Mapping[str, LanguageModel] | None = None,
        sparse: Mapping[str, float] | None = None,
        search: str = "auto",
        **options: Any,
    ) -> None:
        settings, notices = settings_with_search(_Decoding, search, options), PythonWarnings()
        scoring, default = settings.scoring, settings.default_weight
        chosen = scoring.searching.chosen().listing(settings.n_best)
        name = display(weights) if isinstance(weights, str | Path) else "weights"
        values = _weights(weights, sparse or {}, notices)
        if not (values.dense or values.sparse):  # as the shell without a weights file
            features = replace(scoring.features, scorer=_entries(scorers or {}))
            beside = {n: (w,) for n, w in features.beside_agreement.items()}
            weighed = all(name in beside for name in scorers or {})
            alone = weighed and not (chosen.uniform or lm) and default is None
            if alone:
                values = replace(values, dense={AGREEMENT: (1.0,), **beside})
            if alone or chosen.uniform:
                name, default = "", default or 0.0
        self._without_weights, self._agreement = not name, scoring.features.agreement
        avoided = not name or DEFECTS in values.dense
        self._defects = scoring.features.defects or (AVOID if avoided else KEEP)
        self.model = LinearModel(values, name, default)
        self.search = chosen.at(values)
        self.scorers = scoring.open(scorers or {}, lm or {}, notices, values.provenance)

    @KeywordErrors("decode")
    def decode(self, documents: Iterable[Document]) -> DocumentResults:
        """The result for each document, in order; documents are read as they are needed.

        Several are scored and searched together; neither that nor their order changes a result,
        but for agreement of systems, part of which is counted in all documents that are given.
        Where weights name the feature `agreement` and the documents do not have it, it is added.
        """
        run, results = self._opened(documents), DocumentResults()
        for name, kbest, searched, trace in self._decoded(run):
            result = searched if trace is None else trace.result
            counted(run.scorers, kbest, result.choices)
            texts = tuple(text.decode() for text in kbest.chosen(result.choices))
            results.append(DocumentResult.of(name, kbest, result, texts, run.source.systems))
        run.warn()
        run.report(log.info, log.debug)
        return results

    def trace(self, documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
        """A record of each sentence that has candidates, as of `rerank decode --trace`."""
        with KeywordErrors("decode"):
            run = self._opened(documents)
            for _, kbest, result, trace in self._decoded(run):
                if trace is not None:
                    trace = trace.with_totals_alone(run.scorers)
                    counts = counted(run.scorers, kbest, result.choices)
                    for scorer in run.scorers:
                        counts |= scorer.explain(kbest)
                    yield from trace.records(run.source.systems, counted=counts)

    def _decoded(
        self, run: Run[MemoryLists]
    ) -> Iterator[tuple[str, KBest, SearchResult, Trace | None]]:
        """Id, lists, result and trace of each document; no trace without candidates."""
        search = run.choose_search(self.search, log.info)
        for batch in self.model.batches(run, search):
            for name, kbest, document, result in batch.documents:
                trace = None
                if document is not None:
                    trace = Trace.of(kbest, document, batch.weights, result, run.scorers)
                yield name, kbest, result, trace

    @KeywordErrors("report", scores="scores=…")
    def report(
        self,
        documents: Iterable[Document],
        references: References,
        *,
        baseline: Reranker | None = None,
        beside: Mapping[str, Reranker] | None = None,
        **options: Any,
    ) -> Report:
        """The page of `rerank report` about a decoding: whether it helped, where, and why.

        references: as of `tune`; baseline: what is compared with it [default: first candidates];
        beside: others by name, whose choices stand beside these; options: those of `rerank report`
        that are not about files, as `title="Talks"`.
        """
        from rerank.report.page import render
        from rerank.report.run_report import Decoding, report_of

        settings, notices = settings_of(_Reporting, **options), PythonWarnings()
        source = MemoryLists(documents)
        source.keep()
        documents = source.documents
        sizes = [(document.id, len(document.sentences)) for document in documents]
        targets = [*chain(*texts_of("references", references, sizes=sizes))]
        if len({*map(len, targets)}) > 1:
            raise ArgumentError("references: expected as many of each sentence as of the first")
        others = dict(beside or {})
        score_files = settings.measures.score_files([*SYSTEMS, *others])
        metrics = settings.measures.loaded_metrics(notices)
        recorded = None if baseline is None else baseline._recorded("baseline", documents)
        known = Documents(
            tuple(name for name, _ in sizes), (0, *accumulate(size for _, size in sizes))
        )
        decoding = Decoding(self._recorded("trace", documents), recorded, known, notices)
        decoding.references = targets
        decoding.find_baseline(metrics[0], scored=bool(score_files))
        decoding.others = {
            name: Decoding(other._recorded(name, documents), None, known, notices).after
            for name, other in others.items()
        }
        result = report_of(
            decoding,
            self.model.weights,
            notices,
            metrics=metrics,
            page=settings.page,
            score_files=score_files,
            announce=log.info,
        )
        return Report(render(result), result.to_dict())

    def _recorded(self, name: str, documents: Iterable[Document]) -> RecordedChoices:
        """The choices as a report takes them, under a name for messages."""
        from rerank.report.run_report import RecordedChoices

        choices = [*map(Choice.of, self.trace(documents))]
        return RecordedChoices(f"<{name}>", lambda notices: choices)

    def _opened(self, documents: Iterable[Document]) -> Run[MemoryLists]:
        """The run of documents; UsageError for scores that nothing but weights can use."""
        weights = self.model.weights
        notices = PythonWarnings()
        run = memory_run(documents, replace(self.scorers), weights.sparse, notices, self._defects)
        if AGREEMENT in weights.dense or self._agreement:
            add_agreement(run)
        needed = self._without_weights and not (self.search.uniform or self._agreement)
        if needed and run.has_scores():
            lists = run.read_unreported()
            binary = all(np.isin(kbest.dense, (0.0, 1.0)).all() for _, kbest in lists)
            raise UsageError(
                "documents have scores, which nothing but weights can use; give weights, or, to "
                'choose without the scores, agreement=True, or search="mbr", "smc" or "ffbs"'
                + "; features that say whose output a candidate is are named by Document's "
                "systems={'FEATURE': 'SYSTEM'}" * binary
            )
        return run


def choose(
    documents: Iterable[Document], *, search: str = "auto", **options: Any
) -> DocumentResults:
    """The choice by agreement with the other candidates, as `rerank decode` without weights.

    Documents without scores: samples, or outputs of systems (`rerank.read(systems=…)`), which the
    results name. Texts alone, without `systems=` of `Document`, are samples: agreement then leaves
    out that of each system in all sentences, and other candidates may be chosen. Of equal
    candidates the first is chosen. search, options: as of `Reranker`, as `glossary="terms.tsv"` for
    documents that have sources.
    """
    return Reranker({}, search=search, **options).decode(documents)


class DocumentReader:
    """Documents of k-best lists, read again whenever they are iterated, one at a time."""

    def __init__(self, source: ListSource, notices: Notices) -> None:
        self._source, self._notices = source, notices

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Document]:
        with KeywordErrors("decode"):
            for name, kbest in self._source.read(self._notices):
                yield Document.of(name, kbest, self._source.systems)


@KeywordErrors("decode")
def read(
    kbest: str | Path | Sequence[str | Path] = "",
    docs: str | Path | None = None,
    *,
    systems: Mapping[str, str | Path] | None = None,
    side: Mapping[str, str | Path] | None = None,
    **options: Any,
) -> DocumentReader:
    """Documents of a k-best list and of a file with the document id of each source line.

    kbest: several lists, each `[NAME=]FILE`, are merged; systems: in place of kbest, or beside it,
    the file of each system's outputs, by name; lists are made of them.
    side: files of side information by kind, as `{"source": "dev.zh"}`. The other options are those
    of `rerank decode`.
    """
    side = named_values("side", "files of side information", side or {})
    outputs = tuple(named_values("systems", "files of outputs", systems or {}).items())
    check_kinds(side)
    for name, path in (*side.items(), *outputs):
        check_value(f"file of {name!r}", FILE, path)
    files = settings_of(ListFiles, kbest=kbest, docs=docs, systems=outputs, **options)
    notices, copies = PythonWarnings(), InputCopies()
    source = open_source(files.lists(side=side), notices, copies)
    source.find_sources()
    source.side = {kind: RereadFile(path) for kind, path in source.lists.side.items()}
    if isinstance(source, KBestFile):
        source.documents = source.find_documents(notices)
    reader = DocumentReader(source, notices)
    finalize(reader, copies.close)
    return reader


@KeywordErrors("tune-mert")
def tune(
    documents: Iterable[Document],
    references: References,
    *,
    objective: str | Mapping[str, float] | None = None,
    start: WeightsLike | None = None,
    features: Sequence[str] = (),
    range: Mapping[str, tuple[float | None, float | None]] | None = None,
    scorers: Mapping[str, AnyScorer] | None = None,
    lm: Mapping[str, LanguageModel] | None = None,
    search: str = "auto",
    **options: Any,
) -> Weights:
    """Weights for `Reranker`, tuned on documents whose references are at hand.

    references: one or several of each sentence of each document, or documents of them, which are
    matched by id; objective: what is maximised, a metric or several with their weights; start:
    weights to start from, and of sparse features [default: those that give the totals of the
    candidates, or else their order; for outputs of systems the best system or their agreement];
    features: names of those tuned, default all; range: least and greatest weight of features, None
    where there is no limit, as {"tm": (0, None)}; scorers, lm, search: as of `Reranker`; options:
    those of `rerank tune-mert` by their names and with their defaults, as `select="none"`,
    `length_ratio="keep"`, `seed=7`, `threads=2`. `TypeError` for an option that it does not have.
    """
    from rerank.runs.tuning_set import start_entries, tune_documents, tuning_search, verdict_entries
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import bleu_of

    settings = settings_with_search(
        _Tuning, search, {**options, "objective": _objective(objective)}
    )
    scoring, plan, notices = settings.scoring, settings.plan, PythonWarnings()
    ranges = named_values("range", "the ranges of weights", range or {})
    ranges = {name: interval_of(f"range of {name!r}", ends) for name, ends in ranges.items()}
    for name in items("features", "a list of names", features):
        check_value("features", TEXT, name)
    begin, source = None, display(start) if isinstance(start, str | Path) else "start"
    if start is not None:
        begin = _weights(start, {}, notices)
        begin.refuse_all_zero("leave out --start to start from 0", source=source)
    sparse = {} if begin is None else begin.sparse
    opened = scoring.open(scorers or {}, lm or {}, notices)
    run = memory_run(documents, opened, sparse, PythonWarnings(), scoring.features.defects)
    sizes = [(name, len(kbest)) for name, kbest in run.read_unreported()]
    systems = run.source.systems if begin is None else {}
    if systems or scoring.features.agreement or (begin and AGREEMENT in begin.dense):
        add_agreement(run)
    plan.check(ranges=bool(ranges), start=bool(begin or systems))
    searching = tuning_search(scoring.searching.chosen(), plan, begin)
    result = tune_documents(
        run,
        texts_of("references", references, sizes=sizes),
        plan.objective.load_metrics(),
        run.choose_search(searching, log.info),
        features=TunedFeatures(features, begin, source, ranges, systems=systems),
        plan=plan,
    )
    task = result.task
    chosen_of = {
        model.name: dict(model.chosen) for model in run.scorers_by_kind.models if model.chosen
    }
    made = {
        **task.plan.entries(task.goal.name, []),
        **task.features.entries(task.names),
        "BLEU": bleu_of(result.statistics),
        **({"models": chosen_of} if chosen_of else {}),
        **start_entries(run, result),
        **result.entries(),
        **verdict_entries(run, result),
    }
    return result.written(made)


@KeywordErrors("evaluate", metric="metrics", source="sources=…")
def evaluate(
    systems: Mapping[str, Sequence[Sequence[str] | DocumentResult]],
    references: References,
    *,
    sources: Sequence[Sequence[str]] | None = None,
    metrics: Sequence[str] = (),
    tokenize: str = "none",
    seed: int = 1,
) -> Evaluation:
    """Scores of systems, the first of them the baseline: texts of each document's sentences.

    references: one or several of each sentence of each document. Results of `Reranker` stand for
    their texts; these and documents of references are matched by id. metrics: as those of
    `rerank evaluate --metric`; sources: a line for each sentence, for the metric `terms`.
    `to_text()` is the table of `rerank evaluate`.
    """
    from rerank.report.comparison import EvaluatedTexts, SystemText
    from rerank.report.comparison import evaluate as judge

    systems = named_values("systems", "the texts of each system", systems)
    if not systems:
        raise ArgumentError("systems: expected the texts of at least one system, found none")
    check_value("seed", SEED, seed)
    for name in items("metrics", "a list of names", metrics):
        check_value("metrics", METRIC, name)
    measures = settings_of(MeasureOptions, tokenize=tokenize, metric=tuple(metrics))
    ids = next(filter(None, map(ids_of, [references, *systems.values()])), None)
    known = None if ids is None else [(name, None) for name in ids]
    targets = texts_of("references", references, sizes=known)
    lengths = [*map(len, targets)]
    sizes = [*zip(ids or range(len(lengths)), lengths, strict=True)]
    judged, lines = list[SystemText](), None
    for name, translations in systems.items():
        place = f"system {name!r}"
        outputs = texts_of("texts", translations, place=place, several=False, sizes=sizes)
        judged.append(SystemText(name, [line for document in outputs for (line,) in document]))
    if sources is not None:
        read = texts_of("sources", sources, several=False, sizes=sizes)
        lines = [line for document in read for (line,) in document]
    texts = EvaluatedTexts([*chain(*targets)], judged, lines)
    texts.note_differences(PythonWarnings(), tokenize)
    return judge(
        Documents(tuple(map(str, range(len(sizes)))), tuple(accumulate(lengths, initial=0))),
        texts,
        Notices(),
        metrics=measures.loaded_metrics(Notices()),
        seed=seed,
    )


@dataclass(frozen=True)
class Report:
    """The page of a decoding, and its numbers, as `rerank report --format json` has them."""

    page: str = field(repr=False)
    numbers: Mapping[str, Any] = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the page, a file that any browser opens."""
        with atomic(path) as file:
            file.write(self.page.encode())

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose script cannot reach the notebook."""
        frame = '<iframe sandbox="allow-scripts" style="width: 100%; height: 40em" srcdoc="'
        return f'{frame}{escape(self.page)}"></iframe>'


def _weights(value: WeightsLike, sparse: Mapping[str, float], notices: Notices) -> Weights:
    """Weights from any of the forms that `Reranker` takes."""
    if isinstance(value, str | Path):
        weights = read_weights(value, notices)
    elif isinstance(value, Weights):
        weights = value
    elif isinstance(value, Mapping) and isinstance(value.get("weights"), Mapping):  # of a file
        weights = weights_from_lines([json.dumps(value).encode()], notices, source="weights")
    else:
        named = named_values("weights", "the weights of features, or a weights file", value)
        weights = Weights({name: _numbers(f"weight of {name!r}", w) for name, w in named.items()})
    others = named_values("sparse", "the weights of sparse features", sparse)
    added = {name: _numbers(f"weight of {name!r}", w, 1)[0] for name, w in others.items()}
    return replace(weights, sparse={**weights.sparse, **added})


def _objective(value: object) -> tuple[tuple[str, float], ...] | None:
    """Metrics to maximise, each with its weight; None for the default."""
    if value is None:
        return None
    named = {value: 1.0} if isinstance(value, str) else value
    named = named_values("objective", "a metric, or the weights of metrics", named)
    for name, weight in named.items():
        check_value(f"weight of {name!r}", METRIC_WEIGHT, weight)
    return tuple((name, float(weight)) for name, weight in named.items())


def _numbers(what: str, value: object, most: int | None = None) -> tuple[float, ...]:
    """A finite number or a list of them, at most so many; ArgumentError for something else."""
    with suppress(TypeError, ValueError, OverflowError):
        array = np.array(value, float, ndmin=1)
        if array.ndim == 1 and np.isfinite(array).all() and (most is None or len(array) == most):
            return tuple(array.tolist())
    expected = "a finite number" if most == 1 else "a finite number, or a list of them"
    raise ArgumentError.of(what, expected, value)


@record
class _Scoring:
    """Options of scoring and search."""

    machine: ScoringMachine = part(ScoringMachine)
    features: ScorerOptions = part(ScorerOptions, without=_OBJECTS)
    searching: SearchOptions = part(SearchOptions)

    def open(
        self,
        scorers: Mapping[str, AnyScorer],
        lm: Mapping[str, LanguageModel],
        notices: Notices,
        provenance: Mapping[str, object] = MappingProxyType({}),
    ) -> Scorers:
        """Language models and the other scorers.

        provenance: of weights, which say what was chosen for the models when they were tuned.
        """
        scorers = named_values("scorers", "functions or objects that score", scorers)
        lm = named_values("lm", "folders of language models", lm)
        named = [
            model if isinstance(model, LanguageModelOption) else LanguageModelOption.of(name, model)
            for name, model in lm.items()
        ]
        named = [model.as_tuned(provenance) for model in named]
        added = tuple((name, name) for name in scorers)
        check_scorers(replace(self.features, lm=tuple(named), scorer=added, agreement=False))
        options = replace(self.features, lm=tuple(named), scorer=_entries(scorers))
        opened, _ = open_scorers(options, self.machine, notices)
        others = [PluginScorer(n, x) for n, x in scorers.items() if not isinstance(x, str)]
        opened.plugins = [*opened.plugins, *others]
        return opened


def _entries(scorers: Mapping[str, AnyScorer]) -> tuple[tuple[str, str], ...]:
    """The scorers that are given as in the shell."""
    return tuple((name, entry) for name, entry in scorers.items() if isinstance(entry, str))


@record
class _Decoding:
    """Options of `Reranker`."""

    scoring: _Scoring = part(_Scoring)
    default_weight: float | None = default_weight_option()
    n_best: int = option("Number of best paths of each document.", type=Whole(), default=1)


@record
class _Reporting:
    """Options of `Reranker.report`."""

    measures: MeasureOptions = part(MeasureOptions, without=NOT_REPORTED)
    page: Page = part(Page, without={"form", "out", "figures"})


@record
class _Tuning:
    """Options of `tune`."""

    scoring: _Scoring = part(_Scoring, without={"gap", "seed"})
    plan: Plan = part(Plan, without={"files"})
