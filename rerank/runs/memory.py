"""Documents in memory: a run through them, and the texts that Python gives for their sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from rerank.corpus.columns import Label, column_names
from rerank.corpus.kbest import Document, KBest, NamedLists, items
from rerank.corpus.reading import AVOID
from rerank.errors import ArgumentError, InputError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.run_files import no_option
from rerank.formats.translations import check_document
from rerank.notices import Notices
from rerank.options import settings_of
from rerank.registry import SIDE_INFORMATION
from rerank.runs.lists import Source
from rerank.runs.opening import add_defects
from rerank.runs.options import RunOptions
from rerank.runs.results import DocumentResult
from rerank.runs.run import Run
from rerank.runs.search import Scorers
from rerank.scorers.features import FeatureSource

_DOCUMENTS = "documents, as [Document('talk-1', sentences)]"
_TEXT_LINE = "a text of one line, in Unicode"


def memory_run(
    documents: Iterable[Document],
    scorers: Scorers,
    sparse: Collection[str],
    notices: Notices,
    defects: str | None = None,
) -> Run[MemoryLists]:
    """A run through documents in memory; sparse: names of features that a candidate may lack.

    defects: what happens to candidates that are no translations, as `--defects`.
    """
    options = settings_of(RunOptions)
    run = Run(
        MemoryLists(documents, scorers.all, sparse),
        scorers,
        notices,
        origins={scorer.name: f"scorer {scorer.name!r}" for scorer in scorers.all},
        store=ArrayStore.of_process(None),
        options=replace(options, scorers=replace(options.scorers, defects=defects)),
    )
    if run.defects.mode == AVOID:
        add_defects(run)
    return run


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
        self._needed = {kind: s.name for s in scorers for kind in s.side_information}

    def __len__(self) -> int:
        return len(self.documents) if isinstance(self.documents, Sized) else 0

    def keep(self) -> None:
        """Hold documents of an iterator, so that they can be read again."""
        if isinstance(self.documents, Iterator):
            self.documents = list(self.documents)

    def read(self, notices: Notices, store: ArrayStore = IN_MEMORY) -> Iterator[NamedLists]:
        """Each document in order, with the features of the first one that has candidates."""
        labels: Sequence[Label] = ()
        for document in self.documents:
            if not isinstance(document, Document):
                raise ArgumentError.of("documents", _DOCUMENTS, document)
            kbest = document.kbest
            if kbest is None:
                kbest = KBest.of(
                    document.sentences,
                    source=document.id,
                    sparse=self._sparse,
                    totals=document.totals,
                )
                kbest = replace(kbest, side=_side_information(document))
                if document.systems:
                    kbest = _of_all_systems(kbest, document.systems)
            self.systems |= document.systems
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


def _of_all_systems(kbest: KBest, labels: Collection[str]) -> KBest:
    """The lists, where equal texts of a sentence are outputs of the same systems, as in files.

    labels: of the systems' indicator features.
    """
    names = column_names(kbest.labels)
    if kbest.n and (missing := [label for label in labels if label not in names]):
        raise InputError(
            f"expected the feature {missing[0]!r} of `systems`, 1 of the outputs of a system, "
            "found none; give it to every candidate",
            source=kbest.source,
        )
    columns = np.array([f for f, name in enumerate(names) if name in labels], np.int64)
    dense, firsts = kbest.dense.copy(), kbest.first_rows()
    np.maximum.at(dense, (firsts[:, None], columns), kbest.dense[:, columns])
    dense[:, columns] = dense[firsts[:, None], columns]
    return replace(kbest, dense=dense)


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
        expected, names = (", ".join(label.name for label in side) for side in (labels, columns))
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
    raise ArgumentError.of(what, _TEXT_LINE, text)


def texts_of(
    what: str,
    value: object,
    *,
    place: str = "",
    several: bool = True,
    sizes: Sequence[tuple[Any, int | None]] | None = None,
) -> list[list[list[bytes]]]:
    """Texts of each sentence of each document; ArgumentError for something else.

    Documents in place of lists of texts are put in the order of the sizes, where these are known.
    place: for messages, default what the texts are; several: whether a sentence may have a list of
    texts in place of one; sizes: id of each document, and how many sentences it has, if known.
    """
    place = place or what

    def of_sentence(place: str, sentence: object) -> list[bytes]:
        single = isinstance(sentence, str) or not several
        texts = [sentence] if single else [*items(place, _TEXT_LINE, sentence)]
        if not texts:
            raise ArgumentError.of(place, "at least one text", sentence)
        return [line_of(place, text) for text in texts]

    documents = [*items(place, "a list of documents", value)]
    if ids := ids_of(documents):
        known = ids if sizes is None else [name for name, _ in sizes]
        named = _by_id(place, documents, known)
        if what == "references" and (more := [name for name in ids if name not in known]):
            raise ArgumentError(f"documents: expected those of document {more[0]!r}, found none")
        documents = [named[name] for name in known]
    texts = [
        [
            of_sentence(f"{place}, document {d}, sentence {t}", sentence)
            for t, sentence in enumerate(
                items(f"{place}, document {d}", "a list of texts", document)
            )
        ]
        for d, document in enumerate(documents)
    ]
    if sizes is not None and len(texts) != len(sizes):
        expected = f"expected {what} of {len(sizes)} documents"
        raise ArgumentError(f"{place}: {expected}, found those of {len(texts)}")
    for (name, length), document in zip(sizes or (), texts, strict=False):
        if length not in (None, len(document)):
            expected = f"expected {what} of {length} sentences"
            raise ArgumentError(
                f"{place}, document {name!r}: {expected}, found those of {len(document)}"
            )
    return texts


def _by_id(place: str, documents: Sequence[Any], known: Sequence[str]) -> dict[str, Any]:
    """Texts of documents by their ids; ArgumentError for an id twice, or none of a known one."""
    named = {document.id: document.texts for document in documents}
    if len(named) < len(documents):
        ids = [document.id for document in documents]
        twice = next(name for name in ids if ids.count(name) > 1)
        raise ArgumentError(f"{place}: expected documents of different ids, found {twice!r} twice")
    if lacking := [name for name in known if name not in named]:
        raise ArgumentError(f"{place}: expected those of document {lacking[0]!r}, found none")
    return named


def ids_of(documents: Any) -> list[str] | None:
    """Ids of documents, or of results; None for texts without any."""
    if not isinstance(documents, Sequence) or not documents:
        return None
    named = all(isinstance(document, Document | DocumentResult) for document in documents)
    return [document.id for document in documents] if named else None
