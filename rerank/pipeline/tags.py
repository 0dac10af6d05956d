"""Tags of the words of a text, from a file beside it, such as parts of speech."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.texts import TextFiles, check_shape
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import display
from rerank.notices import Notices

if TYPE_CHECKING:
    from lm.corpus import Corpus

END = b"</s>"


@dataclass(frozen=True, slots=True, eq=False)
class TaggedText(TextFiles):
    """A text with the files beside it, and maybe one with a tag for each word."""

    tags: str | Path | None = None

    @property
    def all(self) -> tuple[str | Path, ...]:
        """All of the files."""
        more = () if self.tags is None else (self.tags,)
        return (self.text, *self.side.values(), *more)


def read_tags(
    path: str | Path, beside: Corpus, name: str, documents: str, notices: Notices
) -> tuple[Corpus, list[str]]:
    """The corpus with ids of tags in place of its words, and the names of the tags.

    beside: the text, of this name in messages. InputError with file and line unless each sentence
    has a tag for each word, and for the tag `</s>`, which is that of the ends of sentences.
    """
    import numpy as np

    from lm.corpus import DOCUMENTS, Corpus

    source = display(path)
    lengths = np.diff(beside.sentences).tolist()
    index: dict[bytes, int] = {}
    ids: list[int] = []
    sizes, bounds = [0], [0]
    for line, words in enumerate(DOCUMENTS[documents](read_lines(path, notices)), 1):
        if words is None:
            bounds.append(len(sizes) - 1)
            continue
        i = len(sizes) - 1
        if i < len(lengths) and len(words) != lengths[i]:
            raise InputError(
                f"expected {lengths[i]} tags, one for each word of sentence {i + 1} of {name}, "
                f"found {len(words)}; write them on its line, with spaces between them",
                source=source,
                line=line,
            )
        if END in words:
            raise InputError(
                "expected tags of words, found </s>, which stands for the ends of sentences; give "
                "it another name",
                source=source,
                line=line,
            )
        ids += [index.setdefault(word, len(index)) for word in words]
        sizes.append(len(words))
    offsets, bounds = np.cumsum(sizes), [*bounds, len(sizes) - 1]
    found = Corpus(np.array(ids, dtype=np.int32), offsets, np.unique(bounds))
    check_shape(found, beside, name, path)
    return replace(beside, tokens=found.tokens), [tag.decode() for tag in index]
