"""A run through documents: read, scored and searched in batches; cached, resumable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from decoders.result import NO_CANDIDATES, Direction, SearchResult
from decoders.table import Decoder, automatic
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import UsageError
from rerank.files.arrays import ArrayStore, size_text
from rerank.files.paths import FilePath, display
from rerank.formats.weight_files import read_weights
from rerank.formats.weights import Weights, vector
from rerank.notices import Notices, Printer
from rerank.runs.search import Search, row_of, search_documents
from rerank.scorers import TOTAL
from rerank.scorers.features import DocumentFeatures, FeatureSource, FeatureSpace, prepare

T = TypeVar("T")
Array = NDArray[np.float64]
Weigh: TypeAlias = Callable[[FeatureSpace], Array | None]
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "file": 1}
ABREAST = 1 << 12  # candidates of one sentence of each document: enough for searches in step
DEAR = 4.0  # passes over the lists by exact search, for each pass by a beam
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


class Run(ABC):
    """Documents and the scorers that give their candidates features.

    name: of the lists, for messages; origins: how the user named each scorer, by its name; memory:
    bytes of the process, beyond which candidates lie in files (`store`), by default so many that
    they take half of what is available.
    """

    form = ""  # format of the file of the lists, if they are in a file

    def __init__(
        self,
        scorers: Sequence[FeatureSource],
        notices: Notices,
        *,
        name: str = "",
        origins: Mapping[str, str] | None = None,
        watch: Stopwatch | None = None,
        memory: int | None = None,
    ) -> None:
        self.store = ArrayStore.of_process(memory)
        self.scorers, self.notices = scorers, notices
        self.name, self.origins = name, origins or {}
        self.watch = watch or Stopwatch()
        self.unfinished: list[DocumentFeatures] = []

    @abstractmethod
    def read(self) -> Iterator[NamedLists]:
        """Each document in order."""

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
        given_later = {
            one.given_later for one in self.scorers if one.order not in (0, 1) or one.on_demand
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
            found = iter(zip(documents, results or [NO_CANDIDATES] * len(documents), strict=True))
            decoded = []
            for name, kbest in batch:
                features, result = next(found) if kbest.n else (None, NO_CANDIDATES)
                decoded.append(DecodedDocument(name, kbest, features, result))
            yield Batch(decoded, np.zeros(0) if weights is None else weights)
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
        k = self.mean_k()
        return max(scorer.passes(k) for scorer in self.scorers)


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

    def batches(self, run: Run, search: Search | None = None) -> Iterator[Batch]:
        """Batches of a run's documents, scored and, given a search, searched under the weights."""
        if search is not None:
            search.check_weights(self.weights, self.source)
        self._warn_of_other_models(run)
        return run.batches(
            lambda space: self.vector(space, run.notices if self.source else Notices()),
            search,
            total=TOTAL in self.weights.dense,
            sparse=self.weights.sparse,
        )

    def _warn_of_other_models(self, run: Run) -> None:
        """A notice about language models that are not those of the tuning, by their digests."""
        models = self.weights.provenance.get("models")
        for scorer in run.scorers:
            tuned = models.get(scorer.name) if isinstance(models, dict) else None
            if isinstance(tuned, dict) and tuned.get("digest", scorer.digest) != scorer.digest:
                name, folder = scorer.name, tuned.get("folder")
                run.notices.add("other-model", source=self.source, name=name, folder=folder)

    def vector(self, space: FeatureSpace, notices: Notices) -> Array:
        """Weights (F,) of feature columns; errors as `rerank.formats.weights.vector`."""
        return vector(
            self.weights,
            space.labels,
            default=self.default,
            presets=space.presets,
            notices=notices,
            source=self.source,
        )
