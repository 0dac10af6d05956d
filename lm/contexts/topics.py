"""Discrete topics of what was read, as learned embeddings (the contextual LSTM).

Ghosh et al. 2016, arXiv:1602.06291, §3.3.1: PrevSentTopic, the topic of the previous sentence;
SentSegTopic, that of the current sentence's words so far; ParaSegTopic, that of the paragraph's
words so far. Theirs come from a supervised topic model that is not public; here they are learned
(`lm.composition.TOPIC_MODELS`) from stretches of the training text. A paragraph is a document here:
`paragraphs` of `lm.corpus.DOCUMENTS` reads a text whose paragraphs are marked so. The topic at a
word is that of the words up to it, itself included; before the first word that counts, and without
a previous sentence, it is topic 0, which has an embedding too.

A topic model is a table of weights of words, and a weight of each topic. The topic of a sequence is
that of the largest sum, so that a prefix needs a vector of sums and an addition a word. Weights are
whole numbers: no order of words, batch, device or rounding decides a topic.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.checkpoint import check_shapes, tensors_of, write_tensors
from lm.composition import TOPIC_MODELS, load
from lm.contexts import Context, GivenContext
from lm.corpus import Corpus
from lm.folders import ModelError, read_manifest, read_vocabulary, write_vocabulary
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows
from lm.side_information import labels_of, n_labels
from lm.vocabulary import SPECIAL, START, Vocabulary

UNIT = 1 << 10  # of whole numbers in a weight of 1: a nat, or a cosine
TOPICS = 100
AT_ONCE = 1024  # sentences whose sums are held at once
Weights: TypeAlias = NDArray[np.float64]
Learner: TypeAlias = Callable[[Any, int, int], tuple[Weights, Weights]]
"""Counts (M, V) of the words of M texts, a number of topics N and a seed → (V, N) and (N,)."""
STRETCH = 10  # sentences: single ones have too few words to learn topics from
MOST_STRETCHES = 50_000  # drawn from longer texts
COMMON = 0.1  # share of the stretches from which on a word is too common to have a topic
RARE = 2  # stretches that a word is in, at least
DIMENSIONS = 100
PASSES = 5
WORDS_PRIOR = 0.01
MANIFEST = "topics.json"


class TopicModel(nn.Module):
    """Topics of sequences of words: 1 + argmax_z (prior_z + Σ_i weight[w_i, z]).

    The lowest z of equal sums; 0 where no word counts. terms: (V, 1 + N) of each word: 1 if it
    counts, as words do that the topics were learned with, then its weights; prior: (N,). Before
    `learn` the weights are random.
    """

    terms: Tensor
    prior: Tensor

    def __init__(self, words: int, topics: int = TOPICS) -> None:
        super().__init__()
        terms = (torch.rand(words, 1 + topics) * UNIT).int()
        terms[:, 0] = 1
        terms[: len(SPECIAL)] = 0
        self.register_buffer("terms", terms)
        self.register_buffer("prior", torch.zeros(topics, dtype=torch.int32))

    @property
    def topics(self) -> int:
        """N, beside topic 0 of sequences in which no word counts."""
        return len(self.prior)

    def of_words(self, words: Tensor) -> Tensor:
        """What each of M words adds to sums, (M, 1 + N)."""
        return self.terms[words].long()

    def of_sums(self, sums: Tensor) -> Tensor:
        """Topics (M,) of sequences, given the sums (M, 1 + N) of their words."""
        best = (sums[:, 1:] + self.prior).argmax(dim=1)
        return torch.where(sums[:, 0] > 0, best + 1, 0)

    def of_sentence(self, words: NDArray[np.int32]) -> int:
        """The topic of a sentence."""
        ids = torch.from_numpy(words.astype(np.int64)).to(self.terms.device)
        return int(self.of_sums(self.of_words(ids).sum(dim=0, keepdim=True))[0])

    def of_corpus(self, corpus: Corpus) -> NDArray[np.int64]:
        """The topics (S,) of the sentences of a corpus; O(words · N) time."""
        topics = [np.zeros(0, dtype=np.int64)]
        for begin in range(0, corpus.n_sentences, AT_ONCE):
            bounds = corpus.sentences[begin : begin + AT_ONCE + 1]
            ids = torch.from_numpy(corpus.tokens[bounds[0] : bounds[-1]].astype(np.int64))
            terms = self.of_words(ids.to(self.terms.device))
            rows = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            sums = terms.new_zeros(len(bounds) - 1, terms.shape[1])
            sums.index_add_(0, torch.from_numpy(rows).to(terms.device), terms)
            topics.append(self.of_sums(sums).cpu().numpy())
        return np.concatenate(topics)

    def learn(self, learner: Learner, corpus: Corpus, seed: int) -> None:
        """Take the weights learned from a text; ValueError if it is too short for the topics."""
        kept, counts = counts_of(corpus, len(self.terms), seed)
        if counts.shape[0] < self.topics:
            raise ValueError(
                f"expected at least as many stretches of the training text as topics, "
                f"{self.topics}, found {counts.shape[0]}; ask for fewer topics"
            )
        weights, prior = learner(counts, self.topics, seed)
        terms = torch.zeros_like(self.terms)
        terms[kept, 0] = 1
        centred = weights - weights.mean(axis=1, keepdims=True), prior - prior.max()
        whole = (np.rint(values * UNIT).astype(np.int32) for values in centred)
        of_words, of_topics = map(torch.from_numpy, whole)
        terms[kept, 1:] = of_words.to(terms)
        self.terms.copy_(terms)
        self.prior.copy_(of_topics)


def counts_of(corpus: Corpus, words: int, seed: int) -> tuple[NDArray[np.int64], Any]:
    """Ids (V′,) of the words that may have a topic, ascending, and their counts (M, V′), CSR.

    A row is a stretch of up to `STRETCH` sentences of a document. Words that are too common or too
    rare are left out, unless nothing remains; `<unk>` always is. O(words) time.
    """
    from scipy.sparse import csr_matrix

    spans = pairwise(corpus.documents.tolist())
    begins = np.concatenate([np.arange(a, b, STRETCH) for a, b in spans])
    bounds = corpus.sentences[np.append(begins, corpus.n_sentences)]
    rows = np.repeat(np.arange(len(begins)), np.diff(bounds))
    ones = np.ones(len(rows))
    counts = csr_matrix((ones, (rows, corpus.tokens)), shape=(len(begins), words))
    if len(begins) > MOST_STRETCHES:
        rng = np.random.default_rng(seed)
        counts = counts[np.sort(rng.permutation(len(begins))[:MOST_STRETCHES])]
    present = counts.astype(bool).sum(axis=0).A1
    present[: len(SPECIAL)] = 0
    kept = np.flatnonzero((present >= RARE) & (present <= COMMON * counts.shape[0]))
    if not len(kept):
        kept = np.flatnonzero(present)
    counts = counts[:, kept]
    return kept, counts[np.flatnonzero(counts.sum(axis=1).A1)]


def learn_kmeans(counts: Any, topics: int, seed: int) -> tuple[Weights, Weights]:
    """Weights of the words whose sums are cosines times a length, and a prior of 0.

    counts: (M, V) in CSR form. A text has the vector x = Σ_w idf_w v_w, where v_w is the word's row
    of the right singular vectors of the TF-IDF matrix (Deerwester et al. 1990). The topic is the
    centroid m_z of the smallest angle to x, i.e. of the largest Σ_w idf_w v_w · m_z / |m_z|.
    """
    from scipy.sparse import diags
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.exceptions import ConvergenceWarning

    n_texts, n_words = counts.shape
    idf = np.log(n_texts / counts.astype(bool).sum(axis=0).A1) + 1.0
    scaled = counts @ diags(idf)
    if n_words > DIMENSIONS:
        svd = TruncatedSVD(DIMENSIONS, random_state=seed).fit(scaled)
        vectors = svd.components_.T
    else:
        vectors = np.eye(n_words)
    texts = scaled @ vectors
    lengths = np.linalg.norm(texts, axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct texts than topics
        model = KMeans(topics, n_init=1, random_state=seed).fit(texts / np.maximum(lengths, 1e-12))
    centroids = model.cluster_centers_
    norms = np.linalg.norm(centroids, axis=1, keepdims=True)
    directions = centroids / np.maximum(norms, 1e-12)
    return idf[:, None] * (vectors @ directions.T), np.zeros(topics)


def learn_lda(counts: Any, topics: int, seed: int) -> tuple[Weights, Weights]:
    """Weights log p(w|z) (V, N) and log p(z) (N,) of latent Dirichlet allocation.

    Blei et al. 2003, learned online (Hoffman et al. 2010). counts: (M, V) in CSR form. The topic of
    a sequence is then the most probable if all its words have the same: LDA itself gives each word
    its topic, and needs iterations for each prefix. p(w|z) is the mean of its posterior, p(z) the
    share of the training words. Priors: 50/N of a text's topics (Griffiths & Steyvers 2004), since
    sparser priors leave most short texts to a topic of frequent words; `WORDS_PRIOR` of words.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        topics,
        doc_topic_prior=min(1.0, 50 / topics),
        topic_word_prior=WORDS_PRIOR,
        learning_method="online",
        max_iter=PASSES,
        batch_size=512,
        random_state=seed,
    )
    of_words = model.fit(counts).components_.T
    totals = of_words.sum(axis=0)
    return np.log(of_words / totals), np.log(totals / totals.sum())


