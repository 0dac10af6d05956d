"""`rerank topics`: topic models of texts, and the topic of each sentence of a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from rerank.corpus.reading import DocumentOptions
from rerank.errors import UsageError
from rerank.files.lines import InputFiles, digest, read_lines
from rerank.files.outputs import atomic, check_new_folder, check_outputs
from rerank.files.signature import __version__
from rerank.formats.plain_texts import RunningText
from rerank.notices import Notices
from rerank.options import Command, argument, option, part, record
from rerank.registry import attribute
from rerank.runs.options import Messages, form_option, printed
from rerank.runs.texts import documents_beside, frequent_words, parting_option, read_text
from rerank.scorers.models import valid_files
from rerank.table import Column, Table
from rerank.values import FILE, FOLDER, MOST_LINES, Whole

MOST_TOPICS = 1 << 16
WORDS_SHOWN = 8  # of each topic


@record
class TopicLearnOptions:
    """Options of `rerank topics learn`."""

    text: str = argument("TEXT", type=FILE)
    topic_model: str = option(
        "kmeans or lda, latent Dirichlet allocation; both need the extra `topics`.\n\n"
        "kmeans clusters TF-IDF vectors in a latent semantic space; both learn from "
        "stretches of ten sentences. The extra is scikit-learn; topics label does not need "
        "it.",
        type=click.Choice(list(attribute("lm.composition:TOPIC_MODELS"))),
        default="kmeans",
    )
    topics_number: int = option("Number of topics.", type=Whole(1, MOST_TOPICS), default=100)
    vocabulary: int = option(
        "Vocabulary size, in words.", "--vocab", type=Whole(1, MOST_LINES), default=10_000
    )
    min_count: int = option(
        "Number of times that a word of the vocabulary is in TEXT.",
        "--vocab-min-count",
        type=Whole(1, MOST_LINES),
        default=1,
    )
    seed: int = option("Random seed.", type=Whole(0, 2**31 - 1), default=1)
    parting: str = parting_option()
    out: Path = option("New folder for the topic model.", type=FOLDER, metavar="DIR")
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@record
class TopicLabelOptions:
    """Options of `rerank topics label`."""

    model: Path = option("Topic model made by rerank topics learn.", type=FOLDER, metavar="DIR")
    text: str = argument("TEXT", type=FILE)
    parting: str = parting_option()
    documents: DocumentOptions = part(DocumentOptions, without={"no_docs", "allow_interleaved"})
    out: str = option("Output; - is standard output.", type=FILE, default="-")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def learn(options: TopicLearnOptions, notices: Notices) -> LearnedTopics:
    """Learn the topics of TEXT, and print the words of each that are the strongest in it.

    TEXT has a sentence per line, documents parted as --documents says. Topic 0 is that of
    sentences without a word that counts.

    Example:
      rerank topics learn train.en --topics-number 50 --out topics.model
    """
    import numpy as np

    from lm.composition import TOPIC_MODELS, load
    from lm.contexts.topics import SavedTopics, TopicModel, strongest_words
    from lm.corpus import renumber

    text, out = options.text, options.out
    check_new_folder(out)
    if find_spec("sklearn") is None:
        raise UsageError("topics learn needs scikit-learn: pip install 'rerank-mt[topics]'")
    inputs = InputFiles((text,))
    words, raw = read_text(RunningText(text, "evaluation", options.parting), notices, across=True)
    vocabulary = frequent_words(words, raw, options.vocabulary, options.min_count)
    corpus = renumber(raw, words, vocabulary)
    model = TopicModel(len(vocabulary), options.topics_number)
    try:
        model.learn(load(TOPIC_MODELS[options.topic_model]), corpus, options.seed)
    except ValueError as fault:
        raise UsageError(f"--topics-number {options.topics_number}: {fault}") from None
    topics = model.of_corpus(corpus)
    sizes = np.bincount(topics, minlength=1 + model.topics).tolist()
    strongest = [[], *strongest_words(model, corpus, topics, WORDS_SHOWN)]
    learned = LearnedTopics(
        tuple(
            Topic(str(z), size, tuple(word.decode() for word in vocabulary.decode(ids)))
            for z, (size, ids) in enumerate(zip(sizes, strongest, strict=True))
        )
    )
    inputs.check()
    data = {"file": Path(text).name}
    data |= {"digest": digest(text)} if Path(text).is_file() else {}
    out.mkdir(parents=True, exist_ok=True)
    about = {"rerank": __version__, "data": data, "seed": options.seed}
    SavedTopics(model, vocabulary).save(out, about | {"topic_model": options.topic_model})
    return learned


@printed
def label(options: TopicLabelOptions, notices: Notices) -> str:
    """Write the topic of each sentence of TEXT, a number per line, as a file for --topics.

    Lines between documents stay as they are; with --docs every line is a sentence instead, as in
    files beside k-best lists: the source, or a translation.

    Example:
      rerank topics label --model topics.model train.en --out train.topics
    """
    from lm.contexts.topics import SavedTopics
    from lm.corpus import DOCUMENTS, Corpus
    from lm.vocabulary import words_of

    text, docs = options.text, options.documents.file
    if docs is not None and options.parting != "blank":
        raise UsageError(
            f"--documents {options.parting}: with --docs every line is a sentence; leave one of "
            "them out"
        )
    check_outputs([options.out], (text, docs), [options.model])
    with valid_files():
        saved = SavedTopics.load(options.model)
    lines = list(read_lines(text, notices))
    if docs is not None:
        documents_beside(text, docs, len(lines), notices)
        parsed: list[list[bytes] | None] = [words_of(line) for line in lines]
    else:
        parsed = list(map(DOCUMENTS[options.parting], lines))
    sentences = [saved.vocabulary.encode(words) for words in parsed if words is not None]
    labels = iter(saved.model.of_corpus(Corpus.of([sentences])).tolist())
    with atomic(options.out) as file:
        for line, words in zip(lines, parsed, strict=True):
            label = line.strip(b" ") if words is None else str(next(labels)).encode()
            file.write(label + b"\n")
    return f"{len(sentences):,} sentences labelled"


COMMAND = click.Group(
    "topics",
    commands=[
        Command("learn", TopicLearnOptions, learn),
        Command("label", TopicLabelOptions, label),
    ],
    help="Topics of sentences: learned from text, and written beside it.",
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a text: its label, its number of sentences, and its strongest words."""

    label: str
    sentences: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnedTopics:
    """The topics of the text from which they were learned, those of no sentence included.

    Label 0 is that of no words.
    """

    topics: tuple[Topic, ...]

    def to_text(self) -> str:
        """A line for each topic, with TABs, after that of the columns."""
        rows = [[topic.label, topic.sentences, " ".join(topic.words)] for topic in self.topics]
        columns = [*map(Column, ("topic", "sentences", "strongest words"))]
        return Table(columns, rows).to_tsv()

    def to_dict(self) -> dict[str, object]:
        """The topics as JSON values."""
        return {"schema": 1, **asdict(self)}
