"""Reranking in memory: what the shell does with files, for Python objects.

>>> from rerank import Document, Reranker
>>> talk = Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})]])
>>> (result,) = Reranker({"tm": 1.0}).decode([talk])
>>> result.choices, result.texts, result.score, result.exact
((0,), ('the cat',), -1.0, True)

Lines about a run go to the logger `rerank`; warnings are `rerank.RerankWarning`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from rerank.commands.document_run import LinearModel, Run
from rerank.commands.lists import KBestFile, Lists, with_own_sources
from rerank.commands.results import DocumentResult, Trace
from rerank.commands.run import ListFiles, ScoringMachine
from rerank.commands.search import SEARCH, SearchOptions
from rerank.commands.systems import made_lists
from rerank.corpus.columns import Label
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import Document, KBest, NamedLists, items
from rerank.corpus.reading import AS_SOURCE
from rerank.errors import ArgumentError, InputError
from rerank.files.lines import RereadFile
from rerank.files.paths import display
from rerank.formats.translations import check_document
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import Weights
from rerank.notices import Notices, PythonWarnings, log
from rerank.options import no_option, settings_of
from rerank.registry import SIDE_INFORMATION
from rerank.report.evaluation import Evaluation
from rerank.scorers import PlainScorer, Scorer
from rerank.scorers.features import FeatureSource
from rerank.scorers.models import LM, SCORER, LanguageModelOption, check_names, open_models
from rerank.scorers.plugin import PluginScorer
from rerank.values import FILE, SEED, TEXT, Member, Whole, check_value

if TYPE_CHECKING:
    from rerank.tuning.plan import Plan

WeightsLike = Mapping[str, float | Sequence[float]] | Weights | str | Path
LanguageModel = LanguageModelOption | str | Path
_DOCUMENTS = "documents, as [Document('talk-1', sentences)]"
_TEXT = "a text of one line, in Unicode"


class Reranker:
    """Weights, scorers and a search, which choose a candidate for every sentence of documents.

    weights: of each feature, by name, or what `rerank.tune` returned, or a weights file; {} for
    searches by votes alone, as `search="mbr"`; scorers:
    functions or objects that score candidates (`rerank.scorers.Scorer`), by feature name; lm:
    folders of language models, by feature name, with their keys as in the shell, or
    `rerank.scorers.models.LanguageModelOption`; sparse: weights of features that a candidate may
    lack. `TypeError` for an option that `rerank decode` does not have.
    """

    def __init__(
        self,
        weights: WeightsLike,
        *,
        scorers: Mapping[str, Scorer | PlainScorer] | None = None,
        lm: Mapping[str, LanguageModel] | None = None,
        sparse: Mapping[str, float] | None = None,
        search: str = "auto",
        **options: Any,
    ) -> None:
        given, notices = _Options(search, options), PythonWarnings()
        name = display(weights) if isinstance(weights, str | Path) else "weights"
        found = _weights(weights, sparse or {}, notices)
        if given.search.uniform and not (found.dense or found.sparse):
            name, given.default_weight = "", given.default_weight or 0.0  # as the shell without any
        self.model = LinearModel(found, name, given.default_weight)
        self.search = given.search.at(found)
        self.scorers = given.open(scorers or {}, lm or {}, notices, found.provenance)

    def decode(self, documents: Iterable[Document]) -> list[DocumentResult]:
        """The result for each document, in order; documents are read as they are needed.

        Several are scored and searched together; neither that nor their order changes a result.
        """
        source = MemoryRun(documents, self.scorers, self.model.weights.sparse)
        search = source.choose_search(self.search, log.info)
        results = []
        for batch in self.model.batches(source, search):
            for name, kbest, document, result in batch.documents:
                if document is not None:
                    trace = Trace.of(kbest, document, batch.weights, result, self.scorers)
                    result = trace.result
                texts = tuple(text.decode() for text in kbest.chosen(result.choices))
                results.append(DocumentResult.of(name, kbest, result, texts))
        source.warn()
        source.report(log.info, log.debug)
        return results


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
    side = _by_name("side", "files of side information", side or {})
    outputs = tuple(_by_name("systems", "files of outputs", systems or {}).items())
    _check_kinds(side)
    for name, path in (*side.items(), *outputs):
        check_value(f"file of {name!r}", FILE, path)
    lists = settings_of(ListFiles, kbest=kbest, docs=docs, systems=outputs, **options)
    return DocumentReader(lists.lists(side=side))


def tune(
    documents: Iterable[Document],
    references: Sequence[Sequence[str | Sequence[str]]],
    *,
    start: WeightsLike | None = None,
    features: Sequence[str] = (),
    plan: Plan | None = None,
    scorers: Mapping[str, Scorer | PlainScorer] | None = None,
    lm: Mapping[str, LanguageModel] | None = None,
    search: str = "auto",
    **options: Any,
) -> Weights:
    """Weights for `Reranker`, tuned on documents whose references are at hand.

    references: one or several of each sentence of each document; start: weights to start from,
    and of sparse features; features: names of those tuned, default all; plan: what is maximised
    and how (`rerank.tuning.plan.Plan`); the other arguments are those of `Reranker`.
    """
    from rerank.commands.tuning_set import tune_documents, tuning_search
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import bleu_of
    from rerank.tuning.plan import Plan

    asked, notices = _Options(search, options), PythonWarnings()
    plan = Plan() if plan is None else plan
    if not isinstance(plan, Plan):
        raise ArgumentError.of("plan", "a rerank.tuning.plan.Plan", plan)
    plan = plan if "seed" not in options else plan.seeded(options["seed"])
    plan.check(start=start is not None)
    given = None if start is None else _weights(start, {}, notices)
    for name in items("features", "a list of names", features):
        check_value("features", TEXT, name)
    tuned, targets = TunedFeatures(features, given), _texts("references", references)
    source = MemoryRun(documents, asked.open(scorers or {}, lm or {}, notices), tuned.sparse)
    chosen = tuning_search(asked.search, plan)
    result = tune_documents(
        source,
        targets,
        plan.objective.load_metrics(),
        source.choose_search(chosen.at(given) if given else chosen, log.info),
        features=tuned,
        plan=plan,
    )
    made: dict[str, object] = {"BLEU": bleu_of(result.statistics)}
    models = dict(zip(lm or {}, source.scorers, strict=False))  # they come first
    if chosen_of := {name: dict(one.chosen) for name, one in models.items() if one.chosen}:
        made["models"] = chosen_of
    return result.written(made)


def evaluate(
    systems: Mapping[str, Sequence[Sequence[str]]],
    references: Sequence[Sequence[str | Sequence[str]]],
    *,
    tokenize: str = "none",
    seed: int = 1,
) -> Evaluation:
    """Scores of systems, the first of them the baseline: texts of each document's sentences.

    references: one or several of each sentence of each document. `to_text()` is the table of
    `rerank evaluate`.
    """
    from rerank.corpus.preparation import note_differences
    from rerank.report.comparison import EvaluatedTexts, SystemText
    from rerank.report.comparison import evaluate as judge
    from rerank.report.measures import MeasureOptions

    systems = _by_name("systems", "the texts of each system", systems)
    if not systems:
        raise ArgumentError("systems: expected the texts of at least one system, found none")
    check_value("seed", SEED, seed)
    measures = settings_of(MeasureOptions, tokenize=tokenize)
    targets, judged = _texts("references", references), []
    sizes = [len(document) for document in targets]
    for name, own in systems.items():
        found = _texts(f"system {name!r}", own, several=False)
        if [len(document) for document in found] != sizes:
            raise ValueError(f"system {name!r}: expected a text for each sentence with references")
        judged.append(SystemText(name, [line for document in found for (line,) in document]))
    texts = EvaluatedTexts([*chain(*targets)], judged)
    flat = [line for sentence in texts.references for line in sentence]
    for text in texts.systems:
        note_differences(text.lines, flat, PythonWarnings(), source=text.name, tokenize=tokenize)
    return judge(
        Documents(tuple(map(str, range(len(sizes)))), tuple(accumulate(sizes, initial=0))),
        texts,
        measures,
        Notices(),
        metrics=measures.loaded_metrics(),
        seed=seed,
    )


def _texts(what: str, given: object, *, several: bool = True) -> list[list[list[bytes]]]:
    """Texts of each sentence of each document; ArgumentError for something else.

    several: whether a sentence may have a list of texts in place of one.
    """

    def of_sentence(place: str, one: object) -> list[bytes]:
        texts = [one] if isinstance(one, str) or not several else [*items(place, _TEXT, one)]
        if not texts:
            raise ArgumentError.of(place, "at least one text", one)
        return [_line(place, text) for text in texts]

    return [
        [
            of_sentence(f"{what}, document {d}, sentence {t}", one)
            for t, one in enumerate(items(f"{what}, document {d}", "a list of texts", document))
        ]
        for d, document in enumerate(items(what, "a list of documents", given))
    ]


def _line(what: str, text: object) -> bytes:
    """A text of one line; ArgumentError for something else."""
    if isinstance(text, str) and "\n" not in text:
        with suppress(UnicodeEncodeError):
            return text.encode()
    raise ArgumentError.of(what, _TEXT, text)


def _weights(given: WeightsLike, sparse: Mapping[str, float], notices: Notices) -> Weights:
    """Weights from any of the forms that `Reranker` takes."""
    if isinstance(given, str | Path):
        given = read_weights(given, notices)
    elif not isinstance(given, Weights):
        named = _by_name("weights", "the weights of features, or a weights file", given)
        given = Weights({name: _numbers(f"weight of {name!r}", w) for name, w in named.items()})
    others = _by_name("sparse", "the weights of sparse features", sparse)
    own = {name: _numbers(f"weight of {name!r}", w, 1)[0] for name, w in others.items()}
    return replace(given, sparse={**given.sparse, **own})


def _by_name(argument: str, what: str, given: object) -> Mapping[str, Any]:
    """An argument that gives values by name; ArgumentError, a TypeError, for something else."""
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise ArgumentError.of(argument, f"{what}, as {{'NAME': …}}", given)


def _numbers(what: str, given: object, most: int | None = None) -> tuple[float, ...]:
    """A finite number or a list of them, at most so many; ArgumentError for something else."""
    with suppress(TypeError, ValueError, OverflowError):
        found = np.array(given, float, ndmin=1)
        if found.ndim == 1 and np.isfinite(found).all() and (most is None or len(found) == most):
            return tuple(found.tolist())
    expected = "a finite number" if most == 1 else "a finite number, or a list of them"
    raise ArgumentError.of(what, expected, given)


class _Options:
    """Options of `rerank decode`, by their names in the shell and those of the search's own keys.

    ArgumentError, a TypeError, for an unknown option or a value of another type.
    """

    def __init__(self, search: str, options: Mapping[str, Any]) -> None:
        own = {name.replace("-", "_"): key for name, key in SEARCH.keys.items()}
        machine = {"device", "dtype", "deterministic", "cache", "no_cache"}
        searching = {"alpha", "beam", "seed", "gap"}
        known = sorted({*own, *machine, *searching, "default_weight", "n_best"})
        for name in options:
            if name not in known:
                raise ArgumentError(no_option(name, known))
        check_value("search", SEARCH, search)
        member, n_best = SEARCH.convert(search, None, None), options.get("n_best")
        settings = {own[name].field: options[name] for name in options if name in own}
        checked = [(name, own[name].type, options[name]) for name in options if name in own]
        for name, kind, value in [*checked, ("n_best", Whole(), n_best)]:
            if value is not None:
                check_value(name, kind, value)
        chosen = {name: options[name] for name in options if name in searching}
        chosen["search"] = Member(member.kind, {**member.settings, **settings})
        self.search = settings_of(SearchOptions, **chosen).chosen().listing(n_best or 1)
        default = options.get("default_weight")
        given = () if default is None else _numbers("default_weight", default, 1)
        self.default_weight: float | None = next(iter(given), None)
        own_machine = {name: options[name] for name in options if name in machine}
        self.machine = settings_of(ScoringMachine, **own_machine)

    def open(
        self,
        scorers: Mapping[str, Scorer | PlainScorer],
        lm: Mapping[str, LanguageModel],
        notices: Notices,
        provenance: Mapping[str, object] = MappingProxyType({}),
    ) -> list[FeatureSource]:
        """Language models, then the other scorers, in the order of their features.

        provenance: of weights, which say what was chosen for the models when they were tuned.
        """
        scorers = _by_name("scorers", "functions or objects that score", scorers)
        lm = _by_name("lm", "folders of language models", lm)
        named = [
            one if isinstance(one, LanguageModelOption) else LanguageModelOption.of(name, one)
            for name, one in lm.items()
        ]
        named = [one.as_tuned(provenance) for one in named]
        added = [(name, Path(name)) for name in scorers]
        names = {LM: [(one.name, one.value) for one in named], SCORER: added}
        check_names(names, [one.name for one in named if one.pmi])
        cache = self.machine.open_cache(notices) if named else None
        models = open_models(named, cache, **self.machine.of_models)
        return [*models, *(PluginScorer(name, scorer) for name, scorer in scorers.items())]


class MemoryRun(Run):
    """Documents in memory, or read by `rerank.read`.

    sparse: names of the features that a candidate may lack.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        scorers: Sequence[FeatureSource],
        sparse: Collection[str] = (),
    ) -> None:
        origins = {scorer.name: f"scorer {scorer.name!r}" for scorer in scorers}
        super().__init__((), scorers, PythonWarnings(), name="documents", origins=origins)
        self._given, self._sparse = items("documents", _DOCUMENTS, documents), sparse

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with the features of the first one that has candidates."""
        labels: Sequence[Label] = ()
        for document in self._given:
            if not isinstance(document, Document):
                raise ArgumentError.of("documents", _DOCUMENTS, document)
            kbest = document.kbest
            if kbest is None:
                kbest = KBest.of(document.sentences, source=document.id, sparse=self._sparse)
                kbest = replace(kbest, side=_side_information(document))
            for scorer in self.scorers:
                _check_needed(scorer, kbest, document.id)
            if kbest.n:
                labels = labels or kbest.labels
                kbest = _relabelled(kbest, labels)
            yield document.id, kbest

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence; all documents are read."""
        if isinstance(self._given, Iterator):
            self._given = list(self._given)
        return super().mean_k()


