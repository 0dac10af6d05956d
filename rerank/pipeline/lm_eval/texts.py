"""What experiments on texts share: a text read once for several models, and the models opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.texts import check_text, interned, renumbered
from rerank.errors import UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.formats.side_information import Files
from rerank.notices import Notices
from rerank.scorers.unknown_words import UnknownWords

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel
    from lm.corpus import Corpus
    from lm.side_information import SideText

SideOfText = Mapping[str, tuple[list[bytes], "SideText"]]  # by kind: distinct words, and sentences
NamedModels = Sequence[tuple[str, Path]]


def check_names(lms: NamedModels) -> None:
    """UsageError for two models of the same name."""
    for name, n in Counter(name for name, _ in lms).items():
        if n > 1:
            raise UsageError(f"--lm {name}: given {n} times; give each model a name of its own")


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationText:
    """A text in the indices of its own distinct words, so that it is the same for all models."""

    name: str
    words: list[bytes]
    corpus: Corpus

    @classmethod
    def read(cls, path: str | Path, documents: str, notices: Notices) -> EvaluationText:
        """The text of a file, documents parted as `lm.corpus.DOCUMENTS` names it.

        InputError if it has no words.
        """
        from lm.corpus import intern

        words, corpus = intern(read_lines(path, notices), documents)
        check_text(corpus, path, notices)
        return cls(display(path), words, corpus)

    def side(self, files: Files, documents: str, notices: Notices) -> SideOfText:
        """Side information of the text, by kind, in the indices of its own distinct words."""
        return {
            kind: interned(path, kind, self.corpus, self.name, documents, notices)
            for kind, path in files.items()
        }

    def encoded(self, saved: SavedModel, label: str, notices: Notices) -> tuple[Corpus, float]:
        """The text in a model's ids, not in its reading order, and the share of unknown words.

        A warning, with the model's label, if these are far more than in its training text.
        """
        from lm.corpus import renumber

        unknown = UnknownWords()
        unknown.add([self.words[i] for i in self.corpus.tokens.tolist()], saved.vocabulary.ids)
        unknown.warn(label, saved.about, notices, source=self.name, text="text")
        return renumber(self.corpus, self.words, saved.vocabulary), unknown.share

    def sentence(self, s: int) -> str:
        """Sentence s, as text."""
        begin, end = self.corpus.sentences[s : s + 2].tolist()
        return b" ".join(self.words[i] for i in self.corpus.tokens[begin:end].tolist()).decode()


def needs_topics(saved: SavedModel) -> bool:
    """Whether a model is given topics, and no other side information."""
    return set(saved.side) == {"topics"} and set(saved.model.context.side_information) == {"topics"}


def with_side(corpus: Corpus, saved: SavedModel, side: SideOfText) -> Corpus:
    """A corpus with the side information that a model needs, in the model's ids."""
    own = {
        kind: renumbered(text, words, saved.side[kind])
        for kind, (words, text) in side.items()
        if kind in saved.side
    }
    return replace(corpus, side=own)
