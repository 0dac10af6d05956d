"""Reranking in memory: what the shell does with files, for Python objects.

>>> from rerank import Document, Reranker
>>> talk = Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})]])
>>> (result,) = Reranker({"tm": 1.0}).decode([talk])
>>> result.choices, result.texts, result.score, result.exact
((0,), ('the cat',), -1.0, True)

Lines about a run go to the logger `rerank`; warnings are `rerank.RerankWarning`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from decoders.table import Options
from rerank.commands.document_run import LinearModel, choose_search
from rerank.commands.lists import Lists
from rerank.commands.results import DocumentResult, Trace
from rerank.commands.run import SEARCH_NAMES
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import Document
from rerank.files.paths import display
from rerank.formats.weights import Weights, read_weights
from rerank.notices import Notices, PythonWarnings, log
from rerank.pipeline.memory import DocumentReader, MemorySource
from rerank.pipeline.models import Scoring
from rerank.pipeline.searching import Search
from rerank.report.evaluation import Evaluation
from rerank.scorers import PlainScorer, Scorer
from rerank.scorers.features import FeatureSource
from rerank.scorers.models import LM, SCORER, LanguageModelOption, check_names, open_models
from rerank.scorers.plugin import PluginScorer

if TYPE_CHECKING:
    from rerank.tuning.plan import Plan

WeightsLike = Mapping[str, float | Sequence[float]] | Weights | str | Path
LanguageModel = LanguageModelOption | str | Path


class DecodeOptions(TypedDict, total=False):
    """Options of `rerank decode`, by their names in the shell; `rerank decode --help`."""

    alpha: float
    beam: int
    beam_threshold: float
    block: int
    cache: Path | str
    default_weight: float
    deterministic: bool
    device: str
    dtype: str
    ess: float
    gap: int
    gibbs: int
    horizon: int
    lag: int
    merge: str
    n_best: int
    no_cache: bool
    particles: int
    resampling: str
    samples: int
    seed: int
    spread: float
    temper: float
    utility: str
    word_reward: float


class ReadOptions(TypedDict, total=False):
    """Options of `rerank decode` about lists."""

    no_docs: str | None
    top: int | None
    diverse: bool
    first_id: int
    clip_inf: float | None
    max_k: int
    kbest_format: str | None
    kbest_scores: str | Path | None
    encoding: str
    encoding_errors: str
    missing: str
    normalize: str


class Reranker:
    """Weights, scorers and a search, which choose a candidate for every sentence of documents.

    weights: of each feature, by name, or what `rerank.tune` returned, or a weights file; scorers:
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
        **options: Unpack[DecodeOptions],
    ) -> None:
        how, machine = _split(search, options)
        notices = PythonWarnings()
        name = display(weights) if isinstance(weights, str | Path) else "weights"
        found = _weights(weights, sparse or {}, notices)
        self.model = LinearModel(found, name, options.get("default_weight"))
        self.search = how.at(found.alpha, found.mbr_spread)
        self.scorers = _feature_sources(scorers or {}, lm or {}, machine, notices)

    def decode(self, documents: Iterable[Document]) -> list[DocumentResult]:
        """The result for each document, in order; documents are read as they are needed.

        Several are scored and searched together; neither that nor their order changes a result.
        """
        source = MemorySource(documents, self.scorers, self.model.weights.sparse)
        search = choose_search(source, self.search, log.info)
        results = []
        for batch in self.model.batches(source, search):
            for name, kbest, document, result in batch.each():
                if document is not None:
                    trace = Trace.of(kbest, document, batch.weights, result, self.scorers)
                    result = trace.result
                texts = tuple(text.decode() for text in kbest.chosen(result.choices))
                results.append(DocumentResult.of(name, kbest, result, texts))
        source.warn()
        source.report(log.info, log.debug)
        return results


