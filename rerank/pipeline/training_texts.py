"""Training and validation text of a language model, in ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.vocabulary import Vocabulary
    from rerank.pipeline.language_models import Recipe

STRETCHES = 4  # for each stream, where contexts cross the ends of documents
_PARTED = {
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
}


def corpora(
    recipe: Recipe, train: str | Path, valid: str | Path, notices: Notices
) -> tuple[Corpus, Corpus, Vocabulary]:
    """Training and validation text in ids, as read, and the vocabulary of the training text."""
    from lm.corpus import build_vocabulary, encode, intern, renumber
    from lm.direction import in_reading_order

    words, raw = intern(read_lines(train, notices), recipe.documents)
    check_text(raw, train, notices)
    unknown = None if recipe.unknown is None else recipe.unknown.encode()
    if unknown is not None and unknown not in words:
        raise InputError(
            f"expected the word {recipe.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=display(train),
        )
    least = recipe.min_count or 1
    size = recipe.vocabulary or len(words)
    vocabulary = build_vocabulary(words, raw, size, least=least, unknown=unknown)
    if not vocabulary.words:
        raise UsageError(f"--vocab-min-count {least}: no word is so frequent; choose a smaller one")
    held_out = encode(read_lines(valid, notices), vocabulary, recipe.documents)
    check_text(held_out, valid, notices)
    if raw.n_documents == 1 and not recipe.across_documents:
        notices.add(
            f"training text is one document; {_PARTED[recipe.documents]}", source=display(train)
        )
    corpus = renumber(raw, words, vocabulary)
    if recipe.longest is not None:
        corpus = corpus.without_longer(recipe.longest)
        if not corpus.n_sentences:
            raise UsageError(
                f"--longest {recipe.longest}: all sentences of the training text have more words; "
                "choose a larger number"
            )
    if recipe.across_documents:
        stretches = (recipe.streams or 1) * STRETCHES
        corpus, held_out = corpus.in_stretches(stretches), held_out.in_stretches(1)
    corpus, held_out = (
        in_reading_order(one, backward=recipe.backward, reverse_documents=recipe.reverse_documents)
        for one in (corpus, held_out)  # after stretches, which are read in this order, too
    )
    return corpus, held_out, vocabulary


def check_text(corpus: Corpus, path: str | Path, notices: Notices) -> None:
    """InputError for a text without words; a notice of sentences without words."""
    import numpy as np

    if not len(corpus.tokens):
        raise InputError(
            "expected one sentence per line, found no words; is this the right file?",
            source=display(path),
            line=1,
        )
    if empty := int(np.count_nonzero(np.diff(corpus.sentences) == 0)):
        notices.add(
            "blank line read as a sentence without words, as --documents equals says",
            source=display(path),
            count=empty,
        )
