"""The embedded example: small documents of our own making, written by `recipes/toy`.

In them the right candidate depends on the sentence before: he or she, present or past, lorry or
truck. There is text to train language models on, and k-best lists whose scores look at one
sentence at a time.

>>> from rerank.example import EMBEDDED
>>> EMBEDDED.test.kbest
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Set:
    """Lists with what is known of their sentences: a document id and a reference each."""

    kbest: Path
    docs: Path
    references: Path


@dataclass(frozen=True, slots=True)
class Example:
    """The files of an example, all in one folder."""

    folder: Path

    @property
    def train(self) -> Path:
        """Training text for language models, blank lines between documents."""
        return self.folder / "lm.train.txt.gz"

    @property
    def valid(self) -> Path:
        """Held-out text in the same form."""
        return self.folder / "lm.valid.txt.gz"

    @property
    def weights(self) -> Path:
        """Weights of the made-up system: the totals of its lists are theirs."""
        return self.folder / "weights.ini"

    @property
    def tune(self) -> Set:
        """Lists to tune weights on."""
        return self._set("tune")

    @property
    def test(self) -> Set:
        """Lists to test on."""
        return self._set("test")

    @property
    def all_files(self) -> tuple[Path, ...]:
        """Every file of the example."""
        sets = (path for s in (self.tune, self.test) for path in (s.kbest, s.docs, s.references))
        return (self.train, self.valid, self.weights, *sets)

    def _set(self, name: str) -> Set:
        kbest, docs, references = (
            self.folder / f"{name}.{suffix}.gz" for suffix in ("nbest", "docids", "ref")
        )
        return Set(kbest, docs, references)


EMBEDDED = Example(Path(str(files(__name__))))
