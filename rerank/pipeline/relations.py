"""`rerank relations`: discourse relations of texts by a classifier of neighbouring sentences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import InputFiles, digest, read_lines
from rerank.files.outputs import atomic, check_folder, check_outputs
from rerank.files.paths import display
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.discourse import Pair, RelationClassifier

TRAIN = "train"  # the split that is trained on
Annotated = tuple[list["Pair"], list[bytes]]  # neighbouring sentences, and the label of each pair


@dataclass(frozen=True, slots=True)
class SplitAccuracy:
    """Accuracy on the neighbouring sentences of a split, and that of the majority class.

    majority: share of the label that is the most frequent one in training.
    """

    split: str
    pairs: int
    accuracy: float
    majority: float


@dataclass(frozen=True, slots=True)
class RelationFigures:
    """Labels of a classifier, and its accuracy on each split of the annotated documents."""

    labels: tuple[str, ...]
    splits: tuple[SplitAccuracy, ...]

    def to_text(self) -> str:
        """A line for each split, with TABs, after that of the columns."""
        rows = [
            f"{one.split}\t{one.pairs}\t{one.accuracy:.4f}\t{one.majority:.4f}"
            for one in self.splits
        ]
        return "\n".join(["split\tpairs\taccuracy\tmajority class", *rows])

    def as_json(self) -> dict[str, object]:
        """The figures by name."""
        return {
            "labels": list(self.labels),
            "splits": {
                one.split: {
                    "pairs": one.pairs,
                    "accuracy": one.accuracy,
                    "majority_class": one.majority,
                }
                for one in self.splits
            },
        }


def train_relations(annotated: str | Path, out: Path, *, notices: Notices) -> RelationFigures:
    """Train a classifier on annotated documents into the folder `out`; its accuracy.

    annotated: JSON lines, a document each: `sentences`, lists of words; `relations`, for each
    sentence that to the one before, null or an object with its `sense`; `split`, `train` if it is
    missing. Documents of other splits are held out. Null is the label `none`.
    """
    from lm.discourse import fit

    check_folder(out, str(out))
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out}: not empty; name a new folder")
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
    figures = _figures(classifier, splits)
    inputs.check()
    out.mkdir(parents=True, exist_ok=True)
    data = {"file": Path(annotated).name}
    data |= {"digest": digest(annotated)} if Path(annotated).is_file() else {}
    classifier.save(out, {"data": data, "figures": figures.as_json()})
    return figures


def label_relations(
    model: Path,
    text: str | Path,
    out: str | Path = "-",
    *,
    notices: Notices,
    docs: str | Path | None = None,
) -> int:
    """Write the relation of each sentence of a text to the one before; the number of sentences.

    docs: file with a document id for each line, as beside k-best lists, where a blank line is a
    sentence without words. Without it blank lines part documents, and stay blank. A document's
    first sentence has the label `none`.
    """
    from lm.discourse import RelationClassifier
    from lm.shards import ModelError
    from lm.vocabulary import words_of

    check_outputs([out], [text, *([docs] if docs else [])])
    try:
        classifier = RelationClassifier.load(model)
    except ModelError as fault:
        raise InputError(str(fault)) from None
    lines = [words_of(line) for line in read_lines(text, notices)]
    labels: list[bytes] = []
    for document in _documents(lines, docs, text, notices):
        labels += classifier.relations(document) if docs or any(document) else [b""] * len(document)
    with atomic(out) as file:
        file.writelines(label + b"\n" for label in labels)
    return sum(map(bool, labels))


def _documents(
    lines: Sequence[list[bytes]], docs: str | Path | None, text: str | Path, notices: Notices
) -> Iterator[Sequence[list[bytes]]]:
    """Lines of each document, and between documents runs of blank lines."""
    if docs is not None:
        documents = Documents.from_file(docs, notices)
        if documents.n_lines != len(lines):
            raise InputError(
                f"expected {documents.n_lines:,} lines, one for each line of {display(docs)}, "
                f"found {len(lines):,}; {documents.cure or 'give an id for each line of the text'}",
                source=display(text),
            )
        yield from documents.split(lines)
        return
    begin = 0
    for end in range(1, len(lines) + 1):
        if end == len(lines) or bool(lines[end]) != bool(lines[begin]):
            yield lines[begin:end]
            begin = end


def _figures(classifier: RelationClassifier, splits: dict[str, Annotated]) -> RelationFigures:
    most = Counter(splits[TRAIN][1]).most_common(1)[0][0]
    found = [
        SplitAccuracy(
            split, len(pairs), classifier.accuracy(pairs, labels), labels.count(most) / len(labels)
        )
        for split, (pairs, labels) in splits.items()
        if pairs
    ]
    return RelationFigures(tuple(label.decode() for label in classifier.labels), tuple(found))


def _read(path: str | Path, notices: Notices) -> dict[str, Annotated]:
    """Neighbouring sentences and their labels by split; InputError with the line of a fault."""
    from lm.discourse import NONE

    splits: dict[str, Annotated] = {}
    for number, line in enumerate(read_lines(path, notices), 1):
        try:
            found = json.loads(line)
            sentences = [[_text(word) for word in words] for words in found["sentences"]]
            relations = [NONE if one is None else _text(one["sense"]) for one in found["relations"]]
            split = found.get("split", TRAIN)
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


def _text(found: Any) -> bytes:
    """A word; TypeError for anything else."""
    if not isinstance(found, str) or not found or " " in found:
        raise TypeError(f"found {found!r:.40}, not a word")
    return found.encode()
