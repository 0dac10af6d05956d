"""The embedded example: small documents of our own making, written by `recipes/toy`.

In them the right candidate depends on the sentence before: he or she, present or past, lorry or
truck. There is text to train language models on, and k-best lists whose scores look at one
sentence at a time.

>>> from rerank.example import EMBEDDED
>>> EMBEDDED.test.kbest
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple


class Set(NamedTuple):
    """Lists with what is known of their sentences: a document id and a reference each."""

    kbest: Path
    docs: Path
    references: Path


class Example:
    """The files of an example, all in one folder.

    train, valid: texts for language models, with blank lines between documents; weights: of the
    made-up system, from which the totals of its lists come; tune, test: lists
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.train, self.valid = folder / "lm.train.txt.gz", folder / "lm.valid.txt.gz"
        self.weights = folder / "weights.ini"
        self.tune, self.test = (
            Set(*(folder / f"{name}.{kind}.gz" for kind in ("nbest", "docids", "ref")))
            for name in ("tune", "test")
        )


EMBEDDED = Example(Path(str(files(__name__))))