class DocumentReader:
    """Documents of k-best lists, read again whenever they are iterated, one at a time.

    Lists made of the outputs of systems are in a temporary file for as long as the object lives.
    """

    def __init__(self, lists: Lists) -> None:
        self._notices = PythonWarnings()
        copies = ExitStack()
        finalize(self, copies.close)
        lists, documents, *_ = made_lists(lists, self._notices, copies)
        lists = with_own_sources(lists, copies) if lists.missing == AS_SOURCE else lists
        side = {kind: RereadFile(path) for kind, path in lists.side.items()}
        self._file = KBestFile(RereadFile(lists.kbest), lists, side)
        self._documents = documents or self._file.documents(self._notices)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        for name, kbest in self._file.read(self._documents, self._notices):
            yield Document.of(name, kbest)


def _check_kinds(side: Mapping[str, Any]) -> None:
    """ArgumentError for a kind of side information that no model needs."""
    for kind in side:
        if kind not in SIDE_INFORMATION:
            raise ArgumentError(f"side: {no_option(str(kind), SIDE_INFORMATION)}")


def _side_information(document: Document) -> dict[str, list[bytes]]:
    """Side information of a document; InputError if it is not a text for each sentence."""
    found = {}
    _check_kinds(document.side)
    for kind, given in document.side.items():
        place = f"document {document.id!r}, {kind!r}"
        texts = [*items(place, "a list of a text for each sentence", given)]
        if len(texts) != len(document.sentences):
            raise InputError(
                f"expected {len(document.sentences)} texts of side information {kind!r}, one for "
                f"each sentence, found {len(texts)}; text i must belong to sentence i",
                source=document.id,
            )
        found[kind] = [_line(place, text) for text in texts]
        check_document(found[kind], kind, document.id)
    return found


