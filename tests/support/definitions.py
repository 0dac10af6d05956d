"""log p of a sentence in its document by definition: word by word, without batches and tries."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from support.models import entered
from torch import Tensor

from lm.corpus import Corpus, segments
from lm.folders import SavedModel
from lm.laws import read_by_words
from lm.reading import read
from lm.side_information import SentenceNumbers
from lm.vocabulary import END, UNKNOWN

Texts = tuple[str, ...]
LogP = Callable[[Texts, int], float]  # texts of a document's sentences, number of one of them


def definition(
    saved: SavedModel, side: Mapping[str, Sequence[str]] | None = None, share: float = 0.0
) -> tuple[LogP, LogP]:
    """log p of a sentence given what the model reads of the others, and without these.

    side: by kind, a line for each sentence, which both are given; share: λ of a document cache,
    (1 − λ) p + λ c / n for every word and `</s>`, where one of the n known words before is c.
    """
    model, backwards = saved.model, saved.model.config.reverse_documents
    corpus = beside(saved, side or {})

    def ids(text: str) -> list[int]:
        return saved.reading_order(saved.vocabulary.encode(text.encode().split()))

    def total(features: Tensor, text: str, before: Texts) -> float:
        """Sum over the words and `</s>`, mixed with the cache of the texts before."""
        head = model.head
        words = torch.tensor([*ids(text), *[END] * head.predicts_end])
        rows = features[: len(words)]
        plain = -head.nll(rows, words) if head.normalised else head.score(rows, words)
        cached = Counter(word for one in before for word in ids(one) if word != UNKNOWN)
        if not (share and cached):
            return float(plain.double().sum())
        n, pairs = cached.total(), zip(plain.tolist(), words.tolist(), strict=True)
        return sum(math.log((1 - share) * math.exp(p) + share * cached[w] / n) for p, w in pairs)

    @cache
    @torch.no_grad()
    def after(before: Texts, text: str, number: int) -> float:
        context = entered(model, corpus, model.context.start(1), number - len(before))
        for s, one in enumerate(before, number - len(before) + 1):
            summary = model.context.summary(read_by_words(model, ids(one), context))
            context = entered(model, corpus, model.context.advance(context, summary), s)
        result = read_by_words(model, ids(text), context)
        return total(model.features(result, context), text, before)

    @cache
    @torch.no_grad()
    def along(texts: Texts) -> list[float]:
        """Of every sentence, read as training reads a document."""
        text = Corpus.of([[ids(one) for one in texts]])
        (segment,) = segments(text, [0], streams=1, length=len(texts))
        result = read(model, text, segment, model.context.start(1))
        of = [result.features[result.sentences == t] for t in range(len(texts))]
        return [total(rows, texts[t], texts[:t]) for t, rows in enumerate(of)]

    def given(texts: Texts, t: int) -> float:
        if backwards:
            texts, t = texts[::-1], len(texts) - 1 - t
        if not model.causal:
            return along(texts)[t]
        return after(texts[:t], texts[t], t)

    return given, lambda texts, t: after((), texts[t], t)


def beside(saved: SavedModel, side: Mapping[str, Sequence[str]]) -> Corpus:
    """A document without words and with side information; parents count from 0, -1 for none."""
    found: dict[str, Any] = {}
    for kind, lines in side.items():
        if kind == "parents":
            found[kind] = SentenceNumbers.of(np.array([int(line) for line in lines]))
        else:
            found[kind] = saved.encode_side(kind, "".join(f"{line}\n" for line in lines).encode())
    n = max(map(len, side.values()), default=0)
    return Corpus(np.zeros(0, np.int32), np.zeros(n + 1, np.int64), np.array([0, n]), found)
