"""Topic models on disk: safetensors, a vocabulary, and a manifest `topics.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lm.checkpoint import check_shapes, read_vocabulary, write_vocabulary
from lm.corpus import Corpus
from lm.shards import ModelError, read_manifest, write_tensors
from lm.topics import TopicModel
from lm.vocabulary import SPECIAL, Vocabulary

MANIFEST = "topics.json"


@dataclass(frozen=True, slots=True, eq=False)
class SavedTopics:
    """A topic model and the vocabulary whose ids it reads."""

    model: TopicModel
    vocabulary: Vocabulary

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write a folder; about: where the topics come from."""
        digest = write_vocabulary(folder, self.vocabulary)
        content = {"topics": self.model.topics, "vocabulary": digest}
        content |= {"words": len(self.vocabulary), "about": dict(about)}
        write_tensors(folder / MANIFEST, "weights", self.model.state_dict(), content)

    @classmethod
    def load(cls, folder: Path) -> SavedTopics:
        """The topic model of a folder; ModelError if it holds none, or an altered one."""
        path = folder / MANIFEST
        manifest = read_manifest(path)
        words, topics = (manifest.content.get(name) for name in ("words", "topics"))
        tensors = manifest.tensors()
        sizes = tensors.get("prior"), tensors.get("terms")
        if any(size is None or size.ndim != n for n, size in enumerate(sizes, 1)):
            raise ModelError(f"{path}: expected a topic model, found other tensors; learn it again")
        found = tuple(len(size) for size in sizes if size is not None)
        if (topics, words) != found or found[0] < 1 or found[1] < len(SPECIAL):
            raise ModelError(
                f"{path}: expected weights of {topics!r:.20} topics and {words!r:.20} words, found "
                f"{found[0]} and {found[1]}; copy the whole folder again"
            )
        model = TopicModel(found[1], found[0])
        check_shapes(model.state_dict(), tensors, path)
        model.load_state_dict(tensors)
        digest, numbers = manifest.content.get("vocabulary"), tensors["terms"].numel()
        return cls(model, read_vocabulary(path, digest, found[1], numbers))


def strongest_words(
    model: TopicModel, corpus: Corpus, topics: NDArray[np.int64], number: int
) -> list[list[int]]:
    """Up to `number` words of each topic 1 … N that add most to the sums of its sentences.

    topics: (S,) of the sentences of the corpus. A word's share is its weight times its number in
    the sentences of the topic, of those above 0. O(words log words + N V log V) time.
    """
    weights: Tensor = model.terms[:, 1:]
    of_words = np.repeat(topics, np.diff(corpus.sentences))
    tokens = corpus.tokens[np.argsort(of_words, kind="stable")]
    bounds = np.searchsorted(np.sort(of_words), np.arange(1, model.topics + 2)).tolist()
    found = []
    for z, (begin, end) in enumerate(pairwise(bounds)):
        counts = np.bincount(tokens[begin:end], minlength=len(weights))
        shares = counts * weights[:, z].cpu().numpy().astype(np.int64)
        best = np.argsort(-shares, kind="stable")[:number]
        found.append([int(word) for word in best if shares[word] > 0])
    return found
