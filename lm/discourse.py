"""Discourse relations of a text: a classifier of neighbouring sentences.

Multinomial logistic regression on hashed words of both sentences. Relations are labels, `none`
among them; the first sentence of a document, which has no predecessor, is `none`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from lm.checkpoint import read_tensors, write_tensors
from lm.folders import ModelError

NONE = b"none"
SLOTS = 1 << 16  # of hashed features
Sentence = Sequence[bytes]
Pair = tuple[Sentence, Sentence]


def features(first: Sentence, second: Sentence) -> NDArray[np.int64]:
    """Slots of the features of two neighbouring sentences, each once.

    Lower-cased words of each; their first words, up to three, and last word; the first words of
    both; whether the second is short.
    """
    sides = [[word.decode().lower() for word in sentence] for sentence in (first, second)]
    names = {f"12^ {' '.join(sides[0][:1])} {' '.join(sides[1][:1])}"}
    names.add(f"2# {min(len(second), 12) // 4}")
    for side, words in enumerate(sides, 1):
        names |= {f"{side} {word}" for word in words}
        names |= {f"{side}^{n} {' '.join(words[:n])}" for n in (1, 2, 3)}
        names.add(f"{side}$ {' '.join(words[-1:])}")
    slots = {crc32(name.encode()) % SLOTS for name in names}
    return np.array(sorted(slots), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RelationClassifier:
    """log p(d) ∝ b_d + Σ W_{s,d} / √n over n slots s; weight: (SLOTS, L), bias: (L,)."""

    labels: tuple[bytes, ...]
    weight: Tensor
    bias: Tensor

    def log_probs(self, pairs: Sequence[Pair]) -> Tensor:
        """Log-probabilities (N, L) of the labels of pairs of sentences."""
        return torch.log_softmax(_logits(self.weight, self.bias, *_bags(pairs)), dim=1)

    def relations(self, document: Sequence[Sentence]) -> list[bytes]:
        """The most probable label of each sentence; `none` of the first."""
        pairs = list(pairwise(document))
        best = self.log_probs(pairs).argmax(dim=1).tolist() if pairs else []
        return [NONE, *(self.labels[label] for label in best)][: len(document)]

    def accuracy(self, pairs: Sequence[Pair], labels: Sequence[bytes]) -> float:
        """Share of pairs whose most probable label is theirs."""
        best: list[int] = self.log_probs(pairs).argmax(dim=1).tolist()
        right = sum(self.labels[b] == label for b, label in zip(best, labels, strict=True))
        return right / max(1, len(labels))

    def save(self, folder: Path, about: dict[str, object]) -> None:
        """Write a folder: the weights, and a manifest `relations.json`."""
        content = {"labels": [label.decode() for label in self.labels], "about": about}
        tensors = {"weight": self.weight, "bias": self.bias}
        write_tensors(folder / "relations.json", "weights", tensors, content)

    @classmethod
    def load(cls, folder: Path) -> RelationClassifier:
        """The classifier of a folder; ModelError if it holds none."""
        path = folder / "relations.json"
        content, tensors = read_tensors(path)
        labels = content.get("labels")
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ModelError(f"{path}: expected labels, found none; train it again")
        shapes = {"weight": (SLOTS, len(labels)), "bias": (len(labels),)}
        stored = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if stored != shapes:
            raise ModelError(f"{path}: expected tensors {shapes}, found {stored}; train it again")
        named = tuple(label.encode() for label in labels)
        return cls(named, tensors["weight"].float(), tensors["bias"].float())


def fit(
    pairs: Sequence[Pair], labels: Sequence[bytes], *, penalty: float = 3e-5, steps: int = 50
) -> RelationClassifier:
    """The classifier that minimises mean −log p + penalty · ‖W‖² (L-BFGS, at most so many steps).

    The default penalty is the best of 1e-5, 3e-5, 1e-4 and 3e-4 on GUM's development documents.
    Deterministic: it works in a single thread. O(steps · words) time.
    """
    names = tuple(sorted(set(labels)))
    targets = torch.tensor([names.index(label) for label in labels])
    weight = torch.zeros(SLOTS, len(names), requires_grad=True)
    bias = torch.zeros(len(names), requires_grad=True)
    bags = _bags(pairs)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        nats = F.cross_entropy(_logits(weight, bias, *bags), targets)
        nats = nats + penalty * weight.square().sum()
        torch.autograd.backward(nats)
        return nats

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        optimiser.step(loss)  # type: ignore[no-untyped-call]  # of torch
    finally:
        torch.set_num_threads(threads)
    return RelationClassifier(names, weight.detach(), bias.detach())


def _bags(pairs: Iterable[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """Slots of all pairs, their weights 1/√n, and where each pair begins."""
    slots = [features(*pair) for pair in pairs]
    sizes = np.array([*map(len, slots)], dtype=np.int64)
    shares = np.repeat(1 / np.sqrt(sizes), sizes).astype(np.float32)
    columns = np.concatenate(slots), shares, np.cumsum(sizes) - sizes
    return tuple(map(torch.from_numpy, columns))  # type: ignore[return-value]  # of three


def _logits(weight: Tensor, bias: Tensor, slots: Tensor, shares: Tensor, starts: Tensor) -> Tensor:
    sums = F.embedding_bag(slots, weight, starts, mode="sum", per_sample_weights=shares)
    return sums + bias
