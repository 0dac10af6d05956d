"""Texts and the files beside them, as language models read them: what commands on texts share.

Beside a text stands its side information, with as many sentences in as many documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.document_files import documents_of_file
from rerank.formats.plain_texts import RunningText
from rerank.notices import Notices
from rerank.options import flag, option, optional, record
from rerank.values import FILE, MOST, MOST_LINES, TEXT, ParsedType, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.corpus import Corpus
    from lm.folders import SavedModel
    from lm.side_information import SideText
    from lm.subwords import SubwordVocabulary
    from lm.vocabulary import Vocabulary
    from rerank.corpus.documents import Documents
    from rerank.formats.translations import Files
    from rerank.scorers.text_models import EvaluationText

SENTENCEPIECE = "sentencepiece"
_LEARNT = re.compile("(unigram|bpe):([1-9][0-9]{2,6})")


class TokenizerName(ParsedType):
    """`unigram:SIZE` or `bpe:SIZE`, learnt from a text, or `sentencepiece:FILE`, as it is given."""

    name = "tokenizer"

    def parsed(self, value: str) -> str:
        """The value as it is given."""
        kind, _, rest = value.partition(":")
        learnt = _LEARNT.fullmatch(value)
        if kind == SENTENCEPIECE and rest:
            FILE.parsed(rest)
        elif learnt is None or not 256 < int(learnt[2]) <= MOST:
            raise ValueError(
                f"expected unigram:SIZE or bpe:SIZE with more than 256 and at most {MOST:,} "
                f"pieces, or sentencepiece:FILE, found {value!r:.60}"
            )
        return value


TOKENIZER = TokenizerName()
TOKENIZER_HELP = (
    "Subword units in place of words: unigram:SIZE, bpe:SIZE, or sentencepiece:FILE.\n\n"
    "unigram and bpe are learnt from the training text, 256 pieces are bytes, so that no "
    "word is unknown; FILE is a .model of SentencePiece. Numbers of words in other options "
    "then count pieces."
)


def parting_option(*, rare: bool = False) -> Any:
    """`--documents`: the field of a record for what parts the documents of a text."""
    return option(
        "What parts documents: blank lines, or lines that begin with =, or blank lines and "
        "<p>.\n\n"
        "equals: lines whose first character is = close a document, as in the data files of "
        "Ji et al. 2016 (a blank line is an empty sentence there). paragraphs: both blank "
        "lines and lines that are <p>, so that every paragraph is a document, as for the "
        "contextual LSTMs (clstm-paraseg and others).",
        "--documents",
        type=click.Choice(["blank", "equals", "paragraphs"]),  # names of `lm.corpus.DOCUMENTS`
        default="blank",
        rare=rare,
    )


@record
class TextOptions:
    """How a text becomes the training data of a language model.

    documents: a name of `lm.corpus.DOCUMENTS`. vocabulary, source_vocabulary: the most words, None
    for all, and for as many as `vocabulary`.
    """

    documents: str = parting_option(rare=True)
    unknown: str | None = optional(
        "Word of the texts that stands for all unknown words, as <unk> always does; UNK in the "
        "data files of Ji et al. 2016.",
        type=TEXT,
        metavar="WORD",
        rare=True,
    )
    longest: int | None = optional(
        "Leave sentences of more than N words out of training [default: keep all].\n\n"
        "Also as context of the next ones; validation has all.",
        type=Whole(),
        rare=True,
    )
    across_documents: bool = flag(
        "Let contexts cross the ends of documents: each text is one stream, the training text in "
        "4 x --streams stretches.",
        rare=True,
    )
    passages: int | None = optional(
        "Cut documents into passages of N sentences, and predict only the last one of each.\n\n"
        "A shorter rest is left out: training for the choice of next sentences, as in Ghosh "
        "et al. 2016 with N = 4. Perplexities are of the last sentences. Default: predict "
        "all sentences of whole documents.",
        type=Whole(2),
        rare=True,
    )
    vocabulary: int | None = optional(
        "Vocabulary size: the most frequent words of the training text [default: 10000].",
        "--vocab",
        type=Whole(most=MOST_LINES),
    )
    min_count: int | None = optional(
        "Number of times that a word of the vocabulary is in the training text [default: 1].",
        "--vocab-min-count",
        type=Whole(most=MOST_LINES),
        rare=True,
    )
    source_vocabulary: int | None = optional(
        "Vocabulary size of the source sentences [default: that of --vocab].",
        "--source-vocab",
        type=Whole(most=MOST_LINES),
        rare=True,
    )
    tokenizer: str | None = optional(TOKENIZER_HELP, type=TOKENIZER, metavar="KIND:SIZE")
    source_tokenizer: str | None = optional(
        "Subword units of the source sentences [default: learnt as --tokenizer says].",
        type=TOKENIZER,
        metavar="KIND:SIZE",
        rare=True,
    )
    source_characters: bool = flag(
        "Read source sentences as their characters; only for --model attention.\n\n"
        "However they are segmented, but <unk> as one unknown character; without it "
        "attention reads words, and the characters of unknown ones.",
        rare=True,
    )

    @property
    def unknown_word(self) -> bytes | None:
        """The word of --unknown, as texts have it."""
        return None if self.unknown is None else self.unknown.encode()

    @property
    def tokenizers(self) -> dict[str, str]:
        """The tokenizers that are given, by the names of their options."""
        names = ("tokenizer", "source_tokenizer")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """Vocabularies of a training text and of its side information.

    known: those that are not made from the texts; spells: kinds whose unknown words are read as
    their characters (`lm.contexts.Context`); shared: of several processes the vocabulary of the
    first, of one that is learnt; of_kinds: those of the side information that was read.
    """

    options: TextOptions
    known: Mapping[str, Vocabulary]
    spells: Collection[str]
    shared: Callable[[Vocabulary], Vocabulary]
    of_kinds: dict[str, Vocabulary] = field(default_factory=dict)

    def of_text(
        self, text: RunningText, words: list[bytes], raw: Corpus, notices: Notices
    ) -> Vocabulary:
        """The vocabulary of an interned training text."""
        from lm.side_information import TARGET

        options, vocabulary = self.options, self.known.get(TARGET)
        if vocabulary is not None:
            return vocabulary
        if options.tokenizer is not None:
            text.check_pieces(notices)
            return self.shared(subwords("--tokenizer", options.tokenizer, words, raw))
        least = options.min_count or 1
        return frequent_words(words, raw, options.vocabulary, least, options.unknown_word)

    def of_side(self, kind: str, words: list[bytes], text: SideText) -> Vocabulary:
        """The vocabulary of a kind of side information, made from the interned training text."""
        if kind not in self.of_kinds:
            self.of_kinds[kind] = self.known.get(kind) or self._made(kind, words, text)
        return self.of_kinds[kind]

    def _made(self, kind: str, words: list[bytes], text: SideText) -> Vocabulary:
        """The vocabulary of interned side information."""
        from lm.corpus import build_vocabulary, spelled
        from lm.side_information import LABELS

        if kind in LABELS:
            return build_vocabulary(words, text, len(words))
        options = self.options
        option = "tokenizer" if options.source_tokenizer is None else "source_tokenizer"
        tokenizer = getattr(options, option)
        if tokenizer is not None:
            return self.shared(subwords(f"--{option.replace('_', '-')}", tokenizer, words, text))
        size = options.source_vocabulary or options.vocabulary or len(words)
        if kind in self.spells:
            whole = build_vocabulary(words, text, 0 if options.source_characters else size)
            words, text = spelled(words, text, whole)
        return build_vocabulary(words, text, size)


@dataclass(frozen=True, slots=True, eq=False)
class TextFiles:
    """A training or validation text, and the files of its side information by kind."""

    text: str | Path
    side: Files = field(default_factory=dict)

    @property
    def all(self) -> tuple[str | Path, ...]:
        """All of the files."""
        return (self.text, *self.side.values())

    def exchanged(self) -> TextFiles:
        """The source as the text, and the text as its source: what a channel is trained on."""
        return TextFiles(self.side["source"], {**self.side, "source": self.text})


def tokenizer_files(tokenizers: Iterable[str]) -> list[str]:
    """The files of those tokenizers that are `sentencepiece:FILE`."""
    parts = (tokenizer.partition(":") for tokenizer in tokenizers)
    return [rest for kind, _, rest in parts if kind == SENTENCEPIECE]


def check_package(option: str, tokenizer: str) -> None:
    """UsageError if pieces are to be learnt without the package that does it."""
    if not tokenizer_files([tokenizer]) and find_spec("tokenizers") is None:
        raise UsageError(
            f"{option} {tokenizer}: to learn subword units needs the package tokenizers: pip "
            "install 'rerank-mt[subwords]'; a file, sentencepiece:FILE, needs none"
        )


def subwords(option: str, tokenizer: str, words: list[bytes], text: SideText) -> SubwordVocabulary:
    """The pieces of a tokenizer for an interned text, most frequent first.

    option: that names it, for messages. InputError for a file that is not of SentencePiece,
    UsageError for more or fewer pieces than the text allows.
    """
    import numpy as np

    from lm.subwords import MOST_BYTES, SubwordError, learn, read_pieces

    counts = np.bincount(text.tokens, minlength=len(words)).tolist()
    frequencies = dict(zip(words, counts, strict=True))
    for path in tokenizer_files([tokenizer]):
        try:
            with open(path, "rb") as file:
                return read_pieces(file.read(MOST_BYTES), frequencies)
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise InputError(f"cannot be read: {reason}", source=display(path)) from None
        except SubwordError as fault:
            raise InputError(str(fault), source=display(path)) from None
    kind, _, size = tokenizer.partition(":")
    try:
        return learn(kind, int(size), frequencies)
    except SubwordError as fault:
        raise UsageError(f"{option} {tokenizer}: {fault}") from None


def frequent_words(
    words: list[bytes], raw: Corpus, most: int | None, least: int, unknown: bytes | None = None
) -> Vocabulary:
    """The vocabulary of an interned training text; UsageError if no word is frequent enough.

    most: words, None for all; least, unknown: as of `lm.corpus.build_vocabulary`.
    """
    from lm.corpus import build_vocabulary

    vocabulary = build_vocabulary(words, raw, most or len(words), least=least, unknown=unknown)
    if not vocabulary.words:
        raise UsageError(
            f"--vocab-min-count {least}: no word is so frequent; choose a smaller number"
        )
    return vocabulary


def counted_words(corpus: Corpus) -> str:
    """The number of words of a text, and how many are unknown, or how many pieces they have."""
    n = len(corpus.tokens)
    if corpus.words is None:
        return f"{n:,} words ({corpus.n_unknown / n:.2%} outside the vocabulary)"
    words = int(corpus.words.sum())
    return f"{words:,} words in {n:,} pieces ({n / words:.2f} a word)"


def read_text(
    text: RunningText, notices: Notices, *, across: bool = False
) -> tuple[list[bytes], Corpus]:
    """Distinct words of a text, and the corpus in their indices; notices of what is no sentence.

    across: whether contexts cross the ends of documents. InputError for a text without words.
    """
    import numpy as np

    from lm.corpus import intern

    words, corpus = intern(text.lines(notices), text.documents)
    if not len(corpus.tokens):
        raise InputError(
            "expected one sentence per line, found no words; is this the right file?",
            source=text.source,
            line=1,
        )
    if not across:
        alone = int(np.count_nonzero(np.diff(corpus.documents) == 1))
        text.check_documents(corpus.n_documents, alone, notices)
    if empty := int(np.count_nonzero(np.diff(corpus.sentences) == 0)):
        notices.add("blank-sentence", source=text.source, count=empty, asked=True)
    return words, corpus


def evaluation_text(path: FilePath, documents: str, notices: Notices) -> EvaluationText:
    """A text that models are evaluated on, whose documents are parted as `documents` says."""
    from rerank.scorers.text_models import EvaluationText

    words, corpus = read_text(RunningText(path, "evaluation", documents), notices)
    return EvaluationText(display(path), words, corpus)


def documents_beside(text: str, docs: FilePath, n_lines: int, notices: Notices) -> Documents:
    """The documents of a text of so many lines, of a file beside it; InputError if it has others.

    docs: as beside k-best lists, with a line for each line of the text.
    """
    documents = documents_of_file(docs, notices)
    if documents.n_sentences != n_lines:
        raise InputError(
            f"expected {documents.n_sentences:,} lines, one for each line of {display(docs)}, "
            f"found {n_lines:,}; {documents.cure or 'give an id for each line of the text'}",
            source=display(text),
        )
    return documents


def interned(
    path: str | Path, kind: str, beside: Corpus, name: str, documents: str, notices: Notices
) -> tuple[list[bytes], SideText]:
    """Distinct words of side information, and its sentences in their indices.

    Of a kind whose sentences are numbers of sentences in their documents, from 1 and 0 for none,
    there are no words. beside: the text, of this name in messages, that has the same documents and
    sentences. InputError if it has not.
    """
    import numpy as np

    from lm.corpus import Corpus, intern
    from lm.side_information import LABELS, NUMBERS, SentenceNumbers, SideText
    from rerank.formats.translations import sentence_number

    if kind in NUMBERS:
        sentences, bounds = sentences_of(path, documents, notices)
        shape = Corpus(np.zeros(0, np.int32), np.zeros(len(sentences) + 1, np.int64), bounds)
        check_shape(shape, beside, name, path)
        indices = np.full(shape.n_sentences, -1, dtype=np.int64)
        for begin, end in pairwise(bounds.tolist()):
            for i, (line, numbers) in enumerate(sentences[begin:end]):
                parent = sentence_number(numbers, i, end - begin, display(path), line)
                indices[begin + i] = begin + parent - 1 if parent else -1
        return [], SentenceNumbers.of(indices)
    lines = RunningText(path, "evaluation", documents).lines
    words, text = intern(
        (partial(read_lines, path) if kind in LABELS else lines)(notices), documents
    )
    check_shape(text, beside, name, path)
    lengths = np.diff(text.sentences)
    if kind in LABELS and (lengths != 1).any():
        n = int(np.flatnonzero(lengths != 1)[0])
        raise InputError(
            f"expected one label for each sentence, found {int(lengths[n])} words for sentence "
            f"{n + 1}; write a label without spaces on its line",
            source=display(path),
        )
    return words, SideText(text.tokens, text.sentences)


def sentences_of(
    path: str | Path, documents: str, notices: Notices
) -> tuple[list[tuple[int, list[bytes]]], NDArray[np.int64]]:
    """Sentences of a file, each with its line's number, and the bounds (D + 1,) of its documents.

    documents: a name of `lm.corpus.DOCUMENTS`.
    """
    import numpy as np

    from lm.corpus import DOCUMENTS

    sentences: list[tuple[int, list[bytes]]] = []
    bounds = [0]
    for number, words in enumerate(map(DOCUMENTS[documents], read_lines(path, notices)), 1):
        if words is None:
            bounds.append(len(sentences))
        else:
            sentences.append((number, words))
    return sentences, np.unique([*bounds, len(sentences)])


def note_language(
    words: list[bytes],
    text: SideText,
    vocabulary: Vocabulary,
    model: str,
    notices: Notices,
    *,
    path: str | Path,
    unit: str = "word",
    cure: str = "",
    trained: float = 0.0,
) -> None:
    """A warning if most words of an interned text are unknown to a model.

    unit, cure, trained: as of `UnknownWords.warn_of_language`.
    """
    import numpy as np

    from rerank.scorers.unknown_words import UnknownWords

    counts = np.bincount(text.tokens, minlength=len(words)).tolist()
    UnknownWords.of(dict(zip(words, counts, strict=True)), vocabulary).warn_of_language(
        model, notices, unit=unit, cure=cure, source=display(path), trained=trained
    )


def check_shape(text: Corpus, beside: Corpus, name: str, path: str | Path) -> None:
    """InputError for a text that has not the documents and sentences of another one."""
    import numpy as np

    if np.array_equal(text.documents, beside.documents):
        return
    expected, shape = (
        f"{corpus.n_sentences:,} sentences in {corpus.n_documents:,} documents"
        for corpus in (beside, text)
    )
    sizes = zip(np.diff(text.documents), np.diff(beside.documents), strict=False)
    differing = (
        f"; document {d} has {size:,} sentences, not {other:,}"
        for d, (size, other) in enumerate(sizes, 1)
        if size != other
    )
    raise InputError(
        f"expected {expected} as in {name}, found {shape}; line i must belong to line i of {name}, "
        f"with the same lines between documents{next(differing, '')}",
        source=display(path),
    )


def with_side(
    corpus: Corpus,
    files: TextFiles,
    vocabulary_of: Callable[[str, list[bytes], SideText], Vocabulary],
    spells: Collection[str],
    documents: str,
    notices: Notices,
) -> Corpus:
    """The corpus of a text with its side information, in the ids of vocabularies.

    vocabulary_of: that of a kind, of interned side information; spells: kinds whose
    unknown words are read as their characters (`lm.contexts.Context`). A warning of source
    sentences in another language than that of their vocabulary.
    """
    from lm.corpus import renumber, spelled
    from lm.side_information import NUMBERS
    from rerank.formats.translations import SOURCE

    side: dict[str, SideText] = {}
    for kind, path in files.side.items():
        words, text = interned(path, kind, corpus, display(files.text), documents, notices)
        if kind not in NUMBERS:
            vocabulary = vocabulary_of(kind, words, text)
            if kind == SOURCE:
                note_language(
                    *(words, text, vocabulary, "the model", notices),
                    path=path,
                    unit="source word",
                    cure="give text and source in the languages of the training",
                )
            if kind in spells:
                words, text = spelled(words, text, vocabulary)
            text = renumber(text, words, vocabulary)
        side[kind] = text
    return replace(corpus, side=side)


def encoded(
    read: tuple[list[bytes], Corpus],
    files: TextFiles,
    saved: SavedModel,
    notices: Notices,
    documents: str = "blank",
) -> Corpus:
    """An interned text and its side information in a model's ids, not in its reading order."""
    from lm.corpus import renumber

    words, corpus = read
    share = saved.about.get("oov_rate", 0.0)
    trained = float(share) if isinstance(share, float | int) else 0.0
    known = saved.vocabulary
    note_language(words, corpus, known, "the model", notices, path=files.text, trained=trained)
    corpus = renumber(corpus, words, known)
    side, spells = saved.side, saved.model.context.spells
    return with_side(corpus, files, lambda kind, *_: side[kind], spells, documents, notices)
