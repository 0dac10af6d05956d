"""`rerank lm-eval pairs`: contrastive items from one's own k-best lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rerank.commands.document_run import ListRun
from rerank.commands.lists import Lists
from rerank.corpus.contrasts import contrast_of
from rerank.corpus.spelling import nfc_lines
from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.formats.tokens import similar
from rerank.formats.translations import read_references
from rerank.metrics.word_classes import ListedWords, english_classes, read_words
from rerank.notices import Notices


@dataclass(frozen=True, slots=True)
class ContrastivePairs:
    """Items made, sentences of the lists, and how often each right word is in an item."""

    items: int
    sentences: int
    words: Mapping[str, int]

    def to_text(self) -> str:
        """The figures in one line."""
        common = ", ".join(f"{word} {n:,}" for word, n in list(self.words.items())[:8])
        return f"{self.items:,} items of {self.sentences:,} sentences; right words: {common}\n"

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "schema": 1,
            "items": self.items,
            "sentences": self.sentences,
            "words": dict(self.words),
        }


def contrastive_pairs(
    lists: Lists,
    references: Sequence[str | Path],
    out: str | Path,
    *,
    word_class: str = "pronouns",
    word_lists: Mapping[str, str | Path] | None = None,
    context: int = 3,
    notices: Notices,
) -> ContrastivePairs:
    """Write the items of k-best lists for `contrastive`, a JSON object a line; at most one a list.

    An item has a candidate and variants that differ from it in one word of the class, as
    `rerank.corpus.contrasts.contrast_of` finds them. word_class: a name of
    `rerank.metrics.word_classes.CLOSED`, or of word_lists, its files. context: how many sentences
    of the first reference come before each. InputError if no list has an item. Memory: the
    references, and the lists of a document.
    """
    given = {name: read_words(path, notices) for name, path in (word_lists or {}).items()}
    classes = {own.name: own for own in english_classes(given, None, notices)}
    listed = {name: own.words for name, own in classes.items() if isinstance(own, ListedWords)}
    if word_class not in listed:
        raise UsageError(
            f"--class {word_class}: {similar(word_class, tuple(listed))}; name one of these, or "
            "give --word-list NAME=FILE"
        )
    check_outputs((out,), (*lists.files, *references))
    sentences, found = 0, Counter[str]()
    with ListRun.open(lists, notices) as source, atomic(out) as file:
        texts = read_references(references, source.documents, notices)
        texts = nfc_lines(texts) if lists.in_nfc else texts
        for name, kbest in source.read():
            of_document = texts[kbest.first : kbest.first + len(kbest)]
            for t in range(len(kbest)):
                sentences += 1
                candidates = [kbest.tokens(row) for row in kbest.rows(t)]
                split = [own.split() for own in of_document[t]]
                item = contrast_of(candidates, split, listed[word_class])
                if item is None:
                    continue
                found[item.word] += 1
                before = [of_document[i][0] for i in range(max(0, t - context), t)]
                line = {
                    "id": f"{name}:{t + 1}",
                    "context": [own.decode() for own in before if own.strip()],
                    "right": item.right.decode(),
                    "wrong": [own.decode() for own in item.wrong],
                    "phenomenon": word_class,
                    **({"pronoun": item.word} if word_class == "pronouns" else {}),
                }
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        if not found:
            raise InputError(
                f"expected candidates that differ in one word of {word_class}, which a reference "
                "has and their others have not, found none; give longer lists or another class",
                source=display(lists.kbest),
            )
    return ContrastivePairs(found.total(), sentences, dict(found.most_common()))
