"""`rerank perplexity`, and texts as a trained model reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import RerankError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.pipeline.language_models import open_model
from rerank.pipeline.processes import others_alive, sharing_documents
from rerank.pipeline.side_information import check_files, encoded
from rerank.pipeline.tags import TaggedText, read_tags
from rerank.pipeline.training_texts import TextFiles, check_text
from rerank.torchrun import number_of_processes

if TYPE_CHECKING:
    from torch import Tensor

    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.evaluation import Perplexity, Share
    from lm.vocabulary import Vocabulary


def perplexity(
    lm: Path,
    text: str | Path | TextFiles,
    *,
    notices: Notices,
    documents: str = "blank",
    document_cache: float | None = None,
    duplicate_last_word: bool = False,
    per_document: bool = False,
    across_documents: bool = False,
    device: str = "auto",
    threads: int | None = None,
) -> Perplexity:
    """Perplexity of a text whose documents are parted as `lm.corpus.DOCUMENTS` names it.

    document_cache: weight of a document cache that the model is interpolated with;
    duplicate_last_word: each sentence's last word is read and counted twice, as in the published
    program of Ji et al. 2016; per_document: with the perplexity of each document, too;
    across_documents: whether contexts cross the ends of documents. A `TaggedText` has the figures
    of each tag, too. Processes of `torchrun` share the documents, and each gets the figures of all.
    """
    from lm import evaluation
    from lm.corpus import with_last_words_twice
    from lm.document_cache import WithDocumentCache
    from lm.evaluation import Tags
    from lm.side_information import information_of

    saved = open_model(lm, device, threads)
    text = TextFiles.of(text)
    needed = information_of(saved.model.context, training=False)
    check_files(dict.fromkeys(needed, str(lm)), text.side)
    plain = encoded_text(text, saved.vocabulary, saved.side, notices, documents)
    columns, names = [plain], list[str]()
    if isinstance(text, TaggedText) and text.tags is not None:
        tagged, names = read_tags(text.tags, plain, display(text.text), documents, notices)
        columns.append(tagged)
    columns = [saved.in_reading_order(c, across_documents=across_documents) for c in columns]
    if duplicate_last_word:
        if saved.model.config.backward:
            raise UsageError(
                f"--duplicate-last-word: {lm} reads sentences from right to left; leave it out"
            )
        columns = [with_last_words_twice(column) for column in columns]
    model = saved.model
    if document_cache is not None:
        model = WithDocumentCache(model, document_cache)
    measure = evaluation.perplexity_by_document if per_document else evaluation.perplexity
    corpus, *others = columns
    tags = Tags(others[0].tokens.astype("int64"), names) if others else None
    with broken_models(lm), _share(text) as share:
        return measure(model, corpus, tags=tags, share=share)


@contextmanager
def _share(text: TextFiles) -> Iterator[Share]:
    """The documents that this process reads, among those of `torchrun`.

    RerankError if another process ends before its documents are read.
    """
    from lm.evaluation import ALL, Share

    if number_of_processes() == 1:
        yield ALL
        return
    with sharing_documents(text.all) as group:

        def add(tensor: Tensor) -> None:
            with others_alive("the same command begins again"):
                group.wait()
                group.add(tensor)

        yield Share(group.rank, group.number, add)


def read_corpus(
    files: str | Path | TextFiles,
    saved: SavedModel,
    notices: Notices,
    documents: str = "blank",
    *,
    across_documents: bool = False,
) -> Corpus:
    """A text, its documents parted as `lm.corpus.DOCUMENTS` names it, as a model reads it.

    across_documents: whether the whole text is one document. InputError if it has no words, or if
    its side information does not fit.
    """
    files = TextFiles.of(files)
    corpus = encoded_text(files, saved.vocabulary, saved.side, notices, documents)
    return saved.in_reading_order(corpus, across_documents=across_documents)


def encoded_text(
    files: TextFiles,
    vocabulary: Vocabulary,
    side: Mapping[str, Vocabulary],
    notices: Notices,
    documents: str = "blank",
) -> Corpus:
    """A text and its side information in the ids of vocabularies; documents: as above.

    InputError if it has no words, or if its side information does not fit.
    """
    from lm.corpus import encode

    corpus = encode(read_lines(files.text, notices), vocabulary, documents)
    check_text(corpus, files.text, notices)
    name = display(files.text)
    return replace(corpus, side=encoded(files.side, side, corpus, name, documents, notices))


@contextmanager
def broken_models(lm: Path) -> Iterator[None]:
    """RerankError, with the folder of a model, for scores that are no log-probabilities."""
    from lm.scoring import ScoreError

    try:
        yield
    except ScoreError as fault:
        raise RerankError(f"{lm}: {fault}") from None
