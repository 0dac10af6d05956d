"""Texts and the files beside them, as language models read them: what commands on texts share.

Beside a text stands its side information, with as many sentences in as many documents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.notices import Notices
from rerank.options import option, record
from rerank.runs.options import parting_option
from rerank.runs.subwords import TOKENIZER, TOKENIZER_HELP, subwords
from rerank.values import MOST_LINES, TEXT, Whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.side_information import SentenceNumbers, SideText
    from lm.vocabulary import Vocabulary
    from rerank.corpus.documents import Documents
    from rerank.formats.plain_texts import RunningText
    from rerank.formats.translations import Files
    from rerank.scorers.text_models import EvaluationText

STRETCHES = 4  # for each stream, where contexts cross the ends of documents
_PARTED = {  # documents, by the names of `lm.corpus.DOCUMENTS`
    "blank": "part documents with blank lines",
    "equals": "close documents with lines that begin with =",
    "paragraphs": "part documents with blank lines, and paragraphs with lines that are <p>",
}


@record
class TextOptions:
    """How a text becomes the training data of a language model.

    documents: a name of `lm.corpus.DOCUMENTS`. vocabulary, source_vocabulary: the most words, None
    for all, and for as many as `vocabulary`.
    """

    documents: str = parting_option(rare=True)
    unknown: str | None = option(
        "Word of the texts that stands for all unknown words, as <unk> always does; UNK in the "
        "data files of Ji et al. 2016.",
        type=TEXT,
        default=None,
        metavar="WORD",
        rare=True,
    )
    longest: int | None = option(
        "Leave sentences of more than N words out of training [default: keep all].\n\n"
        "Also as context of the next ones; validation has all.",
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
        "Cut documents into passages of N sentences, and predict only the last one of each.\n\n"
        "A shorter rest is left out: training for the choice of next sentences, as in Ghosh "
        "et al. 2016 with N = 4. Perplexities are of the last sentences. Default: predict "
        "all sentences of whole documents.",
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
    tokenizer: str | None = option(
        TOKENIZER_HELP,
        type=TOKENIZER,
        default=None,
        metavar="KIND:SIZE",
    )
    source_tokenizer: str | None = option(
        "Subword units of the source sentences [default: learnt as --tokenizer says].",
        type=TOKENIZER,
        default=None,
        metavar="KIND:SIZE",
        rare=True,
    )
    source_characters: bool = option(
        "Read source sentences as their characters; only for --model attention.\n\n"
        "However they are segmented, but <unk> as one unknown character; without it "
        "attention reads words, and the characters of unknown ones.",
        default=False,
        rare=True,
    )

    @property
    def tokenizers(self) -> dict[str, str]:
        """The tokenizers that are given, by the names of their options."""
        given = {"tokenizer": self.tokenizer, "source_tokenizer": self.source_tokenizer}
        return {name: value for name, value in given.items() if value is not None}


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
    known: Mapping[str, Vocabulary],
    spells: Collection[str],
    streams: int,
    backward: bool | None,
    reverse_documents: bool | None,
    shared: Callable[[Vocabulary], Vocabulary],
) -> TrainingTexts:
    """The texts of a run in the order in which its model reads them.

    known: vocabularies that are not made from the training text, of it and of kinds of side
    information; shared: that of the first of several processes, of one that is learnt;
    spells: kinds whose unknown words are read as their characters (`lm.contexts.Context`);
    streams: documents read in parallel. InputError for files that do not fit each other.
    """
    from lm.corpus import in_reading_order, renumber
    from lm.side_information import NUMBERS, TARGET
    from rerank.corpus.preparation import note_preparation
    from rerank.formats.plain_texts import RunningText

    documents, passages = options.documents, options.passages
    across = options.across_documents
    unknown = None if options.unknown is None else options.unknown.encode()
    text = RunningText(train.text, "training", documents, unknown)
    words, raw = read_text(text, notices, across=across)
    if unknown is not None and unknown not in words:
        raise InputError(
            f"expected the word {options.unknown!r} of --unknown in the training text, found none; "
            "correct it, or leave it out",
            source=display(train.text),
        )
    vocabulary = known.get(TARGET)
    if vocabulary is None and options.tokenizer is None:
        least = options.min_count or 1
        vocabulary = frequent_words(words, raw, options.vocabulary, least, unknown)
    elif vocabulary is None:
        vocabulary = shared(subwords("--tokenizer", str(options.tokenizer), words, raw))
    valid_text = RunningText(valid.text, "evaluation", documents)
    valid_words, held_out = read_text(valid_text, notices, across=across)
    trained = renumber(raw, words, vocabulary)
    note_language(
        *(valid_words, held_out, vocabulary, "the model", notices),
        path=valid.text,
        cure="give a validation text in the language of the training text",
        trained=trained.n_unknown / len(trained.tokens),
    )
    held_out = renumber(held_out, valid_words, vocabulary)
    profiles = {"training sentences": text.profile, "validation sentences": valid_text.profile}
    note_preparation(profiles, notices, source=text.source)
    if raw.n_documents == 1 and not across:
        notices.add("one-document", source=display(train.text), cure=_PARTED[documents])
    vocabularies: dict[str, Vocabulary] = {}
    beside: dict[str, SideText] = {}
    for kind, path in train.side.items():
        name = display(train.text)
        own, beside[kind] = interned(path, kind, raw, name, documents, notices)
        if kind in NUMBERS:
            continue
        vocabularies[kind] = known.get(kind) or _side_vocabulary(
            options, kind, own, beside[kind], spells=kind in spells, shared=shared
        )
        beside[kind] = _numbered_words(own, beside[kind], vocabularies[kind], spells=kind in spells)
    corpus = replace(trained, side=beside)
    held_out = _with_side(held_out, valid, vocabularies, spells, documents, notices)
    if options.longest is not None:
        corpus = corpus.without_longer(options.longest)
        if not corpus.n_sentences:
            raise UsageError(
                f"--longest {options.longest}: all sentences of the training text have more words; "
                "choose a larger number"
            )
    if options.across_documents:
        corpus = corpus.in_stretches(streams * STRETCHES)
        held_out = held_out.in_stretches(1)
    both = [corpus, held_out]
    if passages is not None:
        both = [one.in_passages(passages) for one in both]
        for one, files in zip(both, (train, valid), strict=True):
            if not one.n_sentences:
                raise UsageError(
                    f"--passages {passages}: all documents of {display(files.text)} have fewer "
                    "sentences; choose a smaller number"
                )
    corpus, held_out = (
        in_reading_order(one, backward=backward, reverse_documents=reverse_documents)
        for one in both  # after stretches, which are read in this order, too
    )
    return TrainingTexts(corpus, held_out, vocabulary, vocabularies)


def _side_vocabulary(
    options: TextOptions,
    kind: str,
    words: list[bytes],
    text: SideText,
    *,
    spells: bool,
    shared: Callable[[Vocabulary], Vocabulary],
) -> Vocabulary:
    """The vocabulary of interned side information; spells, shared: as of `training_texts`."""
    from lm.corpus import build_vocabulary, spelled
    from lm.side_information import LABELS

    if kind in LABELS:
        return build_vocabulary(words, text, len(words))
    option = "tokenizer" if options.source_tokenizer is None else "source_tokenizer"
    tokenizer = getattr(options, option)
    if tokenizer is not None:
        return shared(subwords(f"--{option.replace('_', '-')}", tokenizer, words, text))
    size = options.source_vocabulary or options.vocabulary or len(words)
    if spells:
        whole = build_vocabulary(words, text, 0 if options.source_characters else size)
        words, text = spelled(words, text, whole)
    return build_vocabulary(words, text, size)


def frequent_words(
    words: list[bytes], raw: Corpus, most: int | None, least: int, unknown: bytes | None = None
) -> Vocabulary:
    """The vocabulary of an interned training text; UsageError if no word is frequent enough.

    most: words, None for all; least, unknown: as of `lm.corpus.build_vocabulary`.
    """
    from lm.corpus import build_vocabulary

    found = build_vocabulary(words, raw, most or len(words), least=least, unknown=unknown)
    if not found.words:
        raise UsageError(f"--vocab-min-count {least}: no word is so frequent; choose a smaller one")
    return found


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
    from rerank.formats.plain_texts import RunningText
    from rerank.scorers.text_models import EvaluationText

    words, corpus = read_text(RunningText(path, "evaluation", documents), notices)
    return EvaluationText(display(path), words, corpus)


def documents_beside(text: str, docs: FilePath, n_lines: int, notices: Notices) -> Documents:
    """The documents of a text of so many lines, of a file beside it; InputError if it has others.

    docs: as beside k-best lists, with a line for each line of the text.
    """
    from rerank.formats.document_files import documents_of_file

    found = documents_of_file(docs, notices)
    if found.n_sentences != n_lines:
        raise InputError(
            f"expected {found.n_sentences:,} lines, one for each line of {display(docs)}, "
            f"found {n_lines:,}; {found.cure or 'give an id for each line of the text'}",
            source=display(text),
        )
    return found


def interned(
    path: str | Path, kind: str, beside: Corpus, name: str, documents: str, notices: Notices
) -> tuple[list[bytes], SideText]:
    """Distinct words of side information, and its sentences in their indices.

    Of a kind whose sentences are numbers of sentences there are no words. beside: the text, of this
    name in messages, that has the same documents and sentences. InputError if it has not.
    """
    import numpy as np

    from lm.corpus import intern
    from lm.side_information import LABELS, NUMBERS, SideText
    from rerank.formats.plain_texts import RunningText

    if kind in NUMBERS:
        return [], _numbered(path, beside, name, documents, notices)
    lines = RunningText(path, "evaluation", documents).lines
    words, found = intern(
        (partial(read_lines, path) if kind in LABELS else lines)(notices), documents
    )
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


def sentences_of(
    path: str | Path, documents: str, notices: Notices
) -> tuple[list[tuple[int, list[bytes]]], NDArray[np.int64]]:
    """Sentences of a file, each with its line's number, and the bounds (D + 1,) of its documents.

    documents: a name of `lm.corpus.DOCUMENTS`.
    """
    import numpy as np

    from lm.corpus import DOCUMENTS

    found: list[tuple[int, list[bytes]]] = []
    bounds = [0]
    for number, words in enumerate(map(DOCUMENTS[documents], read_lines(path, notices)), 1):
        if words is None:
            bounds.append(len(found))
        else:
            found.append((number, words))
    return found, np.unique([*bounds, len(found)])


def _numbered(
    path: str | Path, beside: Corpus, name: str, documents: str, notices: Notices
) -> SentenceNumbers:
    """Sentences that a text names by their numbers in their documents, from 1; 0 for none.

    Arguments: as of `interned`.
    """
    import numpy as np

    from lm.corpus import Corpus
    from lm.side_information import SentenceNumbers
    from rerank.formats.translations import sentence_number

    found, bounds = sentences_of(path, documents, notices)
    own = Corpus(np.zeros(0, np.int32), np.zeros(len(found) + 1, np.int64), bounds)
    check_shape(own, beside, name, path)
    indices = np.full(own.n_sentences, -1, dtype=np.int64)
    for begin, end in pairwise(bounds.tolist()):
        for i, (line, words) in enumerate(found[begin:end]):
            parent = sentence_number(words, i, end - begin, display(path), line)
            indices[begin + i] = begin + parent - 1 if parent else -1
    return SentenceNumbers.of(indices)


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

    from rerank.scorers.features import UnknownWords

    counts = np.bincount(text.tokens, minlength=len(words)).tolist()
    UnknownWords.of(dict(zip(words, counts, strict=True)), vocabulary).warn_of_language(
        model, notices, unit=unit, cure=cure, source=display(path), trained=trained
    )


def check_shape(found: Corpus, beside: Corpus, name: str, path: str | Path) -> None:
    """InputError for a text that has not the documents and sentences of another one."""
    import numpy as np

    if np.array_equal(found.documents, beside.documents):
        return
    theirs, ours = (
        f"{one.n_sentences:,} sentences in {one.n_documents:,} documents" for one in (beside, found)
    )
    sizes = zip(np.diff(found.documents), np.diff(beside.documents), strict=False)
    odd = [(d, own, other) for d, (own, other) in enumerate(sizes, 1) if own != other]
    first = "".join(
        f"; document {d} has {own:,} sentences, not {other:,}" for d, own, other in odd[:1]
    )
    raise InputError(
        f"expected {theirs} as in {name}, found {ours}; line i must belong to line i of {name}, "
        f"with the same lines between documents{first}",
        source=display(path),
    )


def _numbered_words(
    words: list[bytes], text: SideText, vocabulary: Vocabulary, *, spells: bool
) -> SideText:
    """Interned side information in a vocabulary's ids, its unknown words spelled if asked for."""
    from lm.corpus import renumber, spelled

    if spells:
        words, text = spelled(words, text, vocabulary)
    return renumber(text, words, vocabulary)


