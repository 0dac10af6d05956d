"""Perplexity of documents: every sentence in the context of its document's earlier ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.corpus import Corpus, segments
from lm.model import DocumentLM
from lm.ngrams import NGramError, NGramModel
from lm.reading import Reading, read
from lm.scoring import LogProbError
from lm.vocabulary import END, UNKNOWN

MOST_NATS = 700.0  # a word; exp of more overflows
Sums: TypeAlias = Sequence[float]
"""Sums over targets: −log p, of words alone, of unknown words, log Z, log Z squared (both 0 of a
normalised head), −log p over the number of words of its sentence."""


@dataclass(frozen=True, slots=True)
class LogNormalisers:
    """Mean and standard deviation of log Z = score − log p over words and `</s>`, in nats."""

    mean: float
    sd: float

    def to_text(self) -> str:
        """`log Z 0.012 ± 0.310 a word`."""
        return f"log Z {self.mean:.3f} ± {self.sd:.3f} a word"


@dataclass(frozen=True, slots=True)
class Share:
    """Which documents process `rank` of `number` reads; every process gets the figures of all.

    add: replaces a tensor on the CPU by its sum over the processes.
    """

    rank: int
    number: int
    add: Callable[[Tensor], None]

    def documents(self, corpus: Corpus) -> Sequence[int]:
        """Its documents, dealt from the longest to the shortest, in their order."""
        lengths = np.diff(corpus.sentences[corpus.documents])
        dealt = np.argsort(-lengths, kind="stable")[self.rank :: self.number]
        return [int(d) for d in np.sort(dealt)]


ALL = Share(0, 1, lambda tensor: None)


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """Tags `ids` (W,) of the words of a corpus; words: (N,) number of the word of each token."""

    ids: NDArray[np.int64]
    names: Sequence[str]
    words: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Counts of a text, and its nats: −Σ log p over words and `</s>`, and over words alone.

    tokens: words (or pieces, which make up `words` words) without `</s>`; oov_nats: over unknown
    words; log_z: of a head that is not normalised; predicts_end: whether `</s>` is predicted and
    counted, as it is not by models of bags of words, whose figures compare with no others;
    sentence_means: of these, nats of a word of a sentence (Lin et al. 2015, eq. 9), summed over
    sentences. word_perplexities: of the words of a tag, Σ 1 / p, None if it overflows; rare words
    decide its mean (Wang & Cho 2015, §6.2). normalised: False for scores that are not meant as
    log-probabilities, as of stupid back-off. causal: False where each sentence was given the next,
    too: the sum over a document is then a pseudo-log-likelihood, and its perplexity called
    pseudo-perplexity (Salazar et al. 2020). tags: of the words of each tag, without `</s>`, the
    most frequent first.
    """

    sentences: int
    tokens: int
    oov: int
    nats: float
    word_nats: float
    oov_nats: float = 0.0
    log_z: LogNormalisers | None = None
    documents: tuple[Perplexity, ...] | None = None
    predicts_end: bool = True
    sentence_means: float = 0.0
    word_perplexities: float | None = None
    normalised: bool = True
    causal: bool = True
    tags: Mapping[str, Perplexity] | None = None
    words: int | None = None

    @property
    def tokens_per_word(self) -> float:
        """Tokens and `</s>` for each word and `</s>`; 1 where tokens are words."""
        words = self.tokens if self.words is None else self.words
        return (self.tokens + self.sentences) / (words + self.sentences)

    @property
    def perplexity_per_word(self) -> float:
        """exp(nats / (words + sentences)), to compare pieces with words."""
        return math.exp(self.nats_per_token * self.tokens_per_word)

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

    @property
    def perplexity_without_oov(self) -> float:
        """Perplexity with `</s>`, unknown words left out, as "excluding OOVs" of other programs."""
        known = self.tokens - self.oov + self.sentences
        return math.exp((self.nats - self.oov_nats) / max(1, known))

    def _not_overflowing(self, names: Iterable[str]) -> dict[str, float]:
        """Figures by name; of a few words of many pieces, perplexity may be no float."""
        figures = {}
        for name in names:
            with suppress(OverflowError):
                figures[name] = getattr(self, name)
        return figures

    def of_subset(self, tokens: int, nats: float) -> Perplexity:
        """The figures of some of the words, or of the ends of sentences, from their nats."""
        subset = Perplexity(0, tokens, 0, nats, nats, predicts_end=self.predicts_end)
        return replace(subset, normalised=self.normalised, causal=self.causal)

    def as_json(self) -> dict[str, float]:
        """The figures by name, without those of documents; perplexities only where they apply."""
        names = ("sentences", "tokens", "oov", "nats")
        derived = "nats_per_token", "perplexity", "perplexity_without_eos", "perplexity_without_oov"
        figures: dict[str, float] = {name: getattr(self, name) for name in names}
        if self.words is not None:
            figures["words"] = self.words
        if not self.normalised:
            figures["nats_per_token_not_normalised"] = self.nats_per_token
        elif not self.causal:
            figures["nats_per_token_pseudo_likelihood"] = self.nats_per_token
            pseudo = self._not_overflowing(derived[1:])
            figures |= {f"pseudo_{name}": value for name, value in pseudo.items()}
        elif self.predicts_end:
            figures |= self._not_overflowing(derived)
            if self.words is not None:
                figures["perplexity_per_word"] = self.perplexity_per_word
        else:
            figures["nats_per_word_of_a_bag"] = self.nats_per_token
        if self.word_perplexities is not None:
            figures["mean_word_perplexity"] = self.word_perplexities / max(1, self.tokens)
        if self.log_z is not None:
            figures |= {"log_z_mean": self.log_z.mean, "log_z_sd": self.log_z.sd}
        return figures


