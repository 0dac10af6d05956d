"""Text drawn from a document language model, word by word, sentence by sentence.

Ancestral sampling, as `sample` of the program of Ji et al. 2016 (arXiv:1511.03962). Each document
has a random generator, and each word a random number of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.reading import contexts_after, read_on
from lm.scoring import LogProbError
from lm.sentences import Positions, PositionStates, ReadSentences, Rows
from lm.vocabulary import END, SPECIAL, START, UNKNOWN

TOGETHER = 64  # documents drawn side by side
Sentence = list[int]  # of ids, without `<s>` and `</s>`


@dataclass(frozen=True, slots=True)
class SampledDocument:
    """Sentences of word ids, and how many of them were cut off at the longest length."""

    sentences: tuple[Sentence, ...]
    cut: int


@torch.no_grad()
def sample(
    model: DocumentLM,
    *,
    documents: int,
    sentences: int,
    seed: int,
    longest: int = 100,
    temperature: float = 1.0,
    start: Corpus | None = None,
    together: int = TOGETHER,
) -> Iterator[SampledDocument]:
    """Documents drawn from a model, each a continuation of the only document of `start`.

    Drawn are the words and, after at least one word, `</s>`, never `<unk>` and `<s>`, with
    probabilities proportional to p^(1/temperature). longest: words after which a sentence is cut.

    The seed and a document's number decide its text. `together` documents are drawn at a time;
    another batch, device or number of threads changes a word only where a random number is within
    rounding, about 1e-6, of the border between two words. O(V R) time a word; together · V
    probabilities in memory. LogProbError if the model returns NaN, ValueError if it has no words or
    does not predict `</s>`.
    """
    if not model.head.predicts_end:
        raise ValueError("a model of bags of words draws no sentences")
    if model.config.vocabulary <= len(SPECIAL):
        raise ValueError("a model without words has nothing to draw")
    model.eval()
    inputs = model.word_inputs()
    before = contexts_after(model, start or Corpus.of([[]]))
    for first in range(0, documents, together):
        numbers = range(first, min(first + together, documents))
        generators = [np.random.default_rng((seed, number)) for number in numbers]
        contexts = before.repeat_interleave(len(numbers))
        rows = []
        for _ in range(sentences):
            row = _sentences(
                model, contexts, inputs, generators, longest=longest, temperature=temperature
            )
            corpus = Corpus.of([[sentence for sentence, _ in row]])
            contexts = read_on(model, corpus, np.arange(len(row)), contexts)
            rows.append(row)
        for document in zip(*rows, strict=True):
            drawn, ended = zip(*document, strict=True)
            yield SampledDocument(drawn, ended.count(False))


def _sentences(
    model: DocumentLM,
    contexts: Rows,
    inputs: Tensor,
    generators: Sequence[np.random.Generator],
    *,
    longest: int,
    temperature: float,
) -> list[tuple[Sentence, bool]]:
    """A sentence in each of B contexts, and whether its `</s>` was drawn."""
    sentences: list[Sentence] = [[] for _ in generators]
    ended = [False] * len(sentences)
    alive = torch.arange(len(sentences), device=contexts.device)  # sentences that have no end yet
    state = model.start(contexts, inputs)
    words = torch.full((len(sentences), 1), START, device=contexts.device)
    states = [model.kept(state)]
    for n in range(longest):
        # heads may look at all words before, so features are those of all positions
        place = torch.arange(words.numel(), device=words.device).view(n + 1, len(words))
        before = place - len(words)
        before[0] = -1
        columns = words.T.flatten(), before.flatten(), (place % len(words)).flatten(), place[-1]
        read = ReadSentences(Positions(*columns, n), PositionStates.cat(states))
        features = model.features(read, contexts.take(alive))[read.positions.last]
        log_probs = model.head.log_probabilities(features).double() / temperature
        log_probs[:, [UNKNOWN, START] if n else [UNKNOWN, START, END]] = -torch.inf
        drawn = _drawn(log_probs, [generators[d].random() for d in alive.tolist()])
        for d, word in zip(alive.tolist(), drawn.tolist(), strict=True):
            if word == END:
                ended[d] = True
            else:
                sentences[d].append(word)
        on = (drawn != END).nonzero()[:, 0]
        if not len(on):
            break
        alive, state = alive[on], model.step(state.take(on), drawn[on], inputs[drawn[on]])
        words = torch.cat([words[on], drawn[on, None]], dim=1)
        states = [*(kept.take(on) for kept in states), model.kept(state)]
    return list(zip(sentences, ended, strict=True))


def _drawn(log_probs: Tensor, uniform: Sequence[float]) -> Tensor:
    """(A,) words, by inverting the distributions of log_probs (A, V), of any normaliser; no NaN."""
    if log_probs.isnan().any():
        raise LogProbError("a language model returned NaN")
    sums = (log_probs - log_probs.amax(dim=1, keepdim=True)).exp().cumsum(dim=1)
    total = sums[:, -1:]
    points = torch.tensor(uniform, dtype=torch.float64, device=sums.device)[:, None] * total
    # a product rounded up to the total would lead beyond the last word
    points = torch.minimum(points, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(sums, points, right=True)[:, 0]