def read(
    kbest: str | Path = "",
    docs: str | Path | None = None,
    *,
    systems: Mapping[str, str | Path] | None = None,
    side: Mapping[str, str | Path] | None = None,
    **options: Unpack[ReadOptions],
) -> DocumentReader:
    """Documents of a k-best list and of a file with the document id of each source line.

    systems: in place of kbest, the file of each system's outputs, by name; lists are made of them.
    side: files of side information by kind, as `{"source": "dev.zh"}`. The other options are those
    of `rerank decode`.
    """
    _check_names(options, ReadOptions.__annotations__)
    outputs = tuple((name, Path(path)) for name, path in (systems or {}).items())
    return DocumentReader(Lists(kbest, docs, systems=outputs, side=side or {}, **options))


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
    **options: Unpack[DecodeOptions],
) -> Weights:
    """Weights for `Reranker`, tuned on documents whose references are at hand.

    references: one or several of each sentence of each document; start: weights to start from,
    and of sparse features; features: names of those tuned, default all; plan: what is maximised
    and how (`rerank.tuning.plan.Plan`); the other arguments are those of `Reranker`.
    """
    from rerank.corpus.columns import decoder_names
    from rerank.pipeline.tuning import tune_source, tuning_search
    from rerank.pipeline.tuning_outcome import by_name
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import bleu_of
    from rerank.tuning.plan import Plan

    how, machine = _split(search, options)
    notices, plan = PythonWarnings(), plan or Plan()
    plan = plan if "seed" not in options else plan.seeded(options["seed"])
    plan.check(start=start is not None)
    given = None if start is None else _weights(start, {}, notices)
    tuned = TunedFeatures(features, given)
    sources = _feature_sources(scorers or {}, lm or {}, machine, notices)
    source = MemorySource(documents, sources, tuned.sparse)
    chosen = tuning_search(how, plan).at(given.alpha if given else None)
    result = tune_source(
        source,
        [[_encoded(one) for one in document] for document in references],
        plan.objective.load_metrics(),
        choose_search(source, chosen, log.info),
        features=tuned,
        plan=plan,
    )
    space, made = result.task.space, {"BLEU": bleu_of(result.statistics)}
    return Weights(
        by_name(result.task.full(result.weights), space),
        tuned.other_sparse(space),
        result.scale.alpha if result.scale else None,
        made,
        decoder_names=decoder_names(space.labels),
    )


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
    from rerank.metrics import metric
    from rerank.metrics.bleu import Bleu
    from rerank.report.comparison import EvaluatedTexts, SystemText
    from rerank.report.comparison import evaluate as judge

    sizes = [len(document) for document in references]
    for name, texts in systems.items():
        if [len(document) for document in texts] != sizes:
            raise ValueError(f"system {name!r}: expected a text for each sentence with references")
    return judge(
        Documents(tuple(map(str, range(len(sizes)))), tuple(accumulate(sizes, initial=0))),
        EvaluatedTexts(
            [_encoded(one) for document in references for one in document],
            [
                SystemText(name, list(map(str.encode, chain(*texts))))
                for name, texts in systems.items()
            ],
        ),
        metric=Bleu(tokenize),
        others={name: metric(name) for name in ("chrf", "ter")},
        seed=seed,
    )


def _encoded(references: str | Sequence[str]) -> list[bytes]:
    """The references of a sentence."""
    return [one.encode() for one in ([references] if isinstance(references, str) else references)]


def _weights(given: WeightsLike, sparse: Mapping[str, float], notices: Notices) -> Weights:
    """Weights from any of the forms that `Reranker` takes."""
    if isinstance(given, str | Path):
        given = read_weights(given, notices)
    elif not isinstance(given, Weights):
        given = Weights({n: tuple(np.array(w, float, ndmin=1).tolist()) for n, w in given.items()})
    return replace(given, sparse={**given.sparse, **sparse})


def _check_names(options: Iterable[str], known: Collection[str]) -> None:
    """TypeError for an unknown option, with the most similar one."""
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise TypeError(f"no option {name!r}; {hint}")


def _split(method: str, options: DecodeOptions) -> tuple[Search, Scoring]:
    """The search and the scoring that the options ask for; TypeError for an unknown option."""
    _check_names(options, DecodeOptions.__annotations__)
    given: dict[str, Any] = {**options}
    given.pop("default_weight", None)
    machine = ("device", "dtype", "deterministic", "cache", "no_cache")
    scoring = Scoring(**{name: given.pop(name) for name in machine if name in given})
    arguments = {
        flag.removeprefix("--").replace("-", "_"): name for name, flag in SEARCH_NAMES.items()
    }
    own = Options(**{arguments.get(name, name): value for name, value in given.items()})
    return Search(method, own), scoring


def _feature_sources(
    scorers: Mapping[str, Scorer | PlainScorer],
    lm: Mapping[str, LanguageModel],
    machine: Scoring,
    notices: Notices,
) -> list[FeatureSource]:
    """Language models, then the other scorers, in the order of their features."""
    named = [
        one if isinstance(one, LanguageModelOption) else LanguageModelOption.of(name, one)
        for name, one in lm.items()
    ]
    names = {LM: [(one.name, one.value) for one in named], SCORER: [(n, Path(n)) for n in scorers]}
    check_names(names, [one.name for one in named if one.pmi])
    cache = machine.open_cache(notices) if named else None
    models = open_models(named, cache, **machine.machine)
    return [*models, *(PluginScorer(name, scorer) for name, scorer in scorers.items())]
