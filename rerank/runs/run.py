"""A run through documents: read, scored and searched in batches; cached, resumable, in shards."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.result import NO_CANDIDATES, Direction, SearchResult
from decoders.table import Decoder, automatic
from rerank.corpus.defects import Defects
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import KEEP
from rerank.errors import RerankError, UsageError
from rerank.files.arrays import ArrayStore, size_text
from rerank.files.outputs import atomic_all
from rerank.files.paths import FilePath, display
from rerank.files.terminal import progress
from rerank.formats.table import lines_of
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import Weights, vector
from rerank.notices import Notices, Printer
from rerank.runs.distribution import cost, deal
from rerank.runs.lists import LineWriter, ListSource, Source
from rerank.runs.search import Search, row_of, search_documents
from rerank.scorers import TOTAL
from rerank.scorers.agreement import CONSENSUS, has_scores
from rerank.scorers.defects import DEFECTS
from rerank.scorers.features import DocumentFeatures, FeatureSource, FeatureSpace, prepare

if TYPE_CHECKING:
    from rerank.files.cache import Cache
    from rerank.runs.options import RunOptions, ScorerOptions
    from rerank.scorers.agreement import Agreement
    from rerank.scorers.defects import DefectFeature
    from rerank.scorers.glossary import GlossaryScores
    from rerank.scorers.numbers import NumberLines
    from rerank.scorers.programs import Estimator  # loads numba
    from rerank.scorers.score_files import FileScorer

T = TypeVar("T")
Array = NDArray[np.float64]
Weigh: TypeAlias = Callable[[FeatureSpace], Array | None]
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "file": 1}
ABREAST = 1 << 12  # candidates of one sentence of each document: enough for searches in step
DEAR = 4.0  # passes over the lists by exact search, for each pass by a beam
_HELD = 4  # lists of which so many would fit into memory beside the rest are held there
_DIRECTIONS = {  # of a search, for people
    Direction.FORWARD: "",
    Direction.REVERSED: "; documents are searched from the last sentence to the first, as the "
    "models read them",
    Direction.BOTH: "; models read documents in both directions: sweeps from the better of the two "
    "paths that a beam finds in one direction",
}


class Stopwatch:
    """Seconds of named parts of a run since it was made, in the order of their first use."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.parts: dict[str, float] = {}

    @contextmanager
    def lap(self, part: str) -> Iterator[None]:
        """Add the time of the block to a part, except what it adds to other parts."""
        began, before = perf_counter(), sum(self.parts.values())
        try:
            yield
        finally:
            others = sum(self.parts.values()) - before
            self.add(part, perf_counter() - began - others)

    def add(self, part: str, seconds: float) -> None:
        """Add seconds to a part."""
        self.parts[part] = self.parts.get(part, 0.0) + seconds

    def timed(self, items: Iterable[T], part: str) -> Iterator[T]:
        """Yield the items, adding the time that each takes to arrive to a part."""
        iterator = iter(items)
        while True:
            with self.lap(part):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def to_text(self) -> str:
        """`14.2 s: lists 5.5, scores 1.4, search 1.2, rest 6.1`."""
        total = perf_counter() - self.began
        rest = total - sum(self.parts.values())
        shown = [f"{part} {seconds:.1f}" for part, seconds in [*self.parts.items(), ("rest", rest)]]
        return f"{total:.1f} s: {', '.join(shown)}"


class DecodedDocument(NamedTuple):
    """A document of a batch: its id, its lists, their features, and the result of a search.

    No features without candidates; an empty result without candidates or without a search.
    """

    name: str
    kbest: KBest
    features: DocumentFeatures | None
    result: SearchResult


class Batch(NamedTuple):
    """Documents that were scored and searched together, those without candidates, too.

    weights: (F,), of the feature columns; empty where none are given.
    """

    documents: Sequence[DecodedDocument]
    weights: Array


SourceT = TypeVar("SourceT", bound=Source)


