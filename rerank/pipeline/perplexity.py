"""`rerank perplexity`, and texts as a trained model reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.texts import TextFiles, encoded_text
from rerank.errors import UsageError
from rerank.files.paths import display
from rerank.formats.side_information import check_files
from rerank.notices import Notices
from rerank.pipeline.tags import TaggedText, read_tags
from rerank.scorers.model_folders import broken_models, open_model
from rerank.torchrun import number_of_processes, others_alive, sharing_documents

if TYPE_CHECKING:
    from torch import Tensor

    from lm.evaluation import Perplexity, Share


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