def _check_needed(scorer: FeatureSource, kbest: KBest, name: str) -> None:
    """InputError for a document without side information that a scorer needs."""
    for kind in scorer.side_information:
        if kind not in kbest.side:
            raise InputError(
                f"expected {SIDE_INFORMATION[kind]}, which scorer {scorer.name!r} needs, found "
                f"none; give them to Document or rerank.read as side={{{kind!r}: ...}}",
                source=name,
            )


def _relabelled(kbest: KBest, labels: Sequence[Label]) -> KBest:
    """The lists with their features in the order of these labels; InputError for other features."""
    if tuple(labels) == kbest.labels:
        return kbest
    ends = np.cumsum([label.width for label in kbest.labels])
    columns = dict(zip(kbest.labels, np.split(np.arange(kbest.dense.shape[1]), ends), strict=False))
    if columns.keys() != set(labels):
        expected, found = (", ".join(one.name for one in those) for those in (labels, columns))
        raise InputError(
            f"expected the features of the first document, {expected}, found {found or 'none'}; "
            "give every candidate the same features, or name those that may be missing in `sparse`",
            source=kbest.source,
        )
    dense = kbest.dense[:, np.concatenate([columns[label] for label in labels])]
    return replace(kbest, dense=dense, labels=tuple(labels))