@dataclass
class Scorers:
    """The scorers of a run by kind, in the order of their features."""

    agreement: Agreement | None = None
    defects: DefectFeature | None = None
    models: Sequence[FeatureSource] = ()
    score_files: Sequence[FileScorer] = ()
    plugins: Sequence[FeatureSource] = ()
    glossary: GlossaryScores | None = None

    @property
    def all(self) -> list[FeatureSource]:
        """All of them."""
        agreement = [] if self.agreement is None else [self.agreement]
        glossary = [] if self.glossary is None else [self.glossary]
        defects = [] if self.defects is None else [self.defects]
        return [*agreement, *defects, *self.models, *self.score_files, *self.plugins, *glossary]

    def summary(self) -> dict[str, object]:
        """What scorers add to a summary of the run, by key."""
        return {key: value for scorer in self.all for key, value in scorer.summary().items()}

    def entries(self, options: ScorerOptions) -> dict[str, dict[str, dict[str, object]]]:
        """What weights files and traces state of models and of scorers of `--scorer`, by name.

        Model, digests and, of a program, its own name and version; kinds that there are not are
        left out.
        """
        models = {
            option.name: {
                "folder": option.value.name,
                "digest": scorer.digest,
                **option.provenance,
                **scorer.chosen,
            }
            for scorer, option in zip(self.models, options.lm, strict=True)
        }
        plugins = {
            scorer.name: {"entry": entry, "digest": scorer.digest, **scorer.chosen}
            for scorer, (_, entry) in zip(self.plugins, options.scorer, strict=True)
        }
        return {kind: own for kind, own in [("models", models), ("scorers", plugins)] if own}


