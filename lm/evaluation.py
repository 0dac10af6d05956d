"""Perplexity of documents: every sentence in the context of its document's earlier ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from lm.batches import segments
from lm.corpus import Corpus
from lm.model import DocumentLM
from lm.reading import read
from lm.scoring import ScoreError
from lm.vocabulary import END

MOST_NATS = 700.0  # a word; exp of more overflows


@dataclass(frozen=True, slots=True)
class LogNormalisers:
    """Mean and standard deviation of log Z over words and `</s>`, in nats.

    They are the error of the scores of a head that is not normalised: score − log p = log Z.
    """

    mean: float
    sd: float

    def to_text(self) -> str:
        """`log Z 0.012 ± 0.310 a word`."""
        return f"log Z {self.mean:.3f} ± {self.sd:.3f} a word"


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Counts of a text, and its nats: −Σ log p over words and `</s>`, and over words alone.

    tokens: words without `</s>`; log_z: of a head that is not normalised; predicts_end: whether
    `</s>` is predicted, and so counted. A model that does not predict it, of bags of words, is not
    comparable with others.
    """

    sentences: int
    tokens: int
    oov: int
    nats: float
    word_nats: float
    log_z: LogNormalisers | None = None
    predicts_end: bool = True

    @property
    def nats_per_token(self) -> float:
        """Nats over words and `</s>` / (tokens + sentences), or nats / tokens without `</s>`."""
        return self.nats / (self.tokens + self.sentences * self.predicts_end)

    @property
    def perplexity(self) -> float:
        """exp(nats_per_token), `</s>` included if it is predicted."""
        return math.exp(self.nats_per_token)

    @property
    def perplexity_without_eos(self) -> float:
        """exp(word_nats / tokens): `</s>` is left out of both."""
        return math.exp(self.word_nats / self.tokens)

    def as_json(self) -> dict[str, float]:
        """The figures by name; of a model without `</s>`, `nats_per_word_of_a_bag` alone."""
        names = ("sentences", "tokens", "oov", "nats")
        derived = ("nats_per_token", "perplexity", "perplexity_without_eos")
        figures: dict[str, float] = {name: getattr(self, name) for name in names}
        if self.predicts_end:
            figures |= {name: getattr(self, name) for name in derived}
        else:
            figures["nats_per_word_of_a_bag"] = self.nats_per_token
        if self.log_z is not None:
            figures |= {"log_z_mean": self.log_z.mean, "log_z_sd": self.log_z.sd}
        return figures


@torch.no_grad()
def perplexity(
    model: DocumentLM, corpus: Corpus, *, streams: int = 32, length: int = 8
) -> Perplexity:
    """Perplexity of a corpus with at least one sentence, normalised exactly, float32.

    `streams` documents are read side by side; they bound the memory, not the result.
    ScoreError for a model that returns NaN, or whose perplexity overflows.
    """
    was_training = model.training
    model.eval()
    streams = min(streams, corpus.n_documents)
    contexts = model.context.start(streams)
    nats = word_nats = sum_log_z = sum_squares = 0.0
    for segment in segments(corpus, range(corpus.n_documents), streams=streams, length=length):
        reading = read(model, corpus, segment, contexts)
        contexts = reading.contexts
        nll = model.head.nll(reading.features, reading.targets).double()
        nats += float(nll.sum())
        word_nats += float(nll[reading.targets != END].sum())
        if not model.head.normalised:
            log_z = model.head.score(reading.features, reading.targets).double() + nll
            sum_log_z += float(log_z.sum())
            sum_squares += float(log_z.square().sum())
    model.train(was_training)
    if not nats < MOST_NATS * max(1, len(corpus.tokens)):  # NaN is not
        raise ScoreError("a language model returned NaN or has no probability left for the text")
    ends = model.head.predicts_end
    n, error = len(corpus.tokens) + corpus.n_sentences * ends, None
    if not model.head.normalised:
        variance = sum_squares / n - (sum_log_z / n) ** 2
        error = LogNormalisers(sum_log_z / n, math.sqrt(max(0.0, variance)))
    counts = corpus.n_sentences, len(corpus.tokens), corpus.n_unknown
    return Perplexity(*counts, nats, word_nats, error, ends)
