"""`rerank topics learn` and `label`: topic models of texts, and the topic of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import rerank
from rerank.commands.texts import check_text
from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import InputFiles, digest, read_lines
from rerank.files.outputs import atomic, check_folder, check_outputs
from rerank.files.paths import display
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.corpus import Corpus
    from lm.topics.files import SavedTopics

WORDS_SHOWN = 8  # of each topic


@dataclass(frozen=True, slots=True)
class TopicRecipe:
    """Settings of a topic model: the options of `rerank topics learn`.

    topic_model: a name of `lm.composition.TOPIC_MODELS`; topics_number: topics beside 0, that of
    sentences in which no word counts; vocabulary: most words; documents: of `lm.corpus.DOCUMENTS`.
    """

    topic_model: str = "kmeans"
    topics_number: int = 100
    vocabulary: int = 10_000
    min_count: int = 1
    documents: str = "blank"
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a text: its label, its number of sentences, and its strongest words."""

    label: str
    sentences: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnedTopics:
    """The topics of the text from which they were learned; label 0 is that of no words."""

    topics: tuple[Topic, ...]

    def to_text(self) -> str:
        """A line for each topic, with TABs, after that of the columns."""
        rows = [f"{one.label}\t{one.sentences}\t{' '.join(one.words)}" for one in self.topics]
        return "\n".join(["topic\tsentences\tstrongest words", *rows])

    def to_dict(self) -> dict[str, object]:
        """The topics as JSON values."""
        rows = [
            {"label": one.label, "sentences": one.sentences, "words": list(one.words)}
            for one in self.topics
        ]
        return {"schema": 1, "topics": rows}


def learn_topics(
    recipe: TopicRecipe, text: str | Path, out: Path, *, notices: Notices
) -> LearnedTopics:
    """Learn the topics of a text into the folder `out`; what they are.

    UsageError without scikit-learn, or if the text is too short for so many topics. Memory: that
    of the learner, and 8 (1 + topics) bytes for each word of 1,024 sentences.
    """
    from lm.composition import TOPIC_MODELS, load
    from lm.corpus import build_vocabulary, intern, renumber
    from lm.topics import TopicModel
    from lm.topics.files import SavedTopics

    check_new_folder(out)
    if find_spec("sklearn") is None:
        raise UsageError("topics learn needs scikit-learn: pip install 'rerank-mt[topics]'")
    inputs = InputFiles((text,))
    words, raw = intern(read_lines(text, notices), recipe.documents)
    check_text(raw, text, notices)
    vocabulary = build_vocabulary(words, raw, recipe.vocabulary, least=recipe.min_count)
    if not vocabulary.words:
        raise UsageError(
            f"--vocab-min-count {recipe.min_count}: no word is so frequent; choose a smaller one"
        )
    corpus = renumber(raw, words, vocabulary)
    model = TopicModel(len(vocabulary), recipe.topics_number)
    try:
        model.learn(load(TOPIC_MODELS[recipe.topic_model]), corpus, recipe.seed)
    except ValueError as fault:
        raise UsageError(f"--topics-number {recipe.topics_number}: {fault}") from None
    saved = SavedTopics(model, vocabulary)
    learned = _described(saved, corpus)
    inputs.check()
    data = {"file": Path(text).name}
    data |= {"digest": digest(text)} if Path(text).is_file() else {}
    out.mkdir(parents=True, exist_ok=True)
    about = {"rerank": rerank.__version__, "data": data, "seed": recipe.seed}
    saved.save(out, about | {"topic_model": recipe.topic_model})
    return learned


def _described(saved: SavedTopics, corpus: Corpus) -> LearnedTopics:
    """The topics of the training text, those of no sentence included."""
    import numpy as np

    from lm.topics.files import strongest_words

    model, vocabulary = saved.model, saved.vocabulary
    topics = model.of_corpus(corpus)
    sizes = np.bincount(topics, minlength=1 + model.topics).tolist()
    strongest = [[], *strongest_words(model, corpus, topics, WORDS_SHOWN)]
    return LearnedTopics(
        tuple(
            Topic(str(z), size, tuple(word.decode() for word in vocabulary.decode(ids)))
            for z, (size, ids) in enumerate(zip(sizes, strongest, strict=True))
        )
    )


def label_topics(
    model: Path,
    text: str | Path,
    out: str | Path = "-",
    *,
    notices: Notices,
    documents: str = "blank",
    docs: str | Path | None = None,
) -> int:
    """Write the topic of each sentence of a text, a number on its line; the number of sentences.

    documents: of `lm.corpus.DOCUMENTS`; lines that part documents stay as they are. docs: file
    with a document id for each line, as beside k-best lists, where every line is a sentence.
    """
    from lm.corpus import DOCUMENTS, Corpus
    from lm.vocabulary import words_of

    if docs is not None and documents != "blank":
        raise UsageError(
            f"--documents {documents}: with --docs every line is a sentence; leave one of them out"
        )
    check_outputs([out], [text, *([docs] if docs else [])])
    saved = open_topics(model)
    lines = list(read_lines(text, notices))
    if docs is not None:
        _check_lines(Documents.from_file(docs, notices), docs, lines, text)
        parsed: list[list[bytes] | None] = [words_of(line) for line in lines]
    else:
        parsed = list(DOCUMENTS[documents](lines))
    sentences = [saved.vocabulary.encode(words) for words in parsed if words is not None]
    labels = iter(saved.model.of_corpus(Corpus.of([sentences])).tolist())
    with atomic(out) as file:
        for line, words in zip(lines, parsed, strict=True):
            label = line.strip(b" ") if words is None else str(next(labels)).encode()
            file.write(label + b"\n")
    return len(sentences)


def _check_lines(
    documents: Documents, docs: str | Path, lines: Sequence[bytes], text: str | Path
) -> None:
    """InputError unless there is a document id for each line."""
    if documents.n_lines != len(lines):
        raise InputError(
            f"expected {documents.n_lines:,} lines, one for each line of {display(docs)}, "
            f"found {len(lines):,}; {documents.cure or 'give an id for each line of the text'}",
            source=display(text),
        )


def open_topics(folder: Path) -> SavedTopics:
    """The topic model of a folder; InputError if it is not valid."""
    from lm.shards import ModelError
    from lm.topics.files import SavedTopics

    try:
        return SavedTopics.load(folder)
    except ModelError as fault:
        raise InputError(str(fault)) from None


def check_new_folder(out: Path) -> None:
    """UsageError for a folder that cannot be written, or that is not empty."""
    check_folder(out, str(out))
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out}: not empty; name a new folder")
