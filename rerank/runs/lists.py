"""K-best lists of a run: as the options name them, where they come from, and their references.

A `ListSource` gives documents of candidates as often as a run reads them: `KBestFile` from a file,
`rerank.runs.systems.SystemLists` from outputs of systems and merged lists.
"""

from __future__ import annotations

import math
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise, tee
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np

from rerank.corpus.columns import KBestRows
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.grouping import Grouping
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.reading import AS_EMPTY, AS_SOURCE, ReadingOptions
from rerank.corpus.spelling import nfc, nfc_lines, nfc_rows
from rerank.errors import InputError, SideError, UsageError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.lines import count_lines, is_pipe, read_lines
from rerank.files.paths import FilePath, base_name, display, file_of
from rerank.formats.document_files import UnsegmentedText, chosen_documents
from rerank.formats.table import (
    AnnotatedFormat,
    KBestFormat,
    SampledFormat,
    SentencesBeside,
    check_format_options,
    opened,
)
from rerank.formats.translations import (
    SOURCE,
    Files,
    check_files,
    check_length,
    check_source_order,
    documents_in,
    documents_of_reference,
    given_lines,
    has_sources,
    matched,
    read_reference_texts,
    read_with_documents,
)
from rerank.notices import Notices, Printer, log

NamedSystem: TypeAlias = tuple[str, FilePath]
"""Name of a system, and the file of its outputs."""
LineWriter: TypeAlias = Callable[[Iterable[tuple[int, bytes]]], None]
"""Takes (sentence, line): sentences count from 0 through all documents, lines have no end."""
MISSING_SOURCE = {SOURCE: "--missing source"}  # side information, and what needs it
PIECE = 2000  # sentences of a document in memory, where sentences are looked at one by one
SPARSEST = 1000  # lines without candidates for one with, beyond which ids are not believed


@dataclass(frozen=True, slots=True)
class Lists(ReadingOptions):
    """Input of a run, as the options name it: k-best lists, documents, and what is beside them.

    kbest: the file of the lists, and list_name its NAME; empty where lists are made, of systems:
    (NAME, file) of each system's outputs, or (`rerank.registry.ALL_SYSTEMS`, file) for all of a
    file; and of merged: (NAME, file) of k-best lists.
    side: files of side information, by kind, a line for each source line. drop_unreferenced: leave
    out sentences that a reference does not have, where references are read.
    """

    kbest: str | Path
    docs: FilePath | None = None
    no_docs: str | None = None
    systems: tuple[NamedSystem, ...] = ()
    merged: tuple[NamedSystem, ...] = ()
    list_name: str = ""
    drop_unreferenced: bool = False
    side: Files = field(default_factory=dict)

    @property
    def segmented(self) -> list[NamedSystem]:
        """The systems whose outputs have segments."""
        return [pair for pair in self.systems if not isinstance(pair[1], UnsegmentedText)]

    @property
    def files(self) -> list[FilePath]:
        """All files that are read."""
        beside = [path for path in (self.docs, self.kbest_scores) if path is not None]
        made = [file_of(path) for _, path in (*self.systems, *self.merged)]
        lists = made or [self.kbest]
        return [*dict.fromkeys(lists), *beside, *self.side.values()]

    @property
    def name(self) -> str:
        """What messages call the lists."""
        made = "the merged lists" if self.merged else "the list of the systems"
        return display(self.kbest) if self.kbest else made

    @property
    def made(self) -> bool:
        """Whether lists are made of outputs of systems and of other lists."""
        return bool(self.systems or self.merged)

    def check(self) -> None:
        """UsageError unless there is one kind of input, and for options that it does not use."""
        if not (self.kbest or self.made):
            raise UsageError(
                "expected --kbest FILE or --systems NAME=FILE, found neither; give one of them"
            )
        if self.systems and not self.segmented:
            raise UsageError(
                "--systems: expected a system with a line per segment, with which those of "
                "align=yes are aligned, found none; add one, or, to choose among whole documents, "
                "give files with a document on each line, and --no-docs each"
            )
        of_a_list = {"--kbest-scores": self.kbest_scores}
        if not self.merged:
            of_a_list = {
                "--kbest-format": self.kbest_format,
                **of_a_list,
                "--encoding": None if self.encoded.is_plain else self.encoding,
            }
        if self.made and (options := [name for name, value in of_a_list.items() if value]):
            what = "several lists" if self.merged else "the lists of --systems"
            raise UsageError(f"{options[0]}: not for {what}; leave it out")
        check_format_options(self)