@torch.no_grad()
def _readings(
    model: DocumentLM, corpus: Corpus, documents: Sequence[int], streams: int, length: int
) -> Iterator[Reading]:
    """Readings of documents, `streams` of them side by side, without noise of training."""
    was_training = model.training
    model.eval()
    contexts = model.context.start(max(1, streams))
    for segment in segments(corpus, documents, streams=streams, length=length):
        reading = read(model, corpus, segment, contexts)
        contexts = reading.contexts
        yield reading
    model.train(was_training)


@torch.no_grad()
def sentence_level_nats(
    model: DocumentLM, corpus: Corpus, *, streams: int = 32, length: int = 8
) -> float:
    """Nats of a sentence level per word of a corpus; LogProbError for NaN."""
    documents = range(corpus.n_documents)
    readings = _readings(model, corpus, documents, min(streams, len(documents)), length)
    nats = sum(float(reading.auxiliary_nats) for reading in readings)
    per_word = nats / max(1, len(corpus.tokens))
    if not per_word < MOST_NATS:  # NaN is not
        raise LogProbError("the sentence level of a language model returned NaN")
    return per_word


def perplexity(
    model: DocumentLM,
    corpus: Corpus,
    *,
    per_document: bool = False,
    tags: Tags | None = None,
    share: Share = ALL,
    streams: int = 32,
    length: int = 8,
) -> Perplexity:
    """Perplexity of a corpus with at least one sentence, normalised exactly, float32.

    per_document: with that of its documents, each of which has words; counts and nats add up.
    tags: of its words, for the figures of each tag. Sentences that are only read
    (`Corpus.predicted`) do not count; tags are for corpora without them. `streams` documents are
    read side by side: that bounds the memory, and changes no result. share: of the documents that
    this process reads; more processes round sums in another order. LogProbError for a model that
    returns NaN, or whose perplexity overflows, also that of a document or tag.
    """
    total, of_documents, of_words = _sums(model, corpus, streams, length, tags, share)
    documents = None
    if per_document:
        pairs = zip(pairwise(corpus.documents.tolist()), of_documents.tolist(), strict=True)
        documents = tuple(_perplexity(corpus, *span, sums, model) for span, sums in pairs)
    whole = _perplexity(corpus, 0, corpus.n_sentences, total, model)
    by_tag = None if tags is None else _by_tag(corpus, tags, of_words.numpy(), whole)
    return replace(whole, documents=documents, tags=by_tag)


@torch.no_grad()
def _sums(
    model: DocumentLM, corpus: Corpus, streams: int, length: int, tags: Tags | None, share: Share
) -> tuple[Sums, Tensor, Tensor]:
    """Float64 sums of the corpus, (D, 6) of each document, and −log p (W,) of tagged words."""
    documents = share.documents(corpus)
    total, of_documents = [0.0] * 6, torch.zeros(corpus.n_documents, 6, dtype=torch.float64)
    lengths = torch.from_numpy(np.diff(corpus.sentences)).clamp(min=1)
    sizes = torch.from_numpy(np.diff(corpus.documents))
    of_words = torch.zeros(len(tags.ids) if tags else 0, dtype=torch.float64)
    document_of = torch.arange(corpus.n_documents).repeat_interleave(sizes)
    for reading in _readings(model, corpus, documents, min(streams, len(documents)), length):
        alone = model.head.nll(reading.features, reading.targets)
        nll = _interpolated(model, reading, alone).cpu().double()
        targets, sentences = reading.targets.cpu(), reading.sentences.cpu()
        words = targets != END
        nothing = nll.new_zeros(len(nll))
        unknown = nll.masked_fill(targets != UNKNOWN, 0.0)
        terms = [nll, nll.masked_fill(~words, 0.0), unknown, nothing, nothing, nothing]
        if not model.head.normalised:
            score = model.head.score(reading.features, reading.targets)
            log_z = score.cpu().double() + alone.cpu()
            terms[3:5] = [log_z, log_z.square()]
        if not model.head.predicts_end:
            terms[5] = nll / lengths[sentences]
        if corpus.predicted is not None:
            kept = torch.from_numpy(corpus.predicted)[sentences]
            terms = [term.masked_fill(~kept, 0.0) for term in terms]
        total = [before + float(now.sum()) for before, now in zip(total, terms, strict=True)]
        of_documents.index_add_(0, document_of[sentences], torch.stack(terms, dim=1))
        if tags is not None:
            numbers = torch.cat([p.sums(torch.ones_like(p.words)) for p, _ in reading.parts])
            starts = torch.from_numpy(corpus.sentences)[sentences]
            places = (starts + numbers.cpu() - 1)[words].numpy()
            of_words.index_add_(0, torch.from_numpy(tags.words[places]), nll[words])
    whole = torch.tensor(total, dtype=torch.float64)
    for sums in (whole, of_documents, of_words):
        share.add(sums)
    return whole.tolist(), of_documents, of_words


