"""A run through documents: read, scored and searched in batches; cached, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import BinaryIO, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.result import NO_CANDIDATES, Direction, SearchResult
from rerank.commands.distribution import cost, deal
from rerank.commands.lists import (
    MISSING_SOURCE,
    KBestFile,
    LineWriter,
    Lists,
    made_lists,
    with_own_sources,
)
from rerank.commands.run import RunOptions, ScorerOptions, duration, progress
from rerank.commands.search import Search, row_of, search_documents
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import AS_ERROR, AS_SOURCE
from rerank.errors import InputError, RerankError, StoppedEarly, UsageError
from rerank.files.arrays import ArrayStore, size_text
from rerank.files.cache import Cache
from rerank.files.interrupts import Interrupts, Terminated
from rerank.files.lines import RereadFile, check_readable, spool
from rerank.files.outputs import atomic_all, nowhere
from rerank.files.paths import FilePath, display
from rerank.formats.side_information import SOURCE, check_files
from rerank.formats.table import lines_of
from rerank.formats.weights import Weights, read_weights, vector
from rerank.notices import Notices, Printer
from rerank.options import settings_of
from rerank.registry import SCORE_FILES, attribute
from rerank.scorers import TOTAL
from rerank.scorers.features import DocumentFeatures, FeatureSource, FeatureSpace, prepare
from rerank.scorers.models import check_names, open_models, open_scorer
from rerank.scorers.score_files import FileScorer, ListInfo
from rerank.torchrun import Shard

T = TypeVar("T")
Array = NDArray[np.float64]
Weigh: TypeAlias = Callable[[FeatureSpace], Array | None]
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "file": 1}
ABREAST = 1 << 12  # candidates of one sentence of each document: enough for searches in step
DEAR = 4.0  # passes over the lists by exact search, for each pass by a beam
_HELD = 4  # lists of which so many would fit into memory beside the rest are held there
SAMPLE = 10  # sentences that the estimate of a run's time is measured on
_DIRECTIONS = {  # of a search, for people
    Direction.FORWARD: "",
    Direction.REVERSED: "; documents are searched from the last sentence to the first, as the "
    "models read them",
    Direction.BOTH: "; models read documents in both directions: sweeps from the better of the two "
    "paths that a beam finds in one direction",
}
_IMPOSSIBLE = "document in which no possible path was found, left with its first candidates"


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


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Documents that were scored and searched together.

    documents, results: features and search results of those that have candidates; weights: (F,),
    of the feature columns. Without a search, no results and no weights.
    """

    lists: Sequence[NamedLists]
    documents: Sequence[DocumentFeatures]
    results: Sequence[SearchResult]
    weights: Array

    def each(self) -> Iterator[DecodedDocument]:
        """Every document, those without candidates too."""
        results = self.results or [NO_CANDIDATES] * len(self.documents)
        found = iter(zip(self.documents, results, strict=True))
        for name, kbest in self.lists:
            features, result = next(found) if kbest.n else (None, NO_CANDIDATES)
            yield DecodedDocument(name, kbest, features, result)


