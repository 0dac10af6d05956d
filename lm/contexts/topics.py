"""Discrete topics of what was read, as learned embeddings (the contextual LSTM).

Ghosh et al. 2016, arXiv:1602.06291, §3.3.1: PrevSentTopic, the topic of the previous sentence;
SentSegTopic, that of the current sentence's words so far; ParaSegTopic, that of the paragraph's
words so far. Theirs come from a supervised topic model that is not public; here they are learned
from the training text (`lm.topics`). A paragraph is a document here: `paragraphs` of
`lm.corpus.DOCUMENTS` reads a text whose paragraphs are marked so. The topic at a word is that of
the words up to it, itself included; before the first word that counts, and without a previous
sentence, it is topic 0, which has an embedding too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.composition import TOPIC_MODELS, load
from lm.contexts import Context, GivenContext
from lm.corpus import Corpus
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows
from lm.side_information import labels_of, n_labels
from lm.topics import TOPICS, TopicModel
from lm.vocabulary import START


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
