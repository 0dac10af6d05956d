"""Documents in memory, and documents read lazily from a k-best list, as a run goes through them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from weakref import finalize

import numpy as np

from rerank.commands.document_run import Run
from rerank.commands.lists import KBestFile, Lists, NamedLists, made_lists, with_own_sources
from rerank.corpus.columns import Label
from rerank.corpus.kbest import Document, KBest
from rerank.corpus.reading import AS_SOURCE
from rerank.errors import InputError
from rerank.files.lines import RereadFile
from rerank.formats.side_information import check_document
from rerank.notices import PythonWarnings
from rerank.registry import SIDE_INFORMATION
from rerank.scorers.features import FeatureSource


class MemorySource(Run):
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
        super().__init__((), scorers, PythonWarnings(), name="documents", origins=origins)
        self._given, self._sparse = documents, sparse

    def read(self) -> Iterator[NamedLists]:
        """Each document in order, with the features of the first one that has candidates."""
        labels: Sequence[Label] = ()
        for document in self._given:
            kbest = document.kbest
            if kbest is None:
                kbest = KBest.of(document.sentences, source=document.id, sparse=self._sparse)
                kbest = replace(kbest, side=_side_information(document))
            for scorer in self.scorers:
                _check_needed(scorer, kbest, document.id)
            if kbest.n:
                labels = labels or kbest.labels
                kbest = _relabelled(kbest, labels)
            yield document.id, kbest

    def mean_k(self) -> float:
        """Mean number of candidates of a sentence; all documents are read."""
        if isinstance(self._given, Iterator):
            self._given = list(self._given)
        return super().mean_k()


class DocumentReader:
    """Documents of k-best lists, read again whenever they are iterated, one at a time.

    Lists made of the outputs of systems are in a temporary file for as long as the object lives.
    """

    def __init__(self, lists: Lists) -> None:
        self._notices = PythonWarnings()
        copies = ExitStack()
        finalize(self, copies.close)
        lists, made = made_lists(lists, self._notices, copies)
        lists = with_own_sources(lists, copies) if lists.missing == AS_SOURCE else lists
        side = {kind: RereadFile(path) for kind, path in lists.side.items()}
        self._file = KBestFile(RereadFile(lists.kbest), lists, side)
        self._documents = made.documents if made else self._file.documents(self._notices)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        for name, kbest in self._file.read(self._documents, self._notices):
            yield Document.of(name, kbest)


def _side_information(document: Document) -> dict[str, list[bytes]]:
    """Side information of a document; InputError if it is not a text for each sentence."""
    found = {}
    for kind, texts in document.side.items():
        if len(texts) != len(document.sentences):
            raise InputError(
                f"expected {len(document.sentences)} texts of side information {kind!r}, one for "
                f"each sentence, found {len(texts)}; text i must belong to sentence i",
                source=document.id,
            )
        found[kind] = [text.encode() for text in texts]
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