class Run:
    """Documents and the scorers that give their candidates features.

    name: of the lists, for messages; origins: how the user named each scorer, by its name; memory:
    bytes of the process, beyond which candidates lie in files (`store`), by default so many that
    they take half of what is available.
    """

    def __init__(
        self,
        documents: Sequence[NamedLists],
        scorers: Sequence[FeatureSource],
        notices: Notices,
        *,
        name: str = "",
        origins: Mapping[str, str] | None = None,
        watch: Stopwatch | None = None,
        memory: int | None = None,
    ) -> None:
        self.store = ArrayStore.of_process(memory)
        self._documents, self.scorers, self.notices = documents, scorers, notices
        self.name, self.origins = name, origins or {}
        self.watch = watch or Stopwatch()
        self.unfinished: list[DocumentFeatures] = []

    def read(self) -> Iterator[NamedLists]:
        """Each document in order."""
        return iter(self._documents)

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence."""
        candidates = sentences = 0
        for _, kbest in self.read():
            candidates += kbest.n
            sentences += len(kbest)
        return candidates / max(1, sentences)

    @property
    def direction(self) -> Direction:
        """The direction of a search with all scorers; up to order 1 a scorer serves either."""
        if not self.causal:
            return Direction.BOTH
        given_later = {one.given_later for one in self.scorers if one.order not in (0, 1)}
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
                            self.notices.add(_IMPOSSIBLE, source=self.name)
            yield Batch(batch, documents, results, np.zeros(0) if weights is None else weights)
            if keep:
                with self.watch.lap("cache"):
                    for document in documents:
                        document.save()
                self.unfinished = [one for one in self.unfinished if one not in documents]

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
        for scorer in self.scorers:
            announce(scorer.report())
            if line := scorer.details():
                details(line)
        if self.store.on_disk:
            size = size_text(self.store.on_disk)
            announce(f"candidates that did not fit into memory: {size} in files")
        announce(f"time {self.watch.to_text()}")


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

    def scale(self, search: Search) -> Search:
        """The search at the scale of the weights, for decoders that need one."""
        return search.at(self.weights.alpha, self.weights.mbr_spread)

    def batches(self, run: Run, search: Search | None = None) -> Iterator[Batch]:
        """Batches of a run's documents, scored and, given a search, searched under the weights."""
        if search is not None:
            search.check_weights(self.weights, self.source)
        return run.batches(
            lambda space: self.vector(space, run.notices),
            search,
            total=TOTAL in self.weights.dense,
            sparse=self.weights.sparse,
        )

    def vector(self, space: FeatureSpace, notices: Notices) -> Array:
        """Weights (F,) of feature columns; errors as `rerank.formats.weights.vector`."""
        return vector(
            self.weights, space.labels, default=self.default, notices=notices, source=self.source
        )


def choose_search(run: Run, search: Search, announce: Printer) -> Search:
    """The search with `auto` replaced where needed, by the scorers' order and cost; announced.

    `auto` is exact search unless that takes more than `DEAR` times as many passes over the lists
    as a beam. UsageError for a decoder that does not serve the order, and for unsuited options.
    """
    order, direction = run.order, run.direction
    automatic = search.method == "auto"
    row = row_of(_automatic(order, direction) if automatic else search.method)
    width = search.options.beam_width
    priced = ""
    if automatic and row.name == "viterbi":
        passes = _passes(run)
        # what is scored after some histories only can be searched in one direction only
        costly = {scorer.given_later for scorer in run.scorers if scorer.passes(2) > 1}
        if passes > DEAR * width and len(costly) == 1:
            search, row = replace(search, method="beam"), row_of("beam")
            priced = f"; --search viterbi is exact, in {passes:.0f} passes over the lists"
            for scorer in run.scorers:
                scorer.lazily()
    search.check_decoder(row, order, direction, causal=run.causal)
    wide = f" of width {width}" if "width" in row.options else ""
    depth = "unbounded order" if order is None else f"order {order}"
    exact = "exact" if row.exact(order) and search.options.merge in (None, "max") else "not exact"
    way = _DIRECTIONS[run.direction]
    announce(f"search: {row.name}{wide}, {exact} for a problem of {depth}, {row.cost}{priced}{way}")
    return search


def _automatic(order: int | None, direction: Direction) -> str:
    """The decoder for problems of an order and a direction, whatever it costs."""
    if direction is Direction.BOTH:
        return "sweeps"
    return "beam" if order is None else "viterbi"


def _passes(run: Run) -> float:
    """Passes over the lists that exact search takes, by the scorer that needs most."""
    if all(scorer.passes(2) == scorer.passes(1) for scorer in run.scorers):
        return 1.0  # whatever K is
    k = run.mean_k()
    return max(scorer.passes(k) for scorer in run.scorers)


