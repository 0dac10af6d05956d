"""A run through documents: read, scored and searched in batches; cached, resumable, in shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.result import NO_CANDIDATES, Direction, SearchResult
from decoders.table import Decoder, automatic
from rerank.corpus.defects import Defects
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import KEEP
from rerank.errors import UsageError
from rerank.files.arrays import ArrayStore, size_text
from rerank.files.paths import FilePath, display
from rerank.files.terminal import Stopwatch, progress
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import Weights, vector
from rerank.notices import Notices, Printer
from rerank.runs.lists import Source
from rerank.runs.search import Scorers, Search, row_of, search_documents
from rerank.scorers import TOTAL
from rerank.scorers.agreement import CONSENSUS, DEFECTS, has_scores
from rerank.scorers.features import DocumentFeatures, FeatureSource, FeatureSpace, prepare

if TYPE_CHECKING:
    from rerank.files.cache import Cache
    from rerank.runs.options import RunOptions
    from rerank.scorers.numbers import NumberLines
    from rerank.scorers.programs import Estimator  # loads numba

T = TypeVar("T")
Array = NDArray[np.float64]
Weigh: TypeAlias = Callable[[FeatureSpace], Array | None]
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "mps": 1 << 14, "file": 1}
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


class Shard(NamedTuple):
    """Number of a shard, how many there are, its documents, and their part of the work."""

    number: int
    total: int
    documents: frozenset[int]
    work: float

    def __str__(self) -> str:
        return f"shard {self.number}/{self.total}"


SourceT = TypeVar("SourceT", bound=Source)


class Run(Generic[SourceT]):
    """Documents of a source and the scorers that give their candidates features.

    origins: how the user named each scorer, by its name; store: where candidates lie that do not
    fit into memory; options: those of the shell; cache: of scores; programs: beside the scorers;
    metrics: scores of each hypothesis by metrics of other tools, by name; shard: of the documents
    that are read, None for all.
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
        self.source, self.scorers_by_kind, self.notices = source, kinds, notices
        self.origins, self.store, self.cache = origins, store, cache
        self.options = options
        self.shard: Shard | None = None
        self.programs, self.metrics, self.watch = programs, metrics, watch or Stopwatch()
        self.unfinished: list[DocumentFeatures] = []
        self.defects = Defects(options.scorers.defects or KEEP)
        self._held: list[NamedLists] = []

    @property
    def scorers(self) -> list[FeatureSource]:
        """All scorers, in the order of their features."""
        return self.scorers_by_kind.all

    def opened_cache(self) -> Cache | None:
        """The cache, also for runs without a model; None where there must be none."""
        self.cache = self.cache or self.options.machine.open_cache(self.notices)
        return self.cache

    # Reading

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, of a shard those that are dealt to it, with a progress bar."""
        timed = self.watch.timed(self._held or self._documents(self.notices), "lists")
        total = len(self.source)
        if (shard := self.shard) is not None:
            total = len(shard.documents)
            timed = (named for d, named in enumerate(timed) if d in shard.documents)
        return progress(timed, label="documents", unit="documents", total=total)

    def read_unreported(self) -> Iterable[NamedLists]:
        """Each document, without notices and progress."""
        self.source.keep()
        return self._held or self._documents(Notices())

    def _documents(self, notices: Notices) -> Iterator[NamedLists]:
        """Each document, with the defects of its candidates as `--defects` says."""
        documents = self.source.read(notices, self.store)
        return self.defects.marked(documents, notices, self.source.systems)

    @cached_property
    def sizes(self) -> tuple[list[list[int]], int, int]:
        """Candidates of each list of each document, words and sentences of all.

        The lists are read at the first use; documents that fit into memory are held there, so that
        no other pass reads them again.
        """
        notices = Notices(self.notices.strictness)
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
        systems = self.source.systems
        counted = {*systems, *CONSENSUS} if systems else ()
        lists = self.read_unreported() if self.n_candidates else ()
        return any(has_scores(kbest, counted) for _, kbest in lists)

    # Scoring and searching

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
                            self.notices.add("impossible-document", source=self.source.name)
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
        batch: list[NamedLists] = []
        held = abreast = 0
        for name, kbest in self.read():
            batch.append((name, kbest))
            held += kbest.n
            abreast += int(kbest.counts.max(initial=0))
            # a model may be opened in between
            most = max([TOGETHER[scorer.runs_on] for scorer in self.scorers], default=1)
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
            scorer.finish(self.source.name, self.notices)

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
        order, direction = self.scorers_by_kind.order, self.scorers_by_kind.direction
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
                    scorer.score_on_demand()
        elif self._visits_less(row, search):
            for scorer in self.scorers:
                scorer.score_on_demand()
        search.check_decoder(row, served, direction, causal=self.scorers_by_kind.causal)
        wide = f" of width {width}" if "width" in row.options else ""
        depth = "unbounded order" if order is None else f"order {order}"
        exact = (
            "exact" if row.exact(order) and search.options.merge in (None, "max") else "not exact"
        )
        announce(
            f"search: {row.name}{wide}, {exact} for a problem of {depth}, {row.cost}{priced}"
            f"{_DIRECTIONS[direction]}"
        )
        return search

    def _visits_less(self, row: Decoder, search: Search) -> bool:
        """Whether to score on demand: a search keeps fewer histories than lists have candidates.

        Not if a gap to the best of all paths is asked for. What depends on later sentences would be
        searched from the other end, and may end in another path.
        """
        costly = {scorer.given_later for scorer in self.scorers if scorer.passes(2) > 1}
        few = row.histories(search.options) < self._passes()
        forward = costly == {False} and self.scorers_by_kind.direction is Direction.FORWARD
        return few and forward and search.options.gap is None

    def _passes(self) -> float:
        """Passes over the lists that exact search takes, by the scorer that needs most."""
        if all(scorer.passes(2) == scorer.passes(1) for scorer in self.scorers):
            return 1.0  # whatever K is
        mean_k = self.n_candidates / max(1, self.sizes[2])
        return max(scorer.passes(mean_k) for scorer in self.scorers)


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
        for kind, option in (("models", "--lm"), ("scorers", "--scorer")):
            stated = self.weights.provenance.get(kind)
            for scorer in run.scorers:
                tuned = stated.get(scorer.name) if isinstance(stated, dict) else None
                if isinstance(tuned, dict) and tuned.get("digest", scorer.digest) != scorer.digest:
                    given = f"{option} {scorer.name}={tuned.get('folder', tuned.get('entry'))}"
                    name = scorer.name
                    run.notices.add("other-model", source=self.source, name=name, option=given)
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
        preset = {n: (v,) for n, v in space.presets.items() if not self.source or n == DEFECTS}
        return vector(
            replace(self.weights, dense={**preset, **self.weights.dense}),
            space.labels,
            default=self.default,
            presets=space.presets,
            notices=notices,
            source=self.source,
        )
