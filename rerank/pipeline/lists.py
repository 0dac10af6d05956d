"""K-best lists in a file: which ones, their documents and scorers, opened for a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, tee
from pathlib import Path

from rerank.cache import Cache
from rerank.corpus.documents import Documents, difference_of
from rerank.corpus.grouping import ReadingOptions
from rerank.corpus.missing import AS_ERROR, AS_SOURCE
from rerank.corpus.normalization import nfc, nfc_lines
from rerank.corpus.references import matched, read_reference_texts, read_with_documents
from rerank.corpus.systems import Named as NamedSystem
from rerank.corpus.systems import documents_of_systems
from rerank.corpus.translations import documents_in
from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.inputs import RereadFile
from rerank.files.interrupts import Interrupts, Terminated
from rerank.files.lines import count_lines, is_pipe, read_lines, spool
from rerank.files.paths import FilePath, display, file_of
from rerank.formats.table import (
    KBestFormat,
    Survey,
    annotations_of,
    check_options,
    format_of,
    read_documents,
    survey_of,
)
from rerank.notices import Notices
from rerank.pipeline.models import (
    FLOAT32,
    LM,
    PLAIN,
    SCORER,
    ModelOptions,
    Named,
    Scoring,
    check_names,
    open_models,
    open_scorer,
)
from rerank.pipeline.progress import progress
from rerank.pipeline.shards import cost
from rerank.pipeline.side_information import NO_FILES, SOURCE, Files, check_files, given_lines
from rerank.pipeline.sources import DocumentSource, NamedLists, Printer, log
from rerank.pipeline.stopwatch import Stopwatch
from rerank.pipeline.systems import SystemLists, lists_of_systems
from rerank.registry import SCORE_FILES, attribute
from rerank.scorers.file_scorer import FileScorer, ListInfo

PAIR_SCORES = "pair-scores"
MISSING_SOURCE = {SOURCE: "--missing source"}  # side information, and what needs it
PIECE = 2000  # sentences of a document in memory, where sentences are looked at one by one
SPARSEST = 1000  # lines without candidates for one with, beyond which ids are not believed


@dataclass(frozen=True, slots=True)
class Lists(ReadingOptions):
    """Input of a run, as the options name it: k-best lists, documents, and what scores them.

    kbest: the file of the lists, empty with systems: (NAME, file) of each system of whose outputs
    lists are made, or (`rerank.corpus.systems.ALL`, file) for all of a file.
    lms: (NAME, folder) of each language model; model_options: of these; scorers: (NAME,
    ENTRY[:ARGUMENT]) of each scorer of the table and of other packages; score_files: (NAME, file)
    of scores of other tools, by their kind in `rerank.registry`; side: files of side information
    for the models, by kind, a line for each source line. drop_unreferenced: leave out sentences
    that a reference does not have, where references are read.
    """

    kbest: str | Path
    docs: FilePath | None = None
    no_docs: str | None = None
    systems: tuple[NamedSystem, ...] = ()
    lms: tuple[Named, ...] = ()
    model_options: ModelOptions = PLAIN
    scorers: tuple[tuple[str, str], ...] = ()
    score_files: Mapping[str, Sequence[Named]] = field(default_factory=dict)
    drop_unreferenced: bool = False
    scoring: Scoring = FLOAT32
    side: Files = field(default_factory=dict)

    @property
    def names(self) -> dict[str, Sequence[tuple[str, str | Path]]]:
        """(NAME, value) of each scorer, by option."""
        return {LM: self.lms, **self.score_files, SCORER: self.scorers}

    @property
    def files(self) -> list[FilePath]:
        """All files that are read, without the models."""
        others = [path for named in self.score_files.values() for _, path in named]
        beside = [path for path in (self.docs, self.kbest_scores) if path is not None]
        lists = [file_of(path) for _, path in self.systems] if self.systems else [self.kbest]
        return [*dict.fromkeys(lists), *beside, *self.side.values(), *others]

    @property
    def name(self) -> str:
        """What messages call the lists."""
        return display(self.kbest) if self.kbest else "the list of the systems"

    def check(self) -> None:
        """UsageError unless there is one kind of input, and for options that it does not use."""
        if bool(self.kbest) == bool(self.systems):
            found = "both" if self.kbest else "neither"
            raise UsageError(
                f"expected --kbest FILE or --systems NAME=FILE, found {found}; give one of them"
            )
        of_a_list = {
            "--kbest-format": self.kbest_format,
            "--kbest-scores": self.kbest_scores,
            "--encoding": not self.encoded.is_plain,
        }
        if self.systems and any(of_a_list.values()):
            option = next(name for name, value in of_a_list.items() if value)
            raise UsageError(f"{option}: not for the lists of --systems; leave it out")
        if self.missing == AS_SOURCE and self.score_files.get(PAIR_SCORES):
            raise UsageError(
                f"--{PAIR_SCORES}: it has no pairs of the source lines that --missing source takes "
                "for translations; leave out one of the two options"
            )
        check_options(self)


def made_lists(
    lists: Lists, notices: Notices, copies: ExitStack, documents: Documents | None = None
) -> tuple[Lists, SystemLists | None]:
    """The lists, those of systems in a temporary file, which is deleted with `copies`.

    documents: of the run [default: those that the options or the files name]. UsageError as
    `Lists.check`; for faults of systems see `rerank.corpus.systems.read_outputs`.
    """
    lists.check()
    if not lists.systems:
        return lists, None
    docs, no_docs, first_id = lists.docs, lists.no_docs, lists.first_id
    made = lists_of_systems(
        lists.systems,
        documents,
        notices,
        copies,
        docs=docs,
        no_docs=no_docs,
        first_id=first_id,
        change=nfc if lists.in_nfc else None,
    )
    docs = made.docids() if docs is None and no_docs is None else docs
    return replace(lists, kbest=made.path, kbest_format=made.format, docs=docs), made


def with_own_sources(lists: Lists, copies: ExitStack) -> Lists:
    """The lists with a file of the sources in `Lists.side`, if they themselves state all of them.

    A file that an option names stays; copies: deletes temporary files.
    """
    if SOURCE in lists.side:
        return lists
    if lists.systems:
        texts = (file_of(path) for _, path in lists.systems)
        stating = (Path(path) for path in texts if documents_in(path, Notices()))
        own = next(stating, None)
        return lists if own is None else replace(lists, side={**lists.side, SOURCE: own})
    kbest = copies.enter_context(spool(lists.kbest))
    _, sources = annotations_of(kbest, lists)
    if sources is None:
        return replace(lists, kbest=kbest.path)
    folder = copies.enter_context(tempfile.TemporaryDirectory(prefix="rerank-"))
    copy = Path(folder, f"<sources of {Path(lists.kbest).name}>")
    copy.write_bytes(b"".join(line + b"\n" for line in sources))
    return replace(lists, kbest=kbest.path, side={**lists.side, SOURCE: copy})


def own_documents(lists: Lists) -> Documents | None:
    """Documents that the list itself has; None if it has none, or options name others."""
    if lists.docs is not None or lists.no_docs is not None:
        return None
    if lists.systems:
        return documents_of_systems(lists.systems, Notices())
    if is_pipe(lists.kbest):
        return None
    ids, _ = annotations_of(lists.kbest, lists)
    return None if ids is None else Documents.from_lines(ids, source=display(lists.kbest))


def read_targets(
    lists: Lists,
    references: Sequence[str | Path],
    notices: Notices,
    announce: Printer = log.info,
) -> tuple[Documents, list[list[bytes]]]:
    """The documents of lists, and the references of their sentences: [sentence][file].

    Sentences without a reference are left out with `Lists.drop_unreferenced`, otherwise an
    InputError. Where only the first reference has documents, a line says so.
    """
    lists.check()
    documents, drop = own_documents(lists), lists.drop_unreferenced
    if documents is None:
        if lists.docs is None and lists.no_docs is None:
            _announce_documents(lists, references, notices, announce)
        found = read_with_documents(lists.docs, lists.no_docs, references, notices, drop=drop)
    else:
        target = documents if lists.systems else documents.n_lines  # segments of XML have names
        texts = read_reference_texts(references, target, notices, model=lists.name)
        found = matched(texts, documents, notices, drop=drop)
    documents, targets = found
    return documents, nfc_lines(targets) if lists.in_nfc else targets


def documents_of_reference(references: Sequence[str | Path], notices: Notices) -> Documents | None:
    """The documents that the first reference states; None if it states none."""
    if not references or is_pipe(file_of(references[0])):
        return None
    return documents_in(references[0], notices)


def check_source_order(
    lists: Lists, references: Sequence[str | Path], documents: Documents, notices: Notices
) -> None:
    """InputError if the source states other documents than the first reference, which has these."""
    source = lists.side.get(SOURCE)
    others = None if source is None else documents_in(source, notices)
    if others is not None and (difference := difference_of(others, documents)):
        raise InputError(
            f"expected the documents of {display(references[0])} in their order, found "
            f"{difference}; give --docs FILE with the documents in the order of the list",
            source=display(source or ""),
        )


def _announce_documents(
    lists: Lists, references: Sequence[str | Path], notices: Notices, announce: Printer
) -> None:
    """Announce that documents and their order are those of the first reference, if they are."""
    documents = documents_of_reference(references, notices)
    if documents is not None:
        check_source_order(lists, references, documents, notices)
        announce(
            f"documents: those of {display(references[0])}, in its order, which must be that of "
            "the list's source; otherwise give --docs FILE"
        )


class KBestFile:
    """A k-best list on disk, which can be read as often as needed; side: `Lists.side`, likewise.

    unreported: notices of readings other than `read`.
    """

    def __init__(
        self,
        path: FilePath,
        lists: Lists,
        side: Mapping[str, FilePath] = NO_FILES,
        unreported: Notices | None = None,
    ) -> None:
        self.path, self.lists, self.name = path, lists, display(lists.kbest)
        self._side, self._unreported = side, unreported

    @cached_property
    def survey(self) -> Survey:
        """Figures of the list, counted at the first use."""
        return survey_of(self.path, self.lists, self._unreported)

    @cached_property
    def format(self) -> KBestFormat:
        """The format of the list."""
        return format_of(self.path, self.lists, self._unreported)

    @cached_property
    def annotations(self) -> tuple[list[bytes] | None, list[bytes] | None]:
        """Documents and sources of the sentences, where the list itself has them."""
        documents, sources = annotations_of(self.path, self.lists, self._unreported)
        if sources is not None and self.lists.in_nfc:
            sources = list(map(nfc, sources))
        return documents, sources

    def documents(self, notices: Notices) -> Documents:
        """The documents that the options name or, without them, that the list has."""
        lists = self.lists
        if lists.docs is None and lists.no_docs is None and self.annotations[0] is not None:
            return Documents.from_lines(self.annotations[0], source=self.name)
        from_source = lists.missing == AS_SOURCE and SOURCE in self._side
        n_lines = self._lines_of_source if from_source else self.lines_by_id
        return Documents.chosen(lists.docs, lists.no_docs, n_lines, notices, most=self._most_lines)

    def read(
        self, documents: Documents, notices: Notices, store: ArrayStore = IN_MEMORY
    ) -> Iterator[NamedLists]:
        """(document id, its lists) of each document; where it is too large, in files of a store.

        UsageError if the source lines are to be candidates (`--missing source`) and not given.
        """
        side = {
            kind: given_lines(path, display(self.lists.side[kind]), kind, documents, notices)
            for kind, path in self._side.items()
        }
        if self.lists.in_nfc and SOURCE in side:
            side[SOURCE] = (list(map(nfc, lines)) for lines in side[SOURCE])
        sources = None
        if self.lists.missing == AS_SOURCE:
            check_files(MISSING_SOURCE, side.keys() & {SOURCE})
            side[SOURCE], sources = tee(side[SOURCE])
        lists = self.lists
        found = read_documents(self.path, documents, notices, lists, store, sources=sources)
        for name, kbest, *lines in zip(documents.ids, found, *side.values(), strict=True):
            beside = dict(zip(side, lines, strict=True))
            yield name, replace(kbest, source=self.name, side=beside)

    def in_pieces(self, documents: Documents) -> Documents:
        """Pieces of long documents, to read for work that looks at each sentence alone.

        The documents themselves if none is long, if sentences of the list are not in order, and if
        sources are read beside them, in which whole documents may be parted.
        """
        sizes = (b - a for a, b in pairwise(documents.starts))
        whole = documents.interleaved or self.lists.missing == AS_SOURCE
        if max(sizes, default=0) <= PIECE or whole:
            return documents
        try:
            return documents.in_pieces(PIECE) if self.survey.rising else documents
        except InputError:  # reported where the list is read
            return documents

    def lines_by_id(self) -> int:
        """How many source lines there are, from the highest id of the list."""
        survey = self.survey
        n_lines = max(0, survey.last_id - self.lists.first_id + 1)
        if n_lines > SPARSEST * (survey.candidates + 1):
            raise InputError(
                f"expected ids without large gaps, found id {survey.last_id} in a list of "
                f"{survey.candidates} hypotheses; give --docs FILE, a line per source line",
                source=self.name,
            )
        return n_lines

    def _lines_of_source(self) -> int:
        """How many lines the file of the sources has."""
        path = self._side[SOURCE]
        stated = documents_in(path, Notices())
        return sum(1 for _ in read_lines(path, Notices())) if stated is None else stated.n_lines

    def _most_lines(self) -> int:
        """Most source lines that are believed of a list of so many lines."""
        return SPARSEST * (count_lines(self.path) + 1)


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
        needed = {kind: f"--scorer {p.name}" for p in self.plugins for kind in p.side_information}
        needed |= {kind: f"--lm {m.name}" for m in self.models for kind in m.side_information}
        needed |= MISSING_SOURCE if lists.missing == AS_SOURCE else {}
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
        self.score_files: list[FileScorer] = []
        for option, named in lists.score_files.items():
            if option == PAIR_SCORES and self.documents.n_left_out:
                raise UsageError(
                    f"--{option}: its lines number the sentences of whole documents, of which "
                    "--drop-unreferenced leaves some out; leave out one of the two options"
                )
            file_scorer = attribute(SCORE_FILES[option].scorer)
            for name, path in named:
                copy = self.copied(path)
                with watch.lap("scores"):
                    self.score_files.append(file_scorer(name, copy, self.info, notices))
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
