"""Documents in memory as the source of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.corpus.columns import Label, column_names
from rerank.corpus.kbest import Document, KBest, NamedLists, items
from rerank.errors import ArgumentError, InputError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.run_files import no_option
from rerank.formats.translations import check_document
from rerank.notices import Notices, log
from rerank.registry import SIDE_INFORMATION
from rerank.runs.lists import Source
from rerank.runs.run import Run
from rerank.scorers.agreement import AGREEMENT, Agreement, one_output_each
from rerank.scorers.features import FeatureSource

if TYPE_CHECKING:
    from rerank.metrics.agreement import SystemAgreement

_DOCUMENTS = "documents, as [Document('talk-1', sentences)]"
TEXT_LINE = "a text of one line, in Unicode"


class MemoryLists(Source):
    """Documents in memory, in the order of an iterable; all have the features of the first.

    scorers: for which side information is needed; sparse: names of the features that a candidate
    may lack; systems: of the documents that were read.
    """

    name = "documents"

    def __init__(
        self,
        documents: Iterable[Document],
        scorers: Sequence[FeatureSource] = (),
        sparse: Collection[str] = (),
    ) -> None:
        self.documents = items("documents", _DOCUMENTS, documents)
        self.systems = {}
        self._sparse = sparse
        self._needed = {kind: one.name for one in scorers for kind in one.side_information}

    def __len__(self) -> int:
        return len(self.documents) if isinstance(self.documents, Sized) else 0

    def keep(self) -> None:
        """Hold documents of an iterator, so that they can be read again."""
        if isinstance(self.documents, Iterator):
            self.documents = list(self.documents)

    def read(self, notices: Notices, store: ArrayStore = IN_MEMORY) -> Iterator[NamedLists]:
        """Each document in order, with the features of the first one that has candidates."""
        labels: Sequence[Label] = ()
        for document in map(_checked, self.documents):
            kbest = document.kbest
            if kbest is None:
                kbest = KBest.of(
                    document.sentences,
                    source=document.id,
                    sparse=self._sparse,
                    totals=document.totals,
                )
                kbest = replace(kbest, side=_side_information(document))
            self.systems = {**self.systems, **document.systems}
            for kind, scorer in self._needed.items():
                if kind not in kbest.side:
                    raise InputError(
                        f"expected {SIDE_INFORMATION[kind]}, which scorer {scorer!r} needs, found "
                        f"none; give them to Document or rerank.read as side={{{kind!r}: ...}}",
                        source=document.id,
                    )
            if kbest.n:
                labels = labels or kbest.labels
                kbest = _relabelled(kbest, labels)
            yield document.id, kbest


def add_agreement(run: Run[MemoryLists]) -> None:
    """Add the feature `agreement`, unless the documents have it; they are read once more."""
    counted: SystemAgreement | None = None
    run.source.keep()
    lists = [kbest for _, kbest in run.read_unreported() if kbest.n]
    if lists and AGREEMENT in column_names(lists[0].labels):
        return
    labels = [*run.systems]
    if labels and all(one_output_each(kbest, labels) for kbest in lists):
        from rerank.metrics.agreement import SystemAgreement  # numba

        counted = SystemAgreement(labels)
        for kbest in lists:
            counted.add(kbest)
    run.kinds.agreement = Agreement(run.systems, counted)
    if line := run.kinds.agreement.choose(lists):
        log.info(line)
    run.scorers = run.kinds.all


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
    side = {}
    check_kinds(document.side)
    for kind, value in document.side.items():
        place = f"document {document.id!r}, {kind!r}"
        texts = [*items(place, "a list of a text for each sentence", value)]
        if len(texts) != len(document.sentences):
            raise InputError(
                f"expected {len(document.sentences)} texts of side information {kind!r}, one for "
                f"each sentence, found {len(texts)}; text i must belong to sentence i",
                source=document.id,
            )
        side[kind] = [line_of(place, text) for text in texts]
        check_document(side[kind], kind, document.id)
    return side


def _relabelled(kbest: KBest, labels: Sequence[Label]) -> KBest:
    """The lists with their features in the order of these labels; InputError for other features."""
    if tuple(labels) == kbest.labels:
        return kbest
    ends = np.cumsum([label.width for label in kbest.labels])
    columns = dict(zip(kbest.labels, np.split(np.arange(kbest.dense.shape[1]), ends), strict=False))
    if columns.keys() != set(labels):
        expected, names = (", ".join(label.name for label in own) for own in (labels, columns))
        raise InputError(
            f"expected the features of the first document, {expected}, found {names or 'none'}; "
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
