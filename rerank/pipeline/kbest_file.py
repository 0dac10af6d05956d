"""A k-best list in a file, read as often as a run needs it, with its side information."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, tee

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.corpus.reading import AS_SOURCE
from rerank.corpus.spelling import nfc
from rerank.errors import InputError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.lines import count_lines, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.side_information import NO_FILES, SOURCE, check_files, given_lines
from rerank.formats.table import (
    KBestFormat,
    Survey,
    annotations_of,
    format_of,
    read_documents,
    survey_of,
)
from rerank.formats.translations import documents_in
from rerank.notices import Notices
from rerank.pipeline.lists import MISSING_SOURCE, Lists
from rerank.pipeline.sources import NamedLists

PIECE = 2000  # sentences of a document in memory, where sentences are looked at one by one
SPARSEST = 1000  # lines without candidates for one with, beyond which ids are not believed


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

    def with_annotations(self, kbest: KBest, documents: Documents) -> KBest:
        """The lists of a document with the document ids and sources that the list itself has.

        Side information that is given has precedence.
        """
        ids, sources = self.annotations
        found = of_sentences(kbest, documents, {"document": ids, SOURCE: sources})
        return replace(kbest, side={**found, **kbest.side})

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


def of_sentences(
    kbest: KBest, documents: Documents, lines: Mapping[str, Sequence[bytes] | None]
) -> dict[str, Sequence[bytes]]:
    """The lines of the sentences of one of the documents, by kind; lines: of all source lines."""
    places = [documents.line(kbest.first + t) for t in range(len(kbest))]
    return {
        kind: [given[place] for place in places]
        for kind, given in lines.items()
        if given is not None
    }
