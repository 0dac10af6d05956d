"""A run whose documents are in memory, or read one at a time by `rerank.read`."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from rerank.corpus.columns import Label, column_names
from rerank.corpus.kbest import Document, KBest, NamedLists, items
from rerank.errors import ArgumentError, InputError, printable
from rerank.files.lines import RereadFile
from rerank.files.run_files import no_option
from rerank.formats.translations import check_document
from rerank.notices import Notice, Notices, RerankWarning, log
from rerank.options import KeywordErrors, with_keywords
from rerank.registry import SIDE_INFORMATION
from rerank.runs.document_run import Run
from rerank.runs.lists import KBestFile, Lists, with_own_sources
from rerank.runs.systems import made_lists
from rerank.scorers.agreement import (
    AGREEMENT,
    CONSENSUS,
    Agreement,
    has_scores,
    one_output_each,
)
from rerank.scorers.features import FeatureSource

if TYPE_CHECKING:
    from rerank.metrics.agreement import SystemAgreement

_DOCUMENTS = "documents, as [Document('talk-1', sentences)]"
TEXT_LINE = "a text of one line, in Unicode"


class PythonWarnings(Notices):
    """Notices of functions called from Python: of each kind the first becomes a `RerankWarning`.

    It names keywords of Python where the shell has flags.
    """

    def take(self, notice: Notice) -> None:
        """Count a warning, and issue it if it is the first of its kind."""
        known = {one.sentence for one in self}
        super().take(notice)
        if notice.sentence not in known:
            text = f"{notice.first}: {notice.to_text()}" if notice.first else notice.to_text()
            text = with_keywords(printable(text), "tune-mert")
            warning = RerankWarning(text, notice.kind.name)
            warnings.warn(warning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The level of the stack, of a function called from here, at which a user called `rerank`."""
    stack = traceback.walk_stack(inspect.currentframe())
    names = [frame.f_globals.get("__name__", "") for frame, _ in stack]
    own = [n for n, name in enumerate(names) if name.partition(".")[0] == "rerank"]
    return own[-1] + 1


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
        super().__init__(scorers, PythonWarnings(), name="documents", origins=origins)
        self._given, self._sparse = items("documents", _DOCUMENTS, documents), sparse
        self.systems: dict[str, str] = {}  # of the documents that were read

    def _held(self) -> Iterator[NamedLists]:
        """Each document in order; they can be read again."""
        if isinstance(self._given, Iterator):
            self._given = list(self._given)
        return self.read()

    def documents(self) -> Iterable[Document]:
        """The documents, which can be read again."""
        self._held()
        return self._given

    def sizes(self) -> list[tuple[str, int]]:
        """Id and number of sentences of each document."""
        if isinstance(given := self.documents(), DocumentReader):
            return given.sizes
        return [(document.id, len(document.sentences)) for document in map(_checked, given)]

    @property
    def of_systems(self) -> bool:
        """Whether the first document is made of the outputs of systems."""
        next(self._held(), None)
        return bool(self.systems)

    def has_scores(self) -> bool:
        """Whether the documents' own numbers, but votes, tell candidates apart."""
        return any(
            has_scores(kbest, {*self.systems, *CONSENSUS} if self.systems else ())
            for _, kbest in self._held()
        )

    def add_agreement(self) -> None:
        """Add the feature `agreement`, unless the documents have it; they are read once more."""
        counted: SystemAgreement | None = None
        lists = [kbest for _, kbest in self._held() if kbest.n]
        if lists and AGREEMENT in column_names(lists[0].labels):
            return
        if self.systems and all(one_output_each(kbest, [*self.systems]) for kbest in lists):
            from rerank.metrics.agreement import SystemAgreement  # numba

            counted = SystemAgreement([*self.systems])
            for kbest in lists:
                counted.add(kbest)
        added = Agreement(self.systems, counted)
        if line := added.choose(lists):
            log.info(line)
        self.scorers = [added, *self.scorers]
        self.origins = {**self.origins, AGREEMENT: AGREEMENT}

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with the features of the first one that has candidates."""
        labels: Sequence[Label] = ()
        for document in map(_checked, self._given):
            kbest = document.kbest
            if kbest is None:
                kbest = KBest.of(
                    document.sentences,
                    source=document.id,
                    sparse=self._sparse,
                    totals=document.totals,
                )
                kbest = replace(kbest, side=_side_information(document))
            self.systems |= document.systems
            for scorer in self.scorers:
                _check_needed(scorer, kbest, document.id)
            if kbest.n:
                labels = labels or kbest.labels
                kbest = _relabelled(kbest, labels)
            yield document.id, kbest

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence; all documents are read."""
        self._held()
        return super().mean_k()


class DocumentReader:
    """Documents of k-best lists, read again whenever they are iterated, one at a time.

    Lists made of the outputs of systems are in a temporary file for as long as the object lives.
    systems: as of `Document`.
    """

    def __init__(self, lists: Lists) -> None:
        self._notices = PythonWarnings()
        copies = ExitStack()
        finalize(self, copies.close)
        lists, documents, self.systems, _ = made_lists(lists, self._notices, copies)
        lists = with_own_sources(lists, copies)
        side = {kind: RereadFile(path) for kind, path in lists.side.items()}
        self._file = KBestFile(RereadFile(lists.kbest), lists, side)
        self._documents = documents or self._file.documents(self._notices)

    def __len__(self) -> int:
        return len(self._documents)

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Id and number of sentences of each document."""
        lengths = np.diff(self._documents.starts).tolist()
        return [*zip(self._documents.ids, lengths, strict=True)]

    def __iter__(self) -> Iterator[Document]:
        with KeywordErrors("decode"):
            for name, kbest in self._file.read(self._documents, self._notices):
                yield Document.of(name, kbest, self.systems)


def _checked(document: object) -> Document:
    """The document; ArgumentError for something else."""
    if isinstance(document, Document):
        return document
    raise ArgumentError.of("documents", _DOCUMENTS, document)


def check_kinds(side: Mapping[str, Any]) -> None:
    """ArgumentError for a kind of side information that no model needs."""
    for kind in side:
        if kind not in SIDE_INFORMATION:
            raise ArgumentError(f"side: {no_option(str(kind), SIDE_INFORMATION)}")


def _side_information(document: Document) -> dict[str, list[bytes]]:
    """Side information of a document; InputError if it is not a text for each sentence."""
    found = {}
    check_kinds(document.side)
    for kind, given in document.side.items():
        place = f"document {document.id!r}, {kind!r}"
        texts = [*items(place, "a list of a text for each sentence", given)]
        if len(texts) != len(document.sentences):
            raise InputError(
                f"expected {len(document.sentences)} texts of side information {kind!r}, one for "
                f"each sentence, found {len(texts)}; text i must belong to sentence i",
                source=document.id,
            )
        found[kind] = [line_of(place, text) for text in texts]
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


def line_of(what: str, text: object) -> bytes:
    """A text of one line; ArgumentError for something else."""
    if isinstance(text, str) and "\n" not in text:
        with suppress(UnicodeEncodeError):
            return text.encode()
    raise ArgumentError.of(what, TEXT_LINE, text)