@dataclass(frozen=True, slots=True, eq=False)
class SavedTopics:
    """A topic model and the vocabulary whose ids it reads."""

    model: TopicModel
    vocabulary: Vocabulary

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write a folder: weights, vocabulary and manifest; about: where the topics come from."""
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
        tensors = tensors_of(manifest)
        sizes = tensors.get("prior"), tensors.get("terms")
        if any(size is None or size.ndim != n for n, size in enumerate(sizes, 1)):
            raise ModelError(f"{path}: expected a topic model, found other tensors; learn it again")
        n, v = (len(size) for size in sizes if size is not None)
        if (topics, words) != (n, v) or n < 1 or v < len(SPECIAL):
            raise ModelError(
                f"{path}: expected weights of {topics!r:.20} topics and {words!r:.20} words, found "
                f"{n} and {v}; copy the whole folder again"
            )
        model = TopicModel(v, n)
        check_shapes(model.state_dict(), tensors, path)
        model.load_state_dict(tensors)
        digest, numbers = manifest.content.get("vocabulary"), tensors["terms"].numel()
        return cls(model, read_vocabulary(path, digest, v, numbers))


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
    strongest = []
    for z, (begin, end) in enumerate(pairwise(bounds)):
        counts = np.bincount(tokens[begin:end], minlength=len(weights))
        shares = counts * weights[:, z].cpu().numpy().astype(np.int64)
        best = np.argsort(-shares, kind="stable")[:number]
        strongest.append([int(word) for word in best if shares[word] > 0])
    return strongest


class Topics(Context):
    """Base: the value is the embeddings (K columns each) of F topics side by side.

    previous, sentence, paragraph: which topics, in this order, each with embeddings apart:
    F(T + 1)K parameters for T topics. Tensors of a context: the topic of the previous sentence
    (B, 1), then the sums (B, 1 + T) of the paragraph's words, if it has these.
    topic_model: a name of `lm.composition.TOPIC_MODELS`; topics_number: T.
    """

    previous: ClassVar[bool] = False
    sentence: ClassVar[bool] = False
    paragraph: ClassVar[bool] = False
    averages = False
    merges_sentences = True
    may_carry_state = True
    options = ("topic_model", "topics_number")
    learns_with = "sklearn"

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        topic_model: str = "kmeans",
        topics_number: int = TOPICS,
    ) -> None:
        super().__init__(embedding, recurrence)
        self.topic_model = topic_model
        self.topics = TopicModel(embedding.num_embeddings, topics_number)
        features = self.previous + self.sentence + self.paragraph
        shape = features, 1 + topics_number, embedding.embedding_dim
        # a parameter of three dimensions, since Muon is not for embeddings
        self.tables = nn.Parameter(torch.empty(shape).uniform_(-0.1, 0.1))
        self.width = features * embedding.embedding_dim

    def fit(self, corpus: Corpus, seed: int) -> None:
        """Learn the topics."""
        self.topics.learn(load(TOPIC_MODELS[self.topic_model]), corpus, seed)

    def blocks(self, tensor: Tensor) -> Sequence[Tensor]:
        """The embeddings of each topic."""
        return tensor.unbind()

    def start(self, batch: int) -> Rows:
        """No sentence, and no words."""
        return self._nothing(batch)

    def summary(self, sentences: ReadSentences) -> Rows:
        """The topic of each sentence, and the sums of its words."""
        positions = sentences.positions
        if not (self.previous or self.paragraph):
            return self._nothing(len(positions.last))
        sums = positions.sums(self.word_terms(positions.words))[positions.last]
        return self._rows(self.topics.of_sums(sums)[:, None], sums)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The last sentence's topic, and the sums of all words of the paragraph."""
        if not self.paragraph:
            return summary
        *topic, sums = summary.tensors
        return Rows.of(*topic, contexts.tensors[-1] + sums)

    def value(self, contexts: Rows) -> Tensor:
        """Embeddings (B, F · K) before the first word."""
        row = torch.arange(len(contexts), device=contexts.device)
        starts = torch.full_like(row, START)
        return self.word_values(contexts, row, self.word_terms(starts))

    def word_terms(self, words: Tensor) -> Tensor:
        """Terms of the topic model, (N, 1 + T)."""
        return self.topics.of_words(words)

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """Embeddings (N, F · K); query: sums (N, 1 + T) of the sentence's words so far."""
        topics = []
        if self.previous:
            topics.append(prepared.tensors[0][row, 0])
        if self.sentence:
            topics.append(self.topics.of_sums(query))
        if self.paragraph:
            topics.append(self.topics.of_sums(prepared.tensors[-1][row] + query))
        pairs = zip(topics, self.tables, strict=True)
        return torch.cat([F.embedding(topic, table) for topic, table in pairs], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The sentence's topic; with a paragraph its sorted words, whose sums are equal."""
        if self.paragraph:
            return np.sort(words).tobytes()
        return self.topics.of_sentence(words).to_bytes(4) if self.previous else b""

    def _nothing(self, batch: int) -> Rows:
        empty = self.topics.prior
        topic = empty.new_zeros(batch, 1, dtype=torch.long)
        return self._rows(topic, empty.new_zeros(batch, 1 + self.topics.topics, dtype=torch.long))

    def _rows(self, topic: Tensor, sums: Tensor) -> Rows:
        held = [topic] * self.previous + [sums] * self.paragraph
        return Rows.of(*(held or [topic[:, :0]]))


class PreviousTopic(Topics):
    """PrevSentTopic: sentences of the same topic leave equal contexts: search states are topics."""

    sentences = 1
    previous = True


class SentencePrefixTopic(Topics):
    """SentSegTopic: no other sentence is read."""

    sentences = 0
    per_word = reads_prefix = True
    sentence = True


class ParagraphPrefixTopic(Topics):
    """ParaSegTopic."""

    sentences = None
    per_word = reads_prefix = True
    paragraph = True


class PreviousAndSentencePrefixTopics(SentencePrefixTopic):
    """PrevSentTopic and SentSegTopic."""

    sentences = 1
    previous = True


class SentenceAndParagraphPrefixTopics(ParagraphPrefixTopic):
    """SentSegTopic and ParaSegTopic, the best model of the paper's Table 2."""

    sentence = True


class GivenTopic(GivenContext):
    """The embedding, of the size of a word's, of the label of the sentence that is read.

    Ghosh et al. 2016, eq. 1 with a T that no topic model infers: the topic of the source sentence,
    a dialog act, a speaker. `<unk>` has an embedding too, which is trained where the training text
    has it. (R − 2)K parameters for R words of the labels' vocabulary.
    """

    may_carry_state = True
    side_information: ClassVar[tuple[str, ...]] = ("topics",)
    options: ClassVar[tuple[str, ...]] = ("topic_labels",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, topic_labels: int
    ) -> None:
        super().__init__(embedding, recurrence)
        self.width = embedding.embedding_dim
        # not an `nn.Embedding`, whose rows would be taken for those of words
        table = torch.empty(n_labels(topic_labels), self.width).uniform_(-0.1, 0.1)
        self.table = nn.Parameter(table[None])

    def encoded(self, side: Rows) -> Rows:
        """Embeddings (B, K) of the labels."""
        return Rows.of(nn.functional.embedding(labels_of(side.tensors[0]), self.table[0]))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The embedding of the sentence's label."""
        return encoded