def _with_side(
    corpus: Corpus,
    files: TextFiles,
    vocabularies: Mapping[str, Vocabulary],
    spells: Collection[str],
    documents: str,
    notices: Notices,
) -> Corpus:
    """The corpus of a text with its side information, in the ids of vocabularies.

    A warning of source sentences in another language than those of training.
    """
    from rerank.formats.translations import SOURCE

    side: dict[str, SideText] = {}
    for kind, path in files.side.items():
        name = display(files.text)
        words, side[kind] = interned(path, kind, corpus, name, documents, notices)
        if kind == SOURCE:
            own, cure = vocabularies[kind], "give text and source in the languages of the training"
            note_language(
                *(words, side[kind], own, "the model", notices),
                path=path,
                unit="source word",
                cure=cure,
            )
        if kind in vocabularies:
            side[kind] = _numbered_words(
                words, side[kind], vocabularies[kind], spells=kind in spells
            )
    return replace(corpus, side=side)


def encoded_text(
    files: TextFiles,
    saved: SavedModel,
    notices: Notices,
    documents: str = "blank",
    *,
    across: bool = False,
) -> Corpus:
    """A text and its side information in a model's ids, not in its reading order.

    documents, across: as of `read_text`. InputError if the text has no words, or if its side
    information does not fit.
    """
    from rerank.formats.plain_texts import RunningText

    text = RunningText(files.text, "evaluation", documents)
    return encoded(read_text(text, notices, across=across), files, saved, notices, documents)


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
    spells = saved.model.context.spells
    return _with_side(corpus, files, saved.side, spells, documents, notices)
