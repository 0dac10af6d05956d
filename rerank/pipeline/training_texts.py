"""Training and validation text of a language model, in ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.pipeline import side_information
from rerank.pipeline.side_information import Files

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.side_information import SideText
    from lm.vocabulary import Vocabulary
    from rerank.pipeline.recipe import Recipe

NOTHING: Mapping[str, Vocabulary] = MappingProxyType({})
STRETCHES = 4  # for each stream, where contexts cross the ends of documents
_PARTED = {
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
    "paragraphs": "part documents with blank lines, and paragraphs with lines that are <p>",
}


@dataclass(frozen=True, slots=True, eq=False)
class TextFiles:
    """A training or validation text, and the files of its side information by kind."""

    text: str | Path
    side: Files = field(default_factory=dict)

    @classmethod
    def of(cls, text: str | Path | TextFiles) -> TextFiles:
        """A text without side information, or these files."""
        return text if isinstance(text, TextFiles) else cls(text)

    @property
    def all(self) -> tuple[str | Path, ...]:
        """All of the files."""
        return (self.text, *self.side.values())


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTexts:
    """Training and validation text in ids, as a model reads them, and the training vocabularies.

    side: vocabulary of each kind of side information.
    """

    train: Corpus
    valid: Corpus
    vocabulary: Vocabulary
    side: Mapping[str, Vocabulary] = field(default_factory=dict)


def training_texts(
    recipe: Recipe,
    train: TextFiles,
    valid: TextFiles,
    notices: Notices,
    known: Mapping[str, Vocabulary] = NOTHING,
) -> TrainingTexts:
    """The texts of a run; of side information, the vocabulary has up to `source_vocabulary` words.

    known: vocabularies of kinds of side information that are not made from the training text.
    InputError for files that do not fit each other.
    """
    from lm.corpus import encode, in_reading_order, intern, renumber

    words, raw = intern(read_lines(train.text, notices), recipe.documents)
    check_text(raw, train.text, notices)
    vocabulary = _vocabulary(recipe, words, raw, train.text)
    held_out = encode(read_lines(valid.text, notices), vocabulary, recipe.documents)
    check_text(held_out, valid.text, notices)
    if raw.n_documents == 1 and not recipe.across_documents:
        notices.add(
            f"training text is one document; {_PARTED[recipe.documents]}",
            source=display(train.text),
        )
    side, own = _side_information(recipe, train, raw, notices, known)
    name, others = display(valid.text), (recipe.documents, notices)
    beside = side_information.encoded(valid.side, side, held_out, name, *others)
    corpus = replace(renumber(raw, words, vocabulary), side=own)
    held_out = replace(held_out, side=beside)
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
    if recipe.passages is not None:
        corpus = _in_passages(corpus, recipe.passages, train.text)
        held_out = _in_passages(held_out, recipe.passages, valid.text)
    corpus, held_out = (
        in_reading_order(one, backward=recipe.backward, reverse_documents=recipe.reverse_documents)
        for one in (corpus, held_out)  # after stretches, which are read in this order, too
    )
    return TrainingTexts(corpus, held_out, vocabulary, side)


def _in_passages(corpus: Corpus, size: int, path: str | Path) -> Corpus:
    """`Corpus.in_passages`; UsageError if all documents of the text, of this name, are shorter."""
    found = corpus.in_passages(size)
    if not found.n_sentences:
        raise UsageError(
            f"--passages {size}: all documents of {display(path)} have fewer sentences; choose a "
            "smaller number"
        )
    return found


def _vocabulary(recipe: Recipe, words: list[bytes], raw: Corpus, path: str | Path) -> Vocabulary:
    """The vocabulary of an interned training text."""
    from lm.corpus import build_vocabulary

    unknown = None if recipe.unknown is None else recipe.unknown.encode()
    if unknown is not None and unknown not in words:
        raise InputError(
            f"expected the word {recipe.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=display(path),
        )
    least = recipe.min_count or 1
    size = recipe.vocabulary or len(words)
    vocabulary = build_vocabulary(words, raw, size, least=least, unknown=unknown)
    if not vocabulary.words:
        raise UsageError(f"--vocab-min-count {least}: no word is so frequent; choose a smaller one")
    return vocabulary


def _side_information(
    recipe: Recipe,
    train: TextFiles,
    raw: Corpus,
    notices: Notices,
    known: Mapping[str, Vocabulary],
) -> tuple[dict[str, Vocabulary], dict[str, SideText]]:
    """Vocabularies of the training text's side information, and itself in their ids."""
    from lm.corpus import Corpus, build_vocabulary
    from lm.side_information import LABELS, NUMBERS

    vocabularies: dict[str, Vocabulary] = {}
    texts: dict[str, SideText] = {}
    for kind, path in train.side.items():
        name = display(train.text)
        if kind in NUMBERS:
            beside = raw, name, recipe.documents, notices
            texts[kind] = side_information.numbered(path, *beside)
            continue
        words, text = side_information.interned(path, kind, raw, name, recipe.documents, notices)
        size = recipe.source_vocabulary or recipe.vocabulary or len(words)
        most = len(words) if kind in LABELS else size
        corpus = Corpus(text.tokens, text.sentences, raw.documents)
        vocabularies[kind] = known.get(kind) or build_vocabulary(words, corpus, most)
        texts[kind] = side_information.renumbered(text, words, vocabularies[kind])
    return vocabularies, texts


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
