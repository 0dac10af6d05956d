"""Texts and the files beside them, as language models read them: what commands on texts share.

Beside a text stands its side information, with as many sentences in as many documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from rerank.commands.run import side_option
from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.notices import Notices
from rerank.options import Given, given, option, record
from rerank.registry import SIDE_INFORMATION
from rerank.values import MOST_LINES, TEXT, Whole

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.side_information import SentenceNumbers, SideText
    from lm.vocabulary import Vocabulary
    from rerank.corpus.documents import Documents
    from rerank.formats.side_information import Files

NOTHING: Mapping[str, Vocabulary] = MappingProxyType({})
STRETCHES = 4  # for each stream, where contexts cross the ends of documents
_PARTED = {  # documents, by the names of `lm.corpus.DOCUMENTS`
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
    "paragraphs": "part documents with blank lines, and paragraphs with lines that are <p>",
}


def documents_option(*, rare: bool = False) -> Any:
    """`--documents`: the field of a record for what parts the documents of its texts."""
    return option(
        "What parts documents: blank lines; or lines whose first character is =, which close one, "
        "as in the data files of Ji et al. 2016 (a blank line is an empty sentence there); or both "
        "blank lines and lines that are <p>, so that every paragraph is a document, as for the "
        "contextual LSTMs (clstm-paraseg and others).",
        type=click.Choice(tuple(_PARTED)),
        default="blank",
        rare=rare,
    )


def side_files(of: str, prefix: str = "") -> type[Given]:
    """A record of the files of side information beside a text, of names after a prefix.

    of: what has a line in the files.
    """
    kinds = {
        f"{prefix}{kind}".replace("-", "_"): side_option(
            kind, of, prefix=prefix, rare=kind != "source"
        )
        for kind in SIDE_INFORMATION
    }
    return given("SideFiles", kinds)


@record
class TextOptions:
    """How a text becomes the training data of a language model.

    documents: a name of `lm.corpus.DOCUMENTS`. vocabulary, source_vocabulary: the most words, None
    for all, and for as many as `vocabulary`.
    """

    documents: str = documents_option(rare=True)
    unknown: str | None = option(
        "Word of the texts that stands for all unknown words, as <unk> always does; UNK in the "
        "data files of Ji et al. 2016.",
        type=TEXT,
        default=None,
        metavar="WORD",
        rare=True,
    )
    longest: int | None = option(
        "Leave sentences of more than N words out of training, also as context of the next ones; "
        "validation has all [default: keep all].",
        type=Whole(),
        default=None,
        rare=True,
    )
    across_documents: bool = option(
        "Let contexts cross the ends of documents: each text is one stream, the training text in "
        "4 x --streams stretches.",
        default=False,
        rare=True,
    )
    passages: int | None = option(
        "Cut documents into passages of N sentences, a shorter rest left out, and predict only the "
        "last sentence of each, given the others: training for the choice of next sentences, as in "
        "Ghosh et al. 2016 with N = 4. Perplexities are of the last sentences [default: predict "
        "all sentences of whole documents].",
        type=Whole(2),
        default=None,
        rare=True,
    )
    vocabulary: int | None = option(
        "Vocabulary size: the most frequent words of the training text [default: 10000].",
        "--vocab",
        type=Whole(most=MOST_LINES),
        default=None,
    )
    min_count: int | None = option(
        "Number of times that a word of the vocabulary is in the training text [default: 1].",
        "--vocab-min-count",
        type=Whole(most=MOST_LINES),
        default=None,
        rare=True,
    )
    source_vocabulary: int | None = option(
        "Vocabulary size of the source sentences [default: that of --vocab].",
        "--source-vocab",
        type=Whole(most=MOST_LINES),
        default=None,
        rare=True,
    )


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
    options: TextOptions,
    train: TextFiles,
    valid: TextFiles,
    notices: Notices,
    *,
    known: Mapping[str, Vocabulary] = NOTHING,
    streams: int = 1,
    backward: bool | None = None,
    reverse_documents: bool | None = None,
) -> TrainingTexts:
    """The texts of a run in the order in which its model reads them.

    known: vocabularies of kinds of side information that are not made from the training text;
    streams: documents read in parallel. InputError for files that do not fit each other.
    """
    from lm.corpus import encode, in_reading_order, intern, renumber

    words, raw = intern(read_lines(train.text, notices), options.documents)
    check_text(raw, train.text, notices)
    vocabulary = _vocabulary(options, words, raw, train.text)
    held_out = encode(read_lines(valid.text, notices), vocabulary, options.documents)
    check_text(held_out, valid.text, notices)
    if raw.n_documents == 1 and not options.across_documents:
        notices.add(
            f"training text is one document; {_PARTED[options.documents]}",
            source=display(train.text),
        )
    side, own = _side_information(options, train, raw, notices, known)
    name, others = display(valid.text), (options.documents, notices)
    beside = encoded(valid.side, side, held_out, name, *others)
    corpus = replace(renumber(raw, words, vocabulary), side=own)
    held_out = replace(held_out, side=beside)
    if options.longest is not None:
        corpus = corpus.without_longer(options.longest)
        if not corpus.n_sentences:
            raise UsageError(
                f"--longest {options.longest}: all sentences of the training text have more words; "
                "choose a larger number"
            )
    if options.across_documents:
        stretches = streams * STRETCHES
        corpus, held_out = corpus.in_stretches(stretches), held_out.in_stretches(1)
    if options.passages is not None:
        corpus = _in_passages(corpus, options.passages, train.text)
        held_out = _in_passages(held_out, options.passages, valid.text)
    corpus, held_out = (
        in_reading_order(one, backward=backward, reverse_documents=reverse_documents)
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


def _vocabulary(
    options: TextOptions, words: list[bytes], raw: Corpus, path: str | Path
) -> Vocabulary:
    """The vocabulary of an interned training text."""
    from lm.corpus import build_vocabulary

    unknown = None if options.unknown is None else options.unknown.encode()
    if unknown is not None and unknown not in words:
        raise InputError(
            f"expected the word {options.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=display(path),
        )
    least = options.min_count or 1
    size = options.vocabulary or len(words)
    vocabulary = build_vocabulary(words, raw, size, least=least, unknown=unknown)
    if not vocabulary.words:
        raise UsageError(f"--vocab-min-count {least}: no word is so frequent; choose a smaller one")
    return vocabulary


def _side_information(
    options: TextOptions,
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
            beside = raw, name, options.documents, notices
            texts[kind] = numbered(path, *beside)
            continue
        words, text = interned(path, kind, raw, name, options.documents, notices)
        size = options.source_vocabulary or options.vocabulary or len(words)
        most = len(words) if kind in LABELS else size
        corpus = Corpus(text.tokens, text.sentences, raw.documents)
        vocabularies[kind] = known.get(kind) or build_vocabulary(words, corpus, most)
        texts[kind] = renumbered(text, words, vocabularies[kind])
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


def documents_beside(text: str, docs: FilePath, n_lines: int, notices: Notices) -> Documents:
    """The documents of a text of so many lines, of a file beside it; InputError if it has others.

    docs: as beside k-best lists, with a line for each line of the text.
    """
    from rerank.formats.document_files import documents_of_file

    found = documents_of_file(docs, notices)
    if found.n_lines != n_lines:
        raise InputError(
            f"expected {found.n_lines:,} lines, one for each line of {display(docs)}, "
            f"found {n_lines:,}; {found.cure or 'give an id for each line of the text'}",
            source=display(text),
        )
    return found


def interned(
    path: str | Path, kind: str, beside: Corpus, name: str, documents: str, notices: Notices
) -> tuple[list[bytes], SideText]:
    """Distinct words of side information, and its sentences in their indices.

    beside: the text, of this name in messages, that has the same documents and sentences.
    """
    import numpy as np

    from lm.corpus import intern
    from lm.side_information import LABELS, SideText

    words, found = intern(read_lines(path, notices), documents)
    check_shape(found, beside, name, path)
    lengths = np.diff(found.sentences)
    if kind in LABELS and (lengths != 1).any():
        n = int(np.flatnonzero(lengths != 1)[0])
        raise InputError(
            f"expected one label for each sentence, found {int(lengths[n])} words for sentence "
            f"{n + 1}; write a label without spaces on its line",
            source=display(path),
        )
    return words, SideText(found.tokens, found.sentences)


def numbered(
    path: str | Path, beside: Corpus, name: str, documents: str, notices: Notices
) -> SentenceNumbers:
    """Sentences that a text names by their numbers in their documents, from 1; 0 for none.

    Arguments: as of `interned`.
    """
    import numpy as np

    from lm.corpus import DOCUMENTS, Corpus
    from lm.side_information import SentenceNumbers
    from rerank.formats.side_information import sentence_number

    found: list[list[tuple[int, list[bytes]]]] = [[]]
    for n, words in enumerate(DOCUMENTS[documents](read_lines(path, notices)), 1):
        if words is None:
            found.append([])
        else:
            found[-1].append((n, words))
    sizes = np.array([len(lines) for lines in found if lines], dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    own = Corpus(np.zeros(0, np.int32), np.zeros(bounds[-1] + 1, np.int64), bounds)
    check_shape(own, beside, name, path)
    indices = np.full(own.n_sentences, -1, dtype=np.int64)
    for begin, lines in zip(bounds.tolist(), filter(None, found), strict=False):
        for i, (n, words) in enumerate(lines):
            parent = sentence_number(words, i, len(lines), display(path), n)
            indices[begin + i] = begin + parent - 1 if parent else -1
    return SentenceNumbers.of(indices)


def _shape(corpus: Corpus) -> str:
    return f"{corpus.n_sentences:,} sentences in {corpus.n_documents:,} documents"


def check_shape(found: Corpus, beside: Corpus, name: str, path: str | Path) -> None:
    """InputError for a text that has not the documents and sentences of another one."""
    import numpy as np

    if not np.array_equal(found.documents, beside.documents):
        raise InputError(
            f"expected {_shape(beside)} as in {name}, found {_shape(found)}; line i must "
            f"belong to line i of {name}, with the same lines between documents"
            + _first_difference(found, beside),
            source=display(path),
        )


def _first_difference(found: Corpus, beside: Corpus) -> str:
    """`; document 3 has 12 sentences, not 14`, of the first document that differs, if any."""
    import numpy as np

    both = [np.diff(one.documents) for one in (found, beside)]
    n = min(map(len, both))
    odd = np.flatnonzero(both[0][:n] != both[1][:n])
    if not odd.size:
        return ""
    d = int(odd[0])
    return f"; document {d + 1} has {both[0][d]:,} sentences, not {both[1][d]:,}"


def encoded(
    paths: Files,
    vocabularies: Mapping[str, Vocabulary],
    beside: Corpus,
    name: str,
    documents: str,
    notices: Notices,
) -> dict[str, SideText]:
    """Side information in the ids of vocabularies, of a text that has these sentences."""
    from lm.side_information import NUMBERS

    found: dict[str, SideText] = {}
    for kind, path in paths.items():
        if kind in NUMBERS:
            found[kind] = numbered(path, beside, name, documents, notices)
            continue
        words, text = interned(path, kind, beside, name, documents, notices)
        found[kind] = renumbered(text, words, vocabularies[kind])
    return found


def renumbered(text: SideText, words: Sequence[bytes], vocabulary: Vocabulary) -> SideText:
    """Interned side information in a vocabulary's ids."""
    import numpy as np

    from lm.side_information import SideText

    ids = np.asarray(vocabulary.encode(words), dtype=np.int32)
    return SideText(ids[text.tokens] if len(ids) else text.tokens, text.sentences)


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