def _by_tag(
    corpus: Corpus, tags: Tags, nats: NDArray[np.float64], whole: Perplexity
) -> dict[str, Perplexity]:
    """Figures of each tag that occurs, from the nats (W,) of words; the most frequent tag first."""
    unknown = np.bincount(tags.words[corpus.tokens == UNKNOWN], minlength=len(tags.ids))
    tokens = np.bincount(tags.words, minlength=len(tags.ids))
    with np.errstate(over="ignore"):  # of a long word of many pieces
        values = np.ones(len(nats)), tokens, unknown, nats, np.exp(nats)
    n_tags, by_tag = len(tags.names), dict[str, Perplexity]()
    sums = [np.bincount(tags.ids, column, minlength=n_tags).tolist() for column in values]
    rows = zip(tags.names, *sums, strict=True)
    for name, n, pieces, oov, of_tag, inverse in sorted(rows, key=lambda row: (-row[1], row[0])):
        if not of_tag < MOST_NATS * max(1, pieces):  # NaN is not
            raise LogProbError(f"the language model has no probability left for tag {name!r}")
        if n:
            mean = inverse if math.isfinite(inverse) else None
            figures = whole.of_subset(int(n), of_tag)
            by_tag[name] = replace(figures, oov=int(oov), word_perplexities=mean)
    return by_tag


def _counts(corpus: Corpus, first: int, last: int) -> tuple[int, int, int, int | None]:
    """Of the predicted sentences first..last-1: their number, tokens, unknown tokens, words."""
    sentences = last - first
    tokens = corpus.tokens[corpus.sentences[first] : corpus.sentences[last]]
    words = None if corpus.words is None else corpus.words[first:last]
    if corpus.predicted is not None:
        predicted = corpus.predicted[first:last]
        tokens = tokens[np.repeat(predicted, np.diff(corpus.sentences[first : last + 1]))]
        sentences = int(np.count_nonzero(predicted))
        words = None if words is None else words[predicted]
    unknown = int(np.count_nonzero(tokens == UNKNOWN))
    return sentences, len(tokens), unknown, None if words is None else int(words.sum())


def _perplexity(corpus: Corpus, first: int, last: int, sums: Sums, model: DocumentLM) -> Perplexity:
    """Perplexity of sentences first..last-1 from their sums."""
    sentences, tokens, oov, words = _counts(corpus, first, last)
    nats, word_nats, oov_nats, log_z, squares, means = sums
    if not nats < MOST_NATS * max(1, tokens):  # NaN is not
        raise LogProbError("a language model returned NaN or has no probability left for the text")
    ends, error = model.head.predicts_end, None
    if not model.head.normalised:
        n = tokens + sentences * ends
        variance = squares / n - (log_z / n) ** 2
        error = LogNormalisers(log_z / n, math.sqrt(max(0.0, variance)))
    figures = sentences, tokens, oov, nats, word_nats, oov_nats, error
    return Perplexity(
        *figures, predicts_end=ends, sentence_means=means, causal=model.causal, words=words
    )


def _interpolated(model: DocumentLM, reading: Reading, nll: Tensor) -> Tensor:
    """−log p (N,) of a reading's targets, from that of the head."""
    sizes = [len(positions.words) for positions, _ in reading.parts]
    log_probs, targets = torch.split(-nll, sizes), torch.split(reading.targets, sizes)
    parts = [
        model.interpolated(part, words, positions.context, contexts)
        for (positions, contexts), part, words in zip(
            reading.parts, log_probs, targets, strict=True
        )
    ]
    return -torch.cat(parts)


def perplexity_of_ngrams(
    model: NGramModel, corpus: Corpus, *, per_document: bool = False
) -> Perplexity:
    """Perplexity of a corpus with at least a word; NGramError if it overflows."""
    nats = -model.scores(corpus.tokens, corpus.sentences)

    def of_sentences(first: int, last: int) -> Perplexity:
        sentences, tokens, oov, words = _counts(corpus, first, last)
        alone, ends, unknown = nats[first:last].sum(axis=0).tolist()
        if not max(alone, alone + ends) < MOST_NATS * max(1, tokens):
            raise NGramError("the n-gram model has no probability left for the text")
        figures = sentences, tokens, oov, alone + ends, alone, unknown
        return Perplexity(*figures, normalised=model.normalised, words=words)

    whole = of_sentences(0, corpus.n_sentences)
    spans = pairwise(corpus.documents.tolist())
    documents = tuple(of_sentences(*span) for span in spans) if per_document else None
    return replace(whole, documents=documents)
