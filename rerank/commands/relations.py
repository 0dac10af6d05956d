"""`rerank relations`: discourse relations of texts by a classifier of neighbouring sentences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.corpus.reading import DocumentOptions
from rerank.errors import InputError
from rerank.files.lines import InputFiles, digest, read_lines
from rerank.files.outputs import atomic, check_new_folder, check_outputs
from rerank.files.paths import display
from rerank.formats.plain_texts import text_lines
from rerank.notices import Notices
from rerank.options import Command, argument, option, part, record
from rerank.runs.options import Messages, form_option, printed
from rerank.runs.texts import documents_beside
from rerank.scorers.models import valid_files
from rerank.table import Column, Table
from rerank.values import FILE, FOLDER

if TYPE_CHECKING:
    from lm.discourse import Pair

TRAIN = "train"  # the split that is trained on
Annotated = tuple[list["Pair"], list[bytes]]  # neighbouring sentences, and the label of each pair


@record
class RelationTrainOptions:
    """Options of `rerank relations train`."""

    annotated: str = argument("ANNOTATED", type=FILE)
    out: Path = option("New folder for the classifier.", type=FOLDER, metavar="DIR")
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@record
class RelationLabelOptions:
    """Options of `rerank relations label`."""

    model: Path = option("Classifier made by rerank relations train.", type=FOLDER, metavar="DIR")
    text: str = argument("TEXT", type=FILE)
    documents: DocumentOptions = part(DocumentOptions, without={"no_docs", "allow_interleaved"})
    out: str = option("Output; - is standard output.", type=FILE, default="-")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def train(options: RelationTrainOptions, notices: Notices) -> RelationFigures:
    """Train a classifier of relations, and print its accuracy beside the majority class.

    ANNOTATED has a JSON object per line, a document each: sentences, lists of words; relations, for
    each sentence null or an object with the sense of the relation to the sentence before; and
    split: documents of other splits than train are held out. Null is the label none.

    Example:
      rerank relations train gum.jsonl.gz --out relations.model
    """
    from lm.discourse import fit

    annotated, out = options.annotated, options.out
    check_new_folder(out)
    inputs = InputFiles([annotated])
    splits = _read(annotated, notices)
    pairs, labels = splits.get(TRAIN, ([], []))
    if len(set(labels)) < 2:
        raise InputError(
            f"expected documents of the split {TRAIN!r} with at least two relations between "
            f"neighbouring sentences, null among them, found {len(set(labels))}",
            source=display(annotated),
        )
    classifier = fit(pairs, labels)
    most = Counter(labels).most_common(1)[0][0]
    accuracies = {
        split: SplitAccuracy(
            len(texts), classifier.accuracy(texts, known), known.count(most) / len(known)
        )
        for split, (texts, known) in splits.items()
        if texts
    }
    figures = RelationFigures([label.decode() for label in classifier.labels], accuracies)
    inputs.check()
    out.mkdir(parents=True, exist_ok=True)
    data = {"file": Path(annotated).name}
    data |= {"digest": digest(annotated)} if Path(annotated).is_file() else {}
    classifier.save(out, {"data": data, "figures": asdict(figures)})
    return figures


@printed
def label(options: RelationLabelOptions, notices: Notices) -> str:
    """Write the relation of each sentence of TEXT to the one before, a label per line.

    TEXT has a sentence per line, and blank lines, which stay, between documents; with --docs it has
    a line per source sentence instead, as files beside k-best lists have: the source, or a
    translation. The label of a document's first sentence is none.

    Example:
      rerank relations label --model relations.model train.en --out train.relations
    """
    from lm.discourse import RelationClassifier
    from lm.vocabulary import words_of

    text, docs = options.text, options.documents.file
    labels: list[bytes] = []
    check_outputs([options.out], (text, docs), [options.model])
    with valid_files():
        classifier = RelationClassifier.load(options.model)
    lines = [words_of(line) for line in text_lines(text, notices)]
    if docs:
        documents = documents_beside(text, docs, len(lines), notices).split(lines)
    else:  # and what is between documents: runs of blank lines
        documents = [list(run) for _, run in groupby(lines, bool)]
    for document in documents:
        blank = not docs and not any(document)
        labels += [b""] * len(document) if blank else classifier.relations(document)
    with atomic(options.out) as file:
        file.writelines(label + b"\n" for label in labels)
    return f"{sum(map(bool, labels)):,} sentences labelled"


COMMAND = click.Group(
    "relations",
    commands=[
        Command("train", RelationTrainOptions, train),
        Command("label", RelationLabelOptions, label),
    ],
    help="Discourse relations between neighbouring sentences: files for --relations.",
)


@dataclass(frozen=True, slots=True)
class SplitAccuracy:
    """Accuracy on the neighbouring sentences of a split, and that of the majority class.

    majority_class: share of the label that is the most frequent one in training.
    """

    pairs: int
    accuracy: float
    majority_class: float


@dataclass(frozen=True, slots=True)
class RelationFigures:
    """Labels of a classifier, and its accuracy on each split of the annotated documents."""

    labels: Sequence[str]
    splits: Mapping[str, SplitAccuracy]

    def to_text(self) -> str:
        """A line for each split, with TABs, after that of the columns."""
        rows = [
            [split, x.pairs, f"{x.accuracy:.4f}", f"{x.majority_class:.4f}"]
            for split, x in self.splits.items()
        ]
        headings = ("split", "pairs", "accuracy", "majority class")
        return Table([*map(Column, headings)], rows).to_tsv()

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {"schema": 1, **asdict(self)}


def _read(path: str, notices: Notices) -> dict[str, Annotated]:
    """Neighbouring sentences and their labels by split; InputError with the line of a fault."""
    from lm.discourse import NONE

    splits: dict[str, Annotated] = {}
    for number, line in enumerate(read_lines(path, notices), 1):
        try:
            document = json.loads(line)
            sentences = [[_text(word) for word in words] for words in document["sentences"]]
            relations = [NONE if x is None else _text(x["sense"]) for x in document["relations"]]
            split = document.get("split", TRAIN)
            if not isinstance(split, str) or len(relations) != len(sentences):
                raise ValueError("a relation or null for each sentence")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise InputError(
                "expected a JSON object with sentences, lists of words, and for each of them in "
                f"relations null or an object with a sense, one word ({fault}); correct the line",
                source=display(path),
                line=number,
            ) from None
        pairs, labels = splits.setdefault(split, ([], []))
        pairs += pairwise(sentences)
        labels += relations[1:]
    return splits


def _text(word: Any) -> bytes:
    """A word; TypeError for anything else."""
    if not isinstance(word, str) or not word or " " in word:
        raise TypeError(f"found {word!r:.40}, not a word")
    return word.encode()