def named_list(value: str | Path) -> NamedSystem:
    """NAME and file of `[NAME=]FILE`, the option of a k-best list; by default its name to a dot.

    A file that is there has no NAME in front, nor has one with a slash before the `=`.
    """
    name, mark, path = str(value).partition("=")
    if not mark or not path or not name or "/" in name or Path(value).exists():
        return base_name(value).partition(".")[0] or base_name(value), value
    return name, path


# Where lists come from


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of a k-best list: candidates, highest sentence id, last line.

    last_id: also of sentences without candidates, which some formats name;
    last_line: number of the last line that is not blank, whether or not its candidate is kept;
    rising: whether no sentence comes after a later one; blank: lines of candidates without a text.
    """

    candidates: int
    last_id: int
    last_line: int
    rising: bool
    blank: Sequence[int]


class Source(ABC):
    """What gives a run its documents, as often as it needs them.

    name: in messages; systems: name of each system by the label of its indicator feature, of lists
    made of outputs; file_format: of the file of the lists, empty if they are in none.
    """

    name: str
    systems: dict[str, str]
    file_format: str = ""

    @abstractmethod
    def __len__(self) -> int:
        """Number of documents, for the progress of reading."""

    def keep(self) -> None:  # noqa: B027 - most sources can always be read again
        """See to it that the documents can be read again."""

    @abstractmethod
    def read(self, notices: Notices, store: ArrayStore = IN_MEMORY) -> Iterator[NamedLists]:
        """(document id, its lists) of each document; where it is too large, in files of a store."""


class ListSource(Source):
    """Documents of candidates as the options name them.

    documents: as they are read, known before `read` is called; side: files of side information,
    by kind; own_sources: whether the source lines that the list itself states are read beside it,
    and needs_sources, whether it is a fault if they are not those of the documents;
    unreported: notices of readings other than `read`.
    """

    documents: Documents

    def __init__(
        self,
        lists: Lists,
        name: str,
        documents: Documents | None = None,
        unreported: Notices | None = None,
    ) -> None:
        self.lists, self.name = lists, name
        self.side: Mapping[str, FilePath] = {}
        if documents is not None:
            self.documents = documents
        self.systems = {}
        self.own_sources, self.needs_sources = False, True
        self._unreported = unreported or Notices()

    @property
    @abstractmethod
    def format(self) -> KBestFormat:
        """The format of the lists, in which they are written again."""

    def __len__(self) -> int:
        return len(self.documents)

    @abstractmethod
    def rows(self, notices: Notices) -> tuple[KBestFormat, Iterator[KBestRows]]:
        """The format, and all candidates in chunks."""

    @cached_property
    def annotations(self) -> tuple[list[bytes] | None, list[bytes] | None]:
        """Documents and sources of the list, of each sentence from the first id on.

        None for those that the list does not have for every sentence.
        """
        return None, None

    @cached_property
    def survey(self) -> Survey:
        """Figures of the first `top` candidates of each sentence, counted at the first use."""
        last_line = latest = 0
        rising, seen, blank = True, Counter[int](), list[int]()
        top = math.inf if self.lists.top is None else self.lists.top
        last_id = self.last_sentence()
        for rows in self.rows(self._unreported)[1]:
            seen.update(rows.sentences.tolist())
            rising = rising and bool((np.diff(rows.sentences, prepend=latest) >= 0).all())
            latest = int(rows.sentences[-1]) if len(rows) else latest
            last_id = max(last_id, int(rows.sentences.max(initial=0)))
            last_line = max(last_line, int(rows.line_numbers.max(initial=0)))
            blank += rows.line_numbers[np.ptp(rows.text_spans, axis=1) == 0].tolist()
        n_kept = sum(int(min(k, top)) for k in seen.values())
        return Survey(n_kept, last_id, last_line, rising, blank)

    def last_sentence(self) -> int:
        """The highest id of a sentence that may have no candidates; 0 where none is named."""
        return 0

    def read(self, notices: Notices, store: ArrayStore = IN_MEMORY) -> Iterator[NamedLists]:
        """Each document; UsageError if source lines are candidates (`--missing`) and not given."""
        documents, lists = self.documents, self.lists
        side = self._side(documents, notices)
        sources = None
        if lists.missing == AS_SOURCE:
            check_files(MISSING_SOURCE, side.keys() & {SOURCE})
            side[SOURCE], sources = tee(side[SOURCE])
        form, rows = self.rows(notices)
        grouping = Grouping(
            documents,
            notices,
            lists,
            source=self.name,
            store=store,
            sources=sources,
            sampled=isinstance(form, SampledFormat) and form.sampled,
        )
        for name, kbest, *of_kinds in zip(
            documents.ids, grouping.lists(rows), *side.values(), strict=True
        ):
            yield name, self.candidates(replace(kbest, side=dict(zip(side, of_kinds, strict=True))))

    def candidates(self, kbest: KBest) -> KBest:
        """The lists of a document as they were grouped."""
        return kbest

    def _side(self, documents: Documents, notices: Notices) -> dict[str, Iterator[Sequence[bytes]]]:
        """Side information of each document, by kind."""
        side: dict[str, Iterator[Sequence[bytes]]] = {
            kind: given_lines(path, display(self.lists.side[kind]), kind, documents, notices)
            for kind, path in self.side.items()
        }
        lines = self.annotations[1] if self.own_sources else None
        if lines is not None and (self.needs_sources or len(lines) == documents.n_file_lines):
            check_length(lines, documents.n_file_lines, source=self.side_name(SOURCE))
            side[SOURCE] = iter(documents.split(documents.in_order(lines)))
        if self.lists.in_nfc and SOURCE in side:
            side[SOURCE] = (list(map(nfc, lines)) for lines in side[SOURCE])
        return side

    def located(self, fault: SideError) -> InputError:
        """An error about side information of a sentence, with file and line."""
        begin, _ = self.documents.span(self.documents.ids.index(fault.document))
        line = self.documents.line(begin + fault.sentence) + 1
        return fault.located(self.side_name(fault.kind), line)

    def side_name(self, kind: str) -> str:
        """What messages call the side information of a kind."""
        path = self.lists.side.get(kind)
        return f"<sources of {base_name(self.name)}>" if path is None else display(path)

    def with_annotations(self, kbest: KBest) -> KBest:
        """The lists of a document with the document ids and sources that the list itself has.

        Side information that is given has precedence.
        """
        places = [self.documents.line(kbest.first + t) for t in range(len(kbest))]
        lines = zip(("document", SOURCE), self.annotations, strict=True)
        stated = {kind: [text[place] for place in places] for kind, text in lines if text}
        return replace(kbest, side={**stated, **kbest.side})

    def find_sources(self) -> None:
        """Have the sources that the list itself states read beside it, unless a file is named."""
        lists = self.lists
        if SOURCE in lists.side:
            return
        texts = (file_of(path) for _, path in lists.segmented)
        stating = next((Path(path) for path in texts if has_sources(path)), None)
        if stating is not None:
            self.lists = replace(lists, side={**lists.side, SOURCE: stating})
            self.side = {**self.side, SOURCE: stating}
        self.own_sources = stating is None and self.annotations[1] is not None

    @property
    def kinds(self) -> set[str]:
        """Kinds of the side information that there is."""
        return {*self.lists.side, *([SOURCE] if self.own_sources else [])}

    def without_sources(self) -> ListSource:
        """The source without side information, whose missing candidates are missing."""
        other = copy(self)
        other.lists, other.side = replace(self.lists, missing=AS_EMPTY), {}
        other.own_sources = False
        return other

    def in_pieces(self) -> Documents:
        """Pieces of long documents, to read for work that looks at each sentence alone.

        The documents themselves if none is long, if sentences of the list are not in order, and if
        sources are read beside them, in which whole documents may be parted.
        """
        documents = self.documents
        sizes = (b - a for a, b in pairwise(documents.starts))
        whole = documents.interleaved or self.lists.missing == AS_SOURCE
        if max(sizes, default=0) <= PIECE or whole:
            return documents
        try:
            return documents.in_pieces(PIECE) if self.survey.rising else documents
        except InputError:  # reported where the list is read
            return documents


class KBestFile(ListSource):
    """A k-best list on disk; its format is detected at the first use."""

    def __init__(
        self,
        path: FilePath,
        lists: Lists,
        documents: Documents | None = None,
        unreported: Notices | None = None,
    ) -> None:
        if lists.made and not lists.kbest:
            raise UsageError(
                "--kbest: expected one list, found several; `rerank score` merges them into one"
            )
        super().__init__(lists, display(lists.kbest), documents, unreported)
        self.path = path

    @cached_property
    def format(self) -> KBestFormat:
        """The format of the list."""
        return opened(self.path, self._unreported, self.lists)[0]

    @property
    def file_format(self) -> str:  # type: ignore[override]
        """Name of the format."""
        return self.format.name

    def rows(self, notices: Notices) -> tuple[KBestFormat, Iterator[KBestRows]]:
        """The format, and the lines of the file as rows."""
        path, lists = self.path, self.lists
        form, lines = opened(path, notices, lists, None if is_pipe(path) else self.format)
        rows = form.read(lines, notices, source=display(path), clip=lists.clip_inf)
        return form, map(nfc_rows, rows) if lists.in_nfc else rows

    def find_documents(self, notices: Notices) -> Documents:
        """The documents that the options name or, without them, that the list has."""
        lists = self.lists
        if lists.docs is None and lists.no_docs is None and self.annotations[0] is not None:
            return Documents.from_lines(self.annotations[0], source=self.name)

        def lines_of_source() -> int:
            stated = documents_in(self.side[SOURCE], Notices())
            return number_of_lines(self.side[SOURCE]) if stated is None else stated.n_sentences

        from_source = lists.missing == AS_SOURCE and SOURCE in self.side
        documents = chosen_documents(
            lists.docs,
            lists.no_docs,
            lines_of_source if from_source else self.lines_by_id,
            notices,
            most=lambda: SPARSEST * (count_lines(self.path) + 1),  # more are not believed
        )
        if lists.docs is not None:
            _check_documents(documents, lists, self.annotations[0], notices)
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

    def last_sentence(self) -> int:
        """The highest id that the format states."""
        if not isinstance(self.format, SentencesBeside):
            return 0
        lines = read_lines(self.path, self._unreported.unreported(), encoded=self.lists.encoded)
        return max(0, self.format.last_sentence(lines))

    @cached_property
    def annotations(self) -> tuple[list[bytes] | None, list[bytes] | None]:
        """Documents and sources of the list, of each sentence from the first id on."""
        if not isinstance(self.format, AnnotatedFormat):
            return None, None
        columns: tuple[dict[int, bytes], ...] = {}, {}
        n, first_id, notices = 0, self.lists.first_id, self._unreported
        lines = read_lines(self.path, notices, encoded=self.lists.encoded)
        for sentence, *texts in self.format.beside(lines, notices, source=display(self.path)):
            n = max(n, sentence - first_id + 1)
            for column, text in zip(columns, texts, strict=True):
                if text is not None:
                    column[sentence - first_id] = text
        documents, sources = (
            [column[t] for t in range(n)] if len(column) == n > 0 and min(column) == 0 else None
            for column in columns
        )
        if sources is not None and self.lists.in_nfc:
            sources = list(map(nfc, sources))
        return documents, sources


# Documents and references


def documents_of_systems(systems: Sequence[NamedSystem], notices: Notices) -> Documents | None:
    """The documents that the first of the files states that states any; None if none does."""
    stated = (documents_in(path, notices) for _, path in systems)
    return next((documents for documents in stated if documents is not None), None)


def own_documents(lists: Lists) -> Documents | None:
    """Documents that the list itself has; None if it has none, or options name others."""
    if lists.docs is not None or lists.no_docs is not None:
        return None
    if (stated := documents_of_systems(lists.segmented, Notices())) is not None:
        return stated
    for path in [path for _, path in lists.merged] or [lists.kbest] * bool(lists.kbest):
        ids = None if is_pipe(path) else _annotated_documents(path, lists)
        if ids is not None:
            return Documents.from_lines(ids, source=display(path))
    return None


def _annotated_documents(path: FilePath, lists: Lists) -> list[bytes] | None:
    """The document of each sentence, where the list itself has them."""
    return KBestFile(path, replace(lists, kbest=str(path))).annotations[0]


def read_targets(
    lists: Lists, references: Sequence[str | Path], notices: Notices, announce: Printer = log.info
) -> tuple[Documents, list[list[bytes]]]:
    """The documents of lists, and the references of their sentences: [sentence][file].

    Sentences without a reference are left out with `Lists.drop_unreferenced`, otherwise an
    InputError. Where only the first reference has documents, a line says so.
    """
    lists.check()
    listed, drop = own_documents(lists), lists.drop_unreferenced
    if listed is not None:
        texts = read_reference_texts(references, listed, notices, model=lists.name)
        documents, targets = matched(texts, listed, notices, drop=drop)
    else:
        stated = None
        if lists.docs is None and lists.no_docs is None:
            stated = documents_of_reference(references, notices)
        if stated is not None:
            check_source_order(lists.side.get(SOURCE), references[0], stated, notices)
            announce(
                f"documents: those of {display(references[0])}, in its order, which must be that "
                "of the list's source; otherwise give --docs FILE"
            )
        documents, targets = read_with_documents(
            lists.docs, lists.no_docs, references, notices, drop=drop
        )
        if lists.docs is not None and lists.kbest and not is_pipe(lists.kbest):
            ids = _annotated_documents(lists.kbest, lists)
            _check_documents(documents, lists, ids, notices)
    return documents, nfc_lines(targets) if lists.in_nfc else targets


def _check_documents(
    documents: Documents, lists: Lists, ids: Sequence[bytes] | None, notices: Notices
) -> None:
    """InputError if a sentence is of another document of --docs than the list itself says.

    A notice if a document of other names has sentences of several documents of the list.
    """
    joined: list[int] = []
    for name, sentences in [] if ids is None else documents.ranges():
        before = ""
        for line in map(documents.line, sentences):
            stated = name if ids is None or line >= len(ids) else ids[line].decode()
            if before not in ("", stated):
                joined.append(line + 1)
            before = stated
            if stated != name and stated in documents.ids:
                raise InputError(
                    f"expected the documents that {lists.name} itself has, found "
                    f"{shown_id(name)} for a sentence of {shown_id(stated)}; leave out --docs, or "
                    "number the sentences of the list as the lines of this file",
                    source=display(lists.docs or ""),
                    line=line + 1,
                )
    if joined:
        source, n = display(lists.docs or ""), len(joined)
        notices.add("joined-documents", source=source, line=joined[0], count=n, list=lists.name)


def digest_of_ids(documents: Documents) -> str:
    """SHA-256 of the document id of each sentence, a line each, in hexadecimal digits."""
    ids = (f"{name}\n" * len(sentences) for name, sentences in documents.ranges())
    return sha256("".join(ids).encode()).hexdigest()


def number_of_lines(path: FilePath) -> int:
    """Number of lines of a plain text."""
    return sum(1 for _ in read_lines(path, Notices()))


@contextmanager
def in_source_order(file: BinaryIO, documents: Documents) -> Iterator[LineWriter]:
    """A writer of lines to a file, which has all of them when the block ends without an error.

    Lines of one sentence stay in the order in which they are written. Memory: for interleaved
    documents three numbers a line, otherwise nothing.
    """
    if not documents.interleaved:
        yield lambda lines: file.writelines(line + b"\n" for _, line in lines)
        return
    places: list[tuple[int, int, int]] = []  # line of the source, begin and size in the scratch
    with tempfile.TemporaryFile(prefix="rerank-") as scratch:

        def write(lines: Iterable[tuple[int, bytes]]) -> None:
            for sentence, line in lines:
                places.append((documents.line(sentence), scratch.tell(), len(line) + 1))
                scratch.write(line + b"\n")

        yield write
        for _, begin, size in sorted(places):
            scratch.seek(begin)
            file.write(scratch.read(size))
