"""Documents of a run with their k-best lists, and the scorers that give them features."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from decoders.result import Direction
from rerank.corpus.kbest import KBest
from rerank.errors import UsageError
from rerank.files.arrays import ArrayStore, size_text
from rerank.notices import Notices
from rerank.pipeline.stopwatch import Stopwatch
from rerank.scorers import FeatureSource
from rerank.scorers.features import TOTAL, DocumentFeatures, FeatureSpace, prepare

# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "file": 1}
ABREAST = 1 << 12  # candidates of one sentence of each document: enough for searches in step
NamedLists: TypeAlias = tuple[str, KBest]  # document id, its k-best lists
Printer: TypeAlias = Callable[[str], None]  # prints a line about the run
log = logging.getLogger("rerank")  # lines about a run, unless the caller takes them


class DocumentSource:
    """Documents and the scorers of a run; `rerank.pipeline.run_loop` goes through them.

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

    def batches(self) -> Iterator[list[NamedLists]]:
        """The documents in batches that fill the machine.

        A batch ends with the document that brings its candidates to `TOGETHER`, or those of
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

    def prepared(
        self,
        batch: Sequence[NamedLists],
        space: FeatureSpace,
        sparse: Mapping[str, float],
    ) -> list[DocumentFeatures]:
        """Features of documents by all scorers, the sparse features weighted."""
        with self.watch.lap("scores"):
            found = prepare(batch, self.scorers, space, sparse)
            documents = [document.stored(self.store) for document in found]
        self.unfinished += documents
        return documents

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Time of a search as `search`, but that of the scorers in it as `scores`."""
        before = sum(scorer.seconds for scorer in self.scorers)
        with self.watch.lap("search"):
            yield
            self.watch.add("scores", sum(scorer.seconds for scorer in self.scorers) - before)

    def finish(self, documents: Sequence[DocumentFeatures]) -> None:
        """Have the scorers store what the search of these documents made them compute."""
        with self.watch.lap("cache"):
            for document in documents:
                document.keep()
        self.unfinished = [one for one in self.unfinished if one not in documents]

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