class InputCopies(ExitStack):
    """Input files to read several times; copies of pipes and standard input, deleted at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[RereadFile] = []

    def copied(self, path: FilePath) -> RereadFile:
        """A path to read several times: of standard input, that of a copy."""
        file = self.enter_context(spool(path))
        self.files.append(file)
        return file


class ScorersByKind(NamedTuple):
    """The scorers of a run, in the order of their features, as the options name them."""

    models: Sequence[FeatureSource]
    score_files: Sequence[FileScorer]
    plugins: Sequence[FeatureSource]


class ListRun(Run):
    """A run whose k-best lists are in a file; made by `ListRun.open`.

    info: the documents, and what files of scores need of the lists; systems: name of each system by
    the label of its indicator feature, if the lists are made of their outputs.
    """

    def __init__(
        self,
        lists: Lists,
        file: KBestFile,
        info: ListInfo,
        notices: Notices,
        options: RunOptions,
        *,
        by_kind: ScorersByKind,
        systems: Mapping[str, str],
        cache: Cache | None,
        copies: InputCopies,
        watch: Stopwatch,
    ) -> None:
        super().__init__(
            (),
            [*by_kind.models, *by_kind.score_files, *by_kind.plugins],
            notices,
            name=file.name,
            origins=options.scorers.origins,
            watch=watch,
            memory=options.sharing.memory,
        )
        self.lists, self.file, self.info, self.documents = lists, file, info, info.documents
        self.options, self.by_kind, self.systems = options, by_kind, systems
        self.cache, self.copies = cache, copies
        shard = options.sharing.shard
        self.shard = None if shard is None else Shard(*shard)
        self._held: list[NamedLists] = []
        self._sizes: tuple[int, int] | None = None

    @classmethod
    @contextmanager
    def open(
        cls,
        lists: Lists,
        notices: Notices,
        options: RunOptions | None = None,
        *,
        documents: Documents | None = None,
    ) -> Iterator[ListRun]:
        """A run with its models loaded; standard input is copied for as long as it is open.

        lists: of the options, or what became of them; without options there are no scorers.

        When the run is stopped, scores that were computed go to the cache (`StoppedEarly`).
        """
        with InputCopies() as copies:
            run = _opened(lists, notices, options or settings_of(RunOptions), documents, copies)
            try:
                yield run
            except InputError:
                for file in copies.files:
                    file.check()  # a file that was rewritten is the reason
                raise
            except (KeyboardInterrupt, Terminated):
                copies.close()
                if run.cache is None:
                    raise
                with Interrupts():  # schedulers repeat their signals
                    for document in run.unfinished:
                        document.save()
                if not run.cache.saved:
                    raise
                raise StoppedEarly(
                    "stopped, finished work kept in the cache: the same command goes on from there"
                ) from None

    def opened_cache(self) -> Cache | None:
        """The cache, also for runs without a model; None where there must be none."""
        self.cache = self.cache or self.options.machine.open_cache(self.notices)
        return self.cache

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence."""
        candidates, _ = self.count_and_hold()
        return candidates / max(1, self.documents.n_sentences)

    def count_and_hold(self) -> tuple[int, int]:
        """Numbers of candidates and of their words; the lists are read, at the first call.

        Documents that fit into memory are held there, so that no other pass reads them again.
        """
        if self._sizes is not None:
            return self._sizes
        notices = Notices(strict=self.notices.strict)
        candidates = words = size = 0
        held: list[NamedLists] | None = []
        for name, kbest in self.file.read(self.documents, notices, self.store):
            candidates += kbest.n
            words += sum(len(text.split()) for text in kbest.texts.to_list())
            size += len(kbest.texts.blob) + kbest.dense.nbytes
            if held is not None and self.store.has_room(_HELD * size):
                held.append((name, kbest))
            else:
                held = None
        if held is not None:
            self._held = held
            for one in notices:
                self.notices.add(one.kind, source=one.first, count=one.count, names=one.names)
        self._sizes = candidates, words
        return self._sizes

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with a progress bar."""
        found = self._held or self.file.read(self.documents, self.notices, self.store)
        timed = self.watch.timed(found, "lists")
        total = len(self.documents)
        if self.sharded is not None:
            own, total = self.sharded, len(self.sharded)
            timed = (named for d, named in enumerate(timed) if d in own)
        return progress(timed, label="documents", unit="documents", total=total)

    @cached_property
    def sharded(self) -> frozenset[int] | None:
        """Numbers of the documents of the shard; None for all documents."""
        if self.shard is None:
            return None
        with self.watch.lap("shard"):
            return frozenset(deal(self.costs, self.shard.total)[self.shard.number - 1])

    @cached_property
    def costs(self) -> list[int]:
        """Predicted cost of scoring each document (`rerank.commands.distribution.cost`)."""
        return [cost(kbest, self.order) for _, kbest in self.read_unreported()]

    @contextmanager
    def scoring_shard(self, announce: Printer) -> Iterator[None]:
        """Scoring of a shard: announced, and an error if its scores are not in the cache."""
        shard, own = self.shard, self.sharded
        if shard is None or own is None:
            raise ValueError("expected a run with a shard")
        if not any(scorer.cacheable for scorer in self.scorers):
            raise UsageError(
                "there is nothing to share: the score cache has scores of language models and of "
                "scorers with a digest, and this run has none; run it in one process"
            )
        costs = self.costs
        share = sum(costs[d] for d in own) / max(1, sum(costs))
        announce(
            f"shard {shard}: {len(own):,} of {len(costs):,} documents, {share:.1%} of the work"
        )
        for scorer in self.scorers:
            if not scorer.cacheable and scorer.runs_on != "file":
                announce(
                    f"{scorer.name}: not in the score cache; computed again by the run at the end"
                )
        yield
        if self.cache is not None and not self.cache.writable:
            faults = "; ".join(notice.kind for notice in self.notices if "cache" in notice.kind)
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
            with self.scoring_shard(announce), nowhere(len(paths)) as files:
                yield dict(zip(paths, files, strict=True))

    def read_unreported(self) -> Iterable[NamedLists]:
        """Each document, without notices and progress."""
        return self._held or self.file.read(self.documents, Notices(), self.store)

    def first_with_candidates(self) -> NamedLists | None:
        """The first document that has any candidates; gives no notices."""
        return next((named for named in self.read_unreported() if named[1].n), None)

    def estimate(self, search: Search | None, announce: Printer) -> None:
        """Announce how long the run will take, or that its scores are in the cache.

        search: None for a run that only scores the path of first candidates.
        """
        with self.watch.lap("estimate"):
            found = self.first_with_candidates()
            if found is None:
                return
            name, kbest = found
            counts = f"{len(self.documents):,} documents, {self.documents.n_sentences:,} sentences"
            models = ", ".join(scorer.name for scorer in self.scorers)
            known = models and all(scorer.is_cached(kbest) for scorer in self.scorers)
            if known and self.order is not None:
                announce(f"{counts}; scores of the first document by {models} need not be computed")
                return
            words = self._decode_head(name, kbest, search)  # once to warm up
            began = time.monotonic()
            self._decode_head(name, kbest, search)
            taken = time.monotonic() - began
            candidates, all_words = self.count_and_hold()
            seconds = taken * all_words / max(1, words)
            announce(
                f"{counts}, {candidates:,} candidates, {all_words:,} words; about "
                f"{duration(seconds)}" + (f" with {models}" if models else "")
            )

    def _decode_head(self, name: str, kbest: KBest, search: Search | None) -> int:
        """Decode a document's first sentences, or score them; returns the number of their words."""
        head = kbest.head(SAMPLE)
        scorers = [scorer.uncached_copy() for scorer in self.scorers]
        sample = Run([(name, head)], scorers, Notices(), origins=self.origins)
        if search is not None and not search.options.scale:
            search = search.at(1.0)

        def contextual_only(space: FeatureSpace) -> Array:
            weights = np.zeros(space.width)
            weights[list(space.contextual)] = 1.0
            return weights

        for batch in sample.batches(contextual_only, search, keep=False):
            for document in batch.documents if search is None else ():
                document.under(document.first())
        return sum(len(head.tokens(row)) for row in range(head.n))

    def write_list(
        self,
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
        form, first_id = self.file.format, self.lists.first_id
        kbest = self.file.with_annotations(kbest, self.documents)
        if document is None:
            nothing = np.zeros((kbest.n, 0))
            write(lines_of(form, kbest, self.documents, (), nothing, None, first_id=first_id))
            return 0
        space = document.space
        features = document.under(choices)
        totals = None if weights is None else features @ weights + document.sparse
        added = features[:, space.list_width :]
        names = [label.name for label in space.labels[len(space.labels) - added.shape[1] :]]
        write(lines_of(form, kbest, self.documents, names, added, totals, first_id=first_id))
        if totals is None or not len(document.present):
            return 0
        largest = np.maximum.reduceat(totals, document.offsets[:-1])
        return int((largest > totals[document.chosen_rows(choices)]).sum())


def _opened(
    lists: Lists,
    notices: Notices,
    options: RunOptions,
    documents: Documents | None,
    copies: InputCopies,
) -> ListRun:
    """A run with its models loaded, whose files are at hand to be read."""
    watch, given = Stopwatch(), options.scorers
    check_names(given.names, [one.name for one in given.lm if one.pmi])
    with watch.lap("lists"):
        lists, made = made_lists(lists, notices, copies, documents)
    check_readable([lists.kbest, *([lists.docs] if lists.docs else [])])
    cache = options.machine.open_cache(notices) if given.lm or given.scorer else None
    with watch.lap("models"):
        models = open_models(given.lm, cache, **options.machine.of_models)
        plugins = [open_scorer(name, entry, cache) for name, entry in given.scorer]
    lists = _with_needed(lists, models, plugins, copies)
    side = {kind: copies.copied(path) for kind, path in lists.side.items()}
    scores = copies.copied(lists.kbest_scores) if lists.kbest_scores else None
    file = KBestFile(copies.copied(lists.kbest), replace(lists, kbest_scores=scores), side)
    documents = documents if made is None else made.documents
    info = ListInfo(
        documents or file.documents(notices),
        file.name,
        lambda: file.survey.last_line,
        lists.top,
        lists.clip_inf,
    )
    with watch.lap("scores"):
        score_files = _open_score_files(given, info, notices, copies)
    run = ListRun(
        *(lists, file, info, notices, options),
        by_kind=ScorersByKind(models, score_files, plugins),
        systems={} if made is None else made.systems,
        cache=cache,
        copies=copies,
        watch=watch,
    )
    if lists.missing == AS_ERROR:
        with watch.lap("lists"):  # source lines without hypotheses, before anything is scored
            for _ in run.read_unreported():
                pass
    return run


def _with_needed(
    lists: Lists,
    models: Sequence[FeatureSource],
    plugins: Sequence[FeatureSource],
    copies: InputCopies,
) -> Lists:
    """The lists with the side information that scorers need; UsageError without it."""
    needed = {kind: f"--scorer {one.name}" for one in plugins for kind in one.side_information}
    needed |= {kind: f"--lm {one.name}" for one in models for kind in one.side_information}
    needed |= MISSING_SOURCE if lists.missing == AS_SOURCE else {}
    if SOURCE in needed:
        lists = with_own_sources(lists, copies)
    check_files(needed, lists.side)
    return lists


def _open_score_files(
    given: ScorerOptions, info: ListInfo, notices: Notices, copies: InputCopies
) -> list[FileScorer]:
    """Scorers whose values are in files; UsageError for pairs of incomplete documents."""
    found: list[FileScorer] = []
    for option, named in given.score_files.items():
        if option == "pair-scores" and info.documents.n_left_out:
            raise UsageError(
                f"--{option}: its lines number the sentences of whole documents, of which "
                "--drop-unreferenced leaves some out; leave out one of the two options"
            )
        file_scorer = attribute(SCORE_FILES[option].scorer)
        found += [file_scorer(name, copies.copied(path), info, notices) for name, path in named]
    return found
