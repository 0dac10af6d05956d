"""What `score`, `decode` and `tune-mert` share: lists, documents, scorers, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.interrupts import Interrupts, Terminated
from rerank.files.lines import display, spool
from rerank.formats.format import KBestFormat, Survey
from rerank.formats.table import format_of, read_documents, survey_of
from rerank.notices import Notices
from rerank.pipeline.models import (
    FLOAT32,
    LM,
    Named,
    Scoring,
    check_names,
    open_models,
    open_outside,
)
from rerank.pipeline.progress import progress
from rerank.pipeline.stopwatch import Stopwatch
from rerank.scorers import Scorer
from rerank.scorers.features import TOTAL, Document, Space, prepare
from rerank.scorers.outside import Given, Outside

# candidates that are enough to fill a machine; a file is read a document at a time
TOGETHER = {"cpu": 1 << 14, "cuda": 1 << 20, "file": 1}
ABREAST = 1 << 12  # candidates of one sentence of each document: enough for searches in step
SPARSEST = 1000  # lines without candidates for one with, beyond which ids are not believed
Announce = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Lists:
    """K-best lists and the documents they belong to, as the options name them.

    lms: (NAME, folder) of each language model; outside: (NAME, file) of scores of other tools,
    by their kind in `rerank.registry`; top: candidates kept of each sentence; diverse: those far
    from each other, not the first ones.
    """

    kbest: str | Path
    docs: str | Path | None = None
    no_docs: str | None = None
    lms: tuple[Named, ...] = ()
    outside: Mapping[str, Sequence[Named]] = field(default_factory=dict)
    top: int | None = None
    diverse: bool = False
    first_id: int = 0
    clip_inf: float | None = None
    max_k: int = 1_000_000
    scoring: Scoring = FLOAT32

    @property
    def files(self) -> list[str | Path]:
        """All that is read but models."""
        others = [path for named in self.outside.values() for _, path in named]
        return [self.kbest, *([self.docs] if self.docs else []), *others]


class Opened:
    """Lists ready to be read as often as needed: documents known, models loaded, input spooled.

    A context manager; standard input is copied to a temporary file for as long as it is open.
    """

    def __init__(
        self, lists: Lists, notices: Notices, *, documents: Documents | None = None
    ) -> None:
        self.lists, self.notices = lists, notices
        self.watch = Stopwatch()
        self._options = check_names({LM: lists.lms, **lists.outside})
        self.cache = lists.scoring.open_cache(notices) if lists.lms else None
        with self.watch.lap("models"):
            self.models = open_models(lists.lms, lists.scoring, self.cache)
        self.outside: list[Outside] = []
        self.underway: tuple[Document, ...] = ()
        self._stack = ExitStack()
        self._known = documents
        self._survey: Survey | None = None

    def __enter__(self) -> Opened:
        with self._stack:
            self.path = self._stack.enter_context(spool(self.lists.kbest))
            self.documents = self._known or self._documents()
            self.outside = list(self._opened_outside())
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: object
    ) -> None:
        self._stack.close()
        if self.cache is not None and isinstance(fault, (KeyboardInterrupt, Terminated)):
            with Interrupts():  # schedulers repeat their signals
                for document in self.underway:
                    document.keep()
            if self.cache.saved:
                raise StoppedEarly(
                    "stopped, scores kept in the cache: the same command goes on from there"
                ) from None

    def _opened_outside(self) -> Iterator[Outside]:
        """The scorers of `Lists.outside`, in order; one of standard input reads a copy of it."""
        given = self.given()
        for option, named in self.lists.outside.items():
            for name, path in named:
                copy = self.copied(path)
                with self.watch.lap("scores"):
                    yield open_outside(option, name, copy, given, self.notices)

    def copied(self, path: str | Path) -> Path:
        """A path that can be read twice while this is open: of standard input, a copy."""
        return self._stack.enter_context(spool(path))

    def given(self) -> Given:
        """What readers of files that go with the lists must know of them."""
        return Given(
            self.documents,
            display(self.lists.kbest),
            lambda: self.survey.last_line,
            self.lists.top,
            self.lists.clip_inf,
        )

    @property
    def scorers(self) -> list[Scorer]:
        """Language models, then scores from outside, in the order of their features."""
        return [*self.models, *self.outside]

    @property
    def survey(self) -> Survey:
        """Figures of the list, counted at the first use."""
        if self._survey is None:
            self._survey = survey_of(self.path, top=self.lists.top)
        return self._survey

    @cached_property
    def format(self) -> KBestFormat:
        """The format of the list."""
        return format_of(self.path)

    def _documents(self) -> Documents:
        lists = self.lists
        if lists.docs is not None and lists.no_docs is None:
            return Documents.from_file(lists.docs, self.notices)
        n_lines = 0 if lists.no_docs is None else self._lines_by_id()
        return Documents.chosen(lists.docs, lists.no_docs, n_lines, self.notices)

    def _lines_by_id(self) -> int:
        """How many source lines there are, from the highest id of the list."""
        survey = self.survey
        n_lines = max(0, survey.last_id - self.lists.first_id + 1)
        if n_lines > SPARSEST * (survey.candidates + 1):
            raise InputError(
                f"expected ids without large gaps, found id {survey.last_id} in a list of "
                f"{survey.candidates} hypotheses; give --docs FILE, a line per source line",
                source=display(self.lists.kbest),
            )
        return n_lines

    def batches(self) -> Iterator[list[tuple[str, KBest]]]:
        """(document id, its lists), so many documents at a time as fill the machine.

        A batch ends with the document that brings its candidates to `TOGETHER`, or those of
        one sentence of each to `ABREAST`, which bounds a search in step.
        """
        named = zip(self.documents.ids, self._documents_read(self.notices), strict=True)
        timed = self.watch.timed(named, "lists")
        total = len(self.documents)
        most = max([TOGETHER[scorer.runs_on] for scorer in self.scorers], default=1)
        batch: list[tuple[str, KBest]] = []
        held = abreast = 0
        for name, kbest in progress(timed, label="documents", unit="documents", total=total):
            batch.append((name, kbest))
            held += kbest.n
            abreast += int(kbest.counts.max(initial=0))
            if held >= most or abreast >= ABREAST:
                yield batch
                batch, held, abreast = [], 0, 0
        if batch:
            yield batch

    def prepared(
        self, batch: Sequence[tuple[str, KBest]], space: Space, sparse: Mapping[str, float]
    ) -> list[Document]:
        """Documents scored by all scorers, their sparse features weighted."""
        with self.watch.lap("scores"):
            documents = prepare(batch, self.scorers, space, sparse)
        self.underway = (*self.underway, *documents)
        return documents

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Time of a search, in which the models' is counted to the scores."""
        before = sum(scorer.seconds for scorer in self.scorers)
        try:
            with self.watch.lap("search"):
                yield
        finally:
            scoring = sum(scorer.seconds for scorer in self.scorers) - before
            self.watch.add("scores", scoring)
            self.watch.add("search", -scoring)

    def finished(self, documents: Sequence[Document]) -> None:
        """Let the scorers keep what the search of these documents made them compute."""
        with self.watch.lap("cache"):
            for document in documents:
                document.keep()
        self.underway = tuple(d for d in self.underway if d not in documents)

    def _documents_read(self, notices: Notices) -> Iterator[KBest]:
        lists = self.lists
        found = read_documents(
            self.path,
            self.documents,
            notices,
            top=lists.top,
            diverse=lists.diverse,
            first_id=lists.first_id,
            clip_inf=lists.clip_inf,
            max_k=lists.max_k,
        )
        return (replace(kbest, source=display(lists.kbest)) for kbest in found)

    def space(self, kbest: KBest, *, total: bool) -> Space:
        """Feature columns of these lists; UsageError if a scorer's name is a label of the list."""
        labels = {label.name for label in kbest.labels}
        for scorer in self.scorers:
            for name in (scorer.name, *scorer.columns):
                if name in labels:
                    raise UsageError(
                        f"--{self._options[scorer.name]} {scorer.name}=…: {kbest.source} already "
                        f"has a feature {name!r}; choose another NAME"
                    )
        return Space.of(kbest.labels, self.scorers, total=total and TOTAL not in labels)

    def first_with_candidates(self) -> tuple[str, KBest] | None:
        """(document id, its lists) of the first document that has any; nothing is noticed."""
        named = zip(self.documents.ids, self._documents_read(Notices()), strict=False)
        return next(((name, kbest) for name, kbest in named if kbest.n), None)

    def warn(self) -> None:
        """Notices and faults that need the whole run, as of words that the models do not know."""
        for scorer in self.scorers:
            scorer.finish(display(self.lists.kbest), self.notices)

    def report(self, announce: Announce) -> None:
        """Say what the scorers did and where the time went."""
        for scorer in self.scorers:
            announce(scorer.report())
        announce(f"time {self.watch.to_text()}")
