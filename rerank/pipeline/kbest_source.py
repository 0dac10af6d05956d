"""Documents whose k-best lists are in a file, with their scorers, opened for a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property

from rerank.corpus.documents import Documents
from rerank.corpus.reading import AS_ERROR, AS_SOURCE
from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.cache import Cache
from rerank.files.interrupts import Interrupts, Terminated
from rerank.files.lines import RereadFile, spool
from rerank.files.paths import FilePath
from rerank.formats.side_information import SOURCE, check_files
from rerank.notices import Notices
from rerank.pipeline.kbest_file import KBestFile
from rerank.pipeline.lists import (
    MISSING_SOURCE,
    PAIR_SCORES,
    Lists,
    made_lists,
    with_own_sources,
)
from rerank.pipeline.models import check_names, open_models, open_scorer
from rerank.pipeline.progress import progress
from rerank.pipeline.shards import cost
from rerank.pipeline.sources import DocumentSource, NamedLists
from rerank.pipeline.stopwatch import Stopwatch
from rerank.registry import SCORE_FILES, attribute
from rerank.scorers.file_scorer import FileScorer, ListInfo


class KBestSource(DocumentSource):
    """Documents whose k-best lists are in a file, with their scorers; made by `KBestSource.open`.

    models, score_files, plugins: the scorers by kind, in the order of their features; systems: name
    of each system by the label of its indicator feature, if the lists are made of their outputs.
    """

    def __init__(
        self, lists: Lists, notices: Notices, documents: Documents | None, copies: ExitStack
    ) -> None:
        watch, options = Stopwatch(), lists.names
        check_names(options, lists.model_options.pmi)
        with watch.lap("lists"):
            lists, made = made_lists(lists, notices, copies, documents)
        self.systems: Mapping[str, str] = {} if made is None else made.systems
        documents = documents if made is None else made.documents
        self.lists, self._copies = lists, copies
        self.cache = lists.scoring.open_cache(notices) if lists.lms or lists.scorers else None
        with watch.lap("models"):
            self.models = open_models(lists.lms, lists.scoring, self.cache, lists.model_options)
            self.plugins = [open_scorer(name, entry, self.cache) for name, entry in lists.scorers]
        needed = self._needed_files()
        if SOURCE in needed:
            lists = self.lists = with_own_sources(lists, copies)
        check_files(needed, lists.side)
        self._side = {kind: self.copied(path) for kind, path in lists.side.items()}
        self._scores = self.copied(lists.kbest_scores) if lists.kbest_scores else None
        reading = replace(lists, kbest_scores=self._scores)
        self.file = KBestFile(self.copied(lists.kbest), reading, self._side)
        self.documents = documents or self.file.documents(notices)
        self.info = ListInfo(
            self.documents,
            self.file.name,
            lambda: self.file.survey.last_line,
            lists.top,
            lists.clip_inf,
        )
        with watch.lap("scores"):
            self.score_files = self._open_score_files(notices)
        super().__init__(
            (),
            [*self.models, *self.score_files, *self.plugins],
            notices,
            name=self.file.name,
            origins={n: f"--{option} {n}=…" for option, named in options.items() for n, _ in named}
            | {f"{name}pmi": f"--pmi {name}" for name in lists.model_options.pmi},
            watch=watch,
            memory=lists.scoring.memory,
        )
        if lists.missing == AS_ERROR:
            with watch.lap("lists"):
                self._check_complete()

    def _needed_files(self) -> dict[str, str]:
        """Kinds of side information that the run needs, with what needs each."""
        needed = {kind: f"--scorer {p.name}" for p in self.plugins for kind in p.side_information}
        needed |= {kind: f"--lm {m.name}" for m in self.models for kind in m.side_information}
        return needed | (MISSING_SOURCE if self.lists.missing == AS_SOURCE else {})

    def _open_score_files(self, notices: Notices) -> list[FileScorer]:
        """Scorers whose values are in files; UsageError for pairs of incomplete documents."""
        found: list[FileScorer] = []
        for option, named in self.lists.score_files.items():
            if option == PAIR_SCORES and self.documents.n_left_out:
                raise UsageError(
                    f"--{option}: its lines number the sentences of whole documents, of which "
                    "--drop-unreferenced leaves some out; leave out one of the two options"
                )
            file_scorer = attribute(SCORE_FILES[option].scorer)
            for name, path in named:
                found.append(file_scorer(name, self.copied(path), self.info, notices))
        return found

    def _check_complete(self) -> None:
        """InputError, before anything is scored, for source lines without hypotheses."""
        for _ in self.file.read(self.documents, Notices(), self.store):
            pass

    @classmethod
    @contextmanager
    def open(
        cls, lists: Lists, notices: Notices, *, documents: Documents | None = None
    ) -> Iterator[KBestSource]:
        """A source with its models loaded; standard input is copied for as long as it is open.

        When the run is stopped, scores that were computed go to the cache (`StoppedEarly`).
        """
        with ExitStack() as copies:
            source = cls(lists, notices, documents, copies)
            try:
                yield source
            except InputError:
                score_files = (file.path for file in source.score_files)
                others = (source._scores, *source._side.values(), *score_files)
                for path in (source.file.path, *others):
                    if isinstance(path, RereadFile):
                        path.check()  # a file that was rewritten is the reason
                raise
            except (KeyboardInterrupt, Terminated):
                copies.close()
                if source.cache is None:
                    raise
                with Interrupts():  # schedulers repeat their signals
                    for document in source.unfinished:
                        document.keep()
                if not source.cache.saved:
                    raise
                raise StoppedEarly(
                    "stopped, finished work kept in the cache: the same command goes on from there"
                ) from None

    def copied(self, path: FilePath) -> RereadFile:
        """A path to read several times: of standard input, that of a copy."""
        return self._copies.enter_context(spool(path))

    def opened_cache(self) -> Cache | None:
        """The cache, also for runs without a model; None where there must be none."""
        self.cache = self.cache or self.lists.scoring.open_cache(self.notices)
        return self.cache

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence."""
        return self.file.survey.candidates / max(1, self.documents.n_lines)

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with a progress bar."""
        timed = self.watch.timed(self.file.read(self.documents, self.notices, self.store), "lists")
        total = len(self.documents)
        if self.sharded is not None:
            own, total = self.sharded, len(self.sharded)
            timed = (named for d, named in enumerate(timed) if d in own)
        return progress(timed, label="documents", unit="documents", total=total)

    @cached_property
    def sharded(self) -> frozenset[int] | None:
        """Numbers of the documents of `Scoring.shard`; None for all documents."""
        if self.lists.scoring.shard is None:
            return None
        with self.watch.lap("shard"):
            return self.lists.scoring.shard.documents(self.costs)

    @cached_property
    def costs(self) -> list[int]:
        """Predicted cost of scoring each document (`rerank.pipeline.shards.cost`)."""
        found = self.file.read(self.documents, Notices(), self.store)
        return [cost(kbest, self.order) for _, kbest in found]

    def first_with_candidates(self) -> NamedLists | None:
        """The first document that has any candidates; gives no notices."""
        found = self.file.read(self.documents, Notices(), self.store)
        return next((named for named in found if named[1].n), None)