class Run(Generic[SourceT]):
    """Documents of a source and the scorers that give their candidates features.

    origins: how the user named each scorer, by its name; store: where candidates lie that do not
    fit into memory; options: those of the shell; cache: of scores; programs: beside the scorers;
    metrics: scores of each hypothesis by metrics of other tools, by name.
    """

    def __init__(
        self,
        source: SourceT,
        kinds: Scorers,
        notices: Notices,
        *,
        origins: Mapping[str, str],
        store: ArrayStore,
        options: RunOptions,
        watch: Stopwatch | None = None,
        cache: Cache | None = None,
        programs: Sequence[Estimator] = (),
        metrics: Mapping[str, NumberLines] = MappingProxyType({}),
    ) -> None:
        self.source, self.kinds, self.scorers, self.notices = source, kinds, kinds.all, notices
        self.origins, self.store, self.cache = origins, store, cache
        self.options, self.shard = options, options.sharing.shard
        self.programs, self.metrics, self.watch = programs, metrics, watch or Stopwatch()
        self.unfinished: list[DocumentFeatures] = []
        self.defects = Defects(options.scorers.defects or KEEP)
        self._held: list[NamedLists] = []

    @property
    def name(self) -> str:
        """What messages call the lists."""
        return self.source.name

    @property
    def systems(self) -> Mapping[str, str]:
        """Name of each system by the label of its indicator feature."""
        return self.source.systems

    def opened_cache(self) -> Cache | None:
        """The cache, also for runs without a model; None where there must be none."""
        self.cache = self.cache or self.options.machine.open_cache(self.notices)
        return self.cache

    # Reading

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, of a shard those that are dealt to it, with a progress bar."""
        timed = self.watch.timed(self._held or self._documents(self.notices), "lists")
        total = len(self.source)
        if (shard := self.sharded) is not None:
            total = len(shard)
            timed = (named for d, named in enumerate(timed) if d in shard)
        return progress(timed, label="documents", unit="documents", total=total)

    def read_unreported(self) -> Iterable[NamedLists]:
        """Each document, without notices and progress."""
        self.source.keep()
        return self._held or self._documents(Notices())

    def _documents(self, notices: Notices) -> Iterator[NamedLists]:
        """Each document, with the defects of its candidates as `--defects` says."""
        documents = self.source.read(notices, self.store)
        return self.defects.marked(documents, notices, self.systems)

    @cached_property
    def sizes(self) -> tuple[list[list[int]], int, int]:
        """Candidates of each list of each document, words and sentences of all.

        The lists are read at the first use; documents that fit into memory are held there, so that
        no other pass reads them again.
        """
        notices = Notices(strict=self.notices.strict, allowed=self.notices.allowed)
        counts: list[list[int]] = []
        words = size = sentences = 0
        held: list[NamedLists] | None = []
        self.source.keep()
        for name, kbest in self.watch.timed(self._documents(notices), "lists"):
            counts.append(kbest.counts[kbest.counts > 0].tolist())
            sentences += len(kbest)
            words += sum(len(text.split()) for text in kbest.texts.to_list())
            size += len(kbest.texts.blob) + kbest.dense.nbytes
            if held is not None and self.store.has_room(_HELD * size):
                held.append((name, kbest))
            else:
                held = None
        if held is not None:
            self._held = held
            for notice in notices:
                self.notices.take(notice)
        return counts, words, sentences

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return sum(map(sum, self.sizes[0]))

    def has_scores(self) -> bool:
        """Whether the lists' own numbers, but votes, tell candidates apart."""
        counted = {*self.systems, *CONSENSUS} if self.systems else ()
        lists = self.read_unreported() if self.n_candidates else ()
        return any(has_scores(kbest, counted) for _, kbest in lists)

    # Scoring and searching

    @property
    def direction(self) -> Direction:
        """The direction of a search with all scorers; up to order 1 a scorer serves either."""
        if not self.causal:
            return Direction.BOTH
        given_later = {
            scorer.given_later
            for scorer in self.scorers
            if scorer.order not in (0, 1) or scorer.on_demand
        }
        if len(given_later) > 1:
            return Direction.BOTH
        return Direction.REVERSED if True in given_later else Direction.FORWARD

    @property
    def causal(self) -> bool:
        """Whether each of the scorers depends on the sentences of one side only."""
        return all(scorer.causal for scorer in self.scorers)

    @property
    def order(self) -> int | None:
        """Largest order of the scorers; None if one is unbounded, or above 1 in both directions."""
        orders = [scorer.order for scorer in self.scorers]
        if self.direction is Direction.BOTH:
            return None
        return None if None in orders else max([0, *(o for o in orders if o is not None)])

    def space(self, kbest: KBest, *, total: bool) -> FeatureSpace:
        """Feature columns of these lists; UsageError if a scorer's name is a label of the list."""
        labels = {label.name for label in kbest.labels}
        for scorer in self.scorers:
            for name in (scorer.name, *scorer.columns):
                if name in labels:
                    raise UsageError(
                        f"{self.origins[scorer.name]}: {kbest.source} already has a feature "
                        f"{name!r}; choose another NAME"
                    )
        return FeatureSpace.of(kbest.labels, self.scorers, total=total and TOTAL not in labels)

    def batches(
        self,
        weigh: Weigh | None = None,
        search: Search | None = None,
        *,
        total: bool = False,
        sparse: Mapping[str, float] = NO_WEIGHTS,
        keep: bool = True,
    ) -> Iterator[Batch]:
        """The documents in batches, scored and, where `weigh` gives weights, searched.

        weigh: weights (F,) of the feature columns, or None; called once, before anything is scored;
        total: whether the list's total is a feature; sparse: weights of sparse features. When the
        caller asks for the next batch, scores that the search computed go to the cache; not to
        `keep` them is for callers who search the documents later. Memory: a batch (`_filled`).
        """
        space: FeatureSpace | None = None
        weights: Array | None = None
        for batch in self._filled():
            filled = [(name, kbest) for name, kbest in batch if kbest.n]
            documents: list[DocumentFeatures] = []
            results: list[SearchResult] = []
            if filled:
                if space is None:  # all documents have the same labels
                    space = self.space(filled[0][1], total=total)
                    weights = None if weigh is None else weigh(space)
                with self.watch.lap("scores"):
                    scored = prepare(filled, self.scorers, space, sparse)
                    documents = [document.stored(self.store) for document in scored]
                self.unfinished += documents
                if search is not None and weights is not None:
                    with self.searching():
                        lists = [kbest for _, kbest in filled]
                        results = search_documents(documents, weights, search, lists)
                    for result in results:
                        extinct = result.posterior is not None and result.posterior.extinct
                        if extinct or result.score == -np.inf:
                            self.notices.add("impossible-document", source=self.name)
            searched = zip(documents, results or [NO_CANDIDATES] * len(documents), strict=True)
            decoded = []
            for name, kbest in batch:
                features, result = next(searched) if kbest.n else (None, NO_CANDIDATES)
                decoded.append(DecodedDocument(name, kbest, features, result))
            yield Batch(decoded, np.zeros(0) if weights is None else weights)
            if keep:
                with self.watch.lap("cache"):
                    for document in documents:
                        document.save()
                self.unfinished = [left for left in self.unfinished if left not in documents]

    def _filled(self) -> Iterator[list[NamedLists]]:
        """The documents in groups that fill the machine.

        A group ends with the document that brings its candidates to `TOGETHER`, or those of
        one sentence of each to `ABREAST`, which bounds the memory of a search.
        """
        most = max([TOGETHER[scorer.runs_on] for scorer in self.scorers], default=1)
        batch: list[NamedLists] = []
        held = abreast = 0
        for name, kbest in self.read():
            batch.append((name, kbest))
            held += kbest.n
            abreast += int(kbest.counts.max(initial=0))
            if held >= most or abreast >= ABREAST:
                yield batch
                batch, held, abreast = [], 0, 0
        if batch:
            yield batch

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Time of a search as `search`, but that of the scorers in it as `scores`."""
        before = sum(scorer.seconds for scorer in self.scorers)
        with self.watch.lap("search"):
            yield
            self.watch.add("scores", sum(scorer.seconds for scorer in self.scorers) - before)

    def warn(self) -> None:
        """Notices and faults that need the whole run, as of words that the models do not know."""
        for scorer in self.scorers:
            scorer.finish(self.name, self.notices)

    def report(self, announce: Printer, details: Printer) -> None:
        """Announce what the scorers did and where the time went; in detail, engine counters."""
        for program in self.programs:
            announce(f"{program.option}: {program.report()}")
        for scorer in self.scorers:
            announce(scorer.report())
            if line := scorer.details():
                details(line)
        if self.store.on_disk:
            size = size_text(self.store.on_disk)
            announce(f"candidates that did not fit into memory: {size} in files")
        announce(f"time {self.watch.to_text()}")

    def choose_search(self, search: Search, announce: Printer) -> Search:
        """The search with `auto` replaced where needed, by the scorers' order and cost; announced.

        `auto` is exact search unless that takes more than `DEAR` times as many passes over the
        lists as a beam; a document whose exact search costs too much still goes to a beam
        (`decoders.table.choose`). UsageError for a decoder that does not serve the order, and for
        unsuited options.
        """
        order, direction = self.order, self.direction
        served = None if any(scorer.on_demand for scorer in self.scorers) else order
        auto = automatic(served, causal=direction is not Direction.BOTH)
        row = row_of(auto if search.method == "auto" else search.method)
        width = search.options.beam_width
        priced = ""
        if search.method == "auto" and row.name == "viterbi":
            passes = self._passes()
            # what is scored after some histories only can be searched in one direction only
            costly = {scorer.given_later for scorer in self.scorers if scorer.passes(2) > 1}
            if passes > DEAR * width and len(costly) == 1:
                search, row = replace(search, method="beam"), row_of("beam")
                priced = f"; --search viterbi is exact, in {passes:.0f} passes over the lists"
                for scorer in self.scorers:
                    scorer.lazily()
        elif self._visits_less(row, search):
            for scorer in self.scorers:
                scorer.lazily()
        search.check_decoder(row, served, direction, causal=self.causal)
        wide = f" of width {width}" if "width" in row.options else ""
        depth = "unbounded order" if order is None else f"order {order}"
        exact = (
            "exact" if row.exact(order) and search.options.merge in (None, "max") else "not exact"
        )
        announce(
            f"search: {row.name}{wide}, {exact} for a problem of {depth}, {row.cost}{priced}"
            f"{_DIRECTIONS[self.direction]}"
        )
        return search

    def _visits_less(self, row: Decoder, search: Search) -> bool:
        """Whether a search asks for scores after fewer histories than each list has.

        A gap is that to the best of all paths. What depends on later sentences is searched from the
        other end if it is scored on the way, and may end in another path.
        """
        costly = {scorer.given_later for scorer in self.scorers if scorer.passes(2) > 1}
        few = row.histories(search.options) < self._passes()
        forward = costly == {False} and self.direction is Direction.FORWARD
        return few and forward and search.options.gap is None

    def _passes(self) -> float:
        """Passes over the lists that exact search takes, by the scorer that needs most."""
        if all(scorer.passes(2) == scorer.passes(1) for scorer in self.scorers):
            return 1.0  # whatever K is
        mean_k = self.n_candidates / max(1, self.sizes[2])
        return max(scorer.passes(mean_k) for scorer in self.scorers)

    # Shards, and work that is announced

    @cached_property
    def sharded(self) -> frozenset[int] | None:
        """Numbers of the documents of the shard; None for all documents."""
        if self.shard is None:
            return None
        number, total = self.shard
        with self.watch.lap("shard"):
            return frozenset(deal(self.costs, total)[number - 1])

    @cached_property
    def costs(self) -> list[int]:
        """Predicted cost of scoring each document (`rerank.runs.distribution.cost`)."""
        return [cost(kbest, self.order) for _, kbest in self.read_unreported()]

    @contextmanager
    def scoring_shard(self, announce: Printer) -> Iterator[None]:
        """Scoring of a shard: announced, and an error if its scores are not in the cache."""
        shard, dealt = "/".join(map(str, self.shard or ())), self.sharded or ()
        if not any(scorer.cacheable for scorer in self.scorers):
            raise UsageError(
                "there is nothing to share: the score cache has scores of language models and of "
                "scorers with a digest, and this run has none; run it in one process"
            )
        costs = self.costs
        share = sum(costs[d] for d in dealt) / max(1, sum(costs))
        announce(
            f"shard {shard}: {len(dealt):,} of {len(costs):,} documents, {share:.1%} of the work"
        )
        for scorer in self.scorers:
            if not scorer.cacheable and scorer.runs_on != "file":
                announce(
                    f"{scorer.name}: not in the score cache; computed again by the run at the end"
                )
        yield
        if self.cache is not None and not self.cache.writable:
            faults = "; ".join(n.sentence for n in self.notices if "cache" in n.kind.name)
            raise RerankError(f"shard {shard}: {faults}; its scores are lost")
        announce(f"shard {shard}: the scores are in the cache")

    @contextmanager
    def outputs(
        self, paths: Mapping[str, FilePath], announce: Printer
    ) -> Iterator[dict[str, BinaryIO]]:
        """Files to write, by name, which appear when the block ends; those of a shard do not."""
        if self.sharded is None:
            with atomic_all(list(paths.values())) as files:
                yield dict(zip(paths, files, strict=True))
        else:
            nowhere = [os.devnull] * len(paths)
            with self.scoring_shard(announce), atomic_all(nowhere) as files:
                yield dict(zip(paths, files, strict=True))

    def announce_work(
        self, search: Search | None, announce: Printer, *, passes: int = 0, dry_run: bool = False
    ) -> None:
        """Announce, from counting alone, how much slow scorers are asked; all in a dry run.

        search: None for a run that only scores the path of first candidates; passes: over the lists
        in other contexts than those of the search.
        """
        if not (dry_run or any(scorer.slow_unit for scorer in self.scorers)):
            return
        (counts, words, sentences), most = self.sizes, math.inf
        candidates = self.n_candidates
        if search is not None and search.method != "auto":
            most = row_of(search.method).histories(search.options)
        scored = []
        for scorer in self.scorers:
            unit, texts = scorer.slow_unit, float(candidates)
            if scorer.order is None:
                unit += " for each history" * bool(unit)
            else:
                texts *= len(scorer.columns) + (passes if scorer.order else 0)
                texts += sum(_n_scored(lists, scorer.order, most) for lists in counts)
            scored.append(f"{scorer.name} (at most {texts:,.0f} {unit})" if unit else scorer.name)
        by = f"; scored by {', '.join(scored)}" if scored else ""
        announce(
            f"{len(counts):,} documents, {sentences:,} sentences, "
            f"{candidates:,} candidates, {words:,} words{by}"
        )


def _n_scored(counts: Sequence[int], order: int, most: float) -> float:
    """How many scores of candidates after histories lists need, for at most so many histories."""
    return sum(
        k * min(most, math.prod(counts[max(0, t - order) : t])) for t, k in enumerate(counts)
    )


def write_list(
    source: ListSource,
    write: LineWriter,
    kbest: KBest,
    document: DocumentFeatures | None,
    choices: Sequence[int],
    *,
    weights: Array | None = None,
) -> int:
    """Write a document's lines with features under a path and, given weights, totals.

    document: None without any candidates, for which JSON lines have lines, too.
    Returns in how many sentences another total is larger than that of the path's candidate.
    """
    kbest = source.with_annotations(kbest)
    names: list[str] = []
    added, totals = np.zeros((kbest.n, 0)), None
    if document is not None:
        space = document.space
        features = document.under(choices)
        totals = None if weights is None else features @ weights + document.sparse
        added = features[:, space.list_width :]
        names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
    first_id = source.lists.first_id
    write(lines_of(source.format, kbest, source.documents, names, added, totals, first_id=first_id))
    if document is None or totals is None or not len(document.present):
        return 0
    largest = np.maximum.reduceat(totals, document.offsets[:-1])
    return int((largest > totals[document.chosen_rows(choices)]).sum())


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights, the name of their source for messages, and the weight of features that lack one."""

    weights: Weights
    source: str
    default: float | None = None

    @classmethod
    def read(cls, path: FilePath, default: float | None, notices: Notices) -> LinearModel:
        """The model of a weights file."""
        return cls(read_weights(path, notices), display(path), default)

    def batches(self, run: Run[Any], search: Search | None = None) -> Iterator[Batch]:
        """Batches of a run's documents, scored and, given a search, searched under the weights.

        A notice names language models that are not those of the tuning, by their digests.
        """
        if search is not None:
            search.check_weights(self.weights, self.source)
        models = self.weights.provenance.get("models")
        for scorer in run.scorers:
            tuned = models.get(scorer.name) if isinstance(models, dict) else None
            if isinstance(tuned, dict) and tuned.get("digest", scorer.digest) != scorer.digest:
                name, folder = scorer.name, tuned.get("folder")
                run.notices.add("other-model", source=self.source, name=name, folder=folder)
        return run.batches(
            lambda space: self.vector(space, run.notices if self.source else Notices()),
            search,
            total=TOTAL in self.weights.dense,
            sparse=self.weights.sparse,
        )

    def vector(self, space: FeatureSpace, notices: Notices) -> Array:
        """Weights (F,) of feature columns; errors as `rerank.formats.weights.vector`.

        What has a weight of itself has it where no file gives weights, and defects always have it:
        `--default-weight` is of features that may be good or bad.
        """
        own = {n: (v,) for n, v in space.presets.items() if not self.source or n == DEFECTS}
        return vector(
            replace(self.weights, dense={**own, **self.weights.dense}),
            space.labels,
            default=self.default,
            presets=space.presets,
            notices=notices,
            source=self.source,
        )
