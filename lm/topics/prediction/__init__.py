"""Prediction of the topic of the next sentence, from the sentences and topics before it.

Ghosh et al. 2016, arXiv:1602.06291, §5: log p(T_{i+1} | s_i, T_i). Topics are labels that a file
gives each sentence: of a topic model, of people, or any other discrete feature. A predictor is a
choice of what is read and of what reads it, a name of `lm.composition.TOPIC_PREDICTORS`.

What the paper leaves open, and what is done here: the topic is predicted once, after the last word
of a sentence; every sentence begins with `<s>`, so that one without words is read, too; the topic
of a sentence enters every cell, the first one included; a paragraph is a document
(`lm.corpus.DOCUMENTS` has texts whose paragraphs are marked).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.batches import Segment
from lm.composition import RECURRENCES, TOPIC_INPUTS, TOPIC_PREDICTORS, load
from lm.corpus import Corpus
from lm.noise import Noise
from lm.sentences import Rows
from lm.side_information import n_labels
from lm.vocabulary import SPECIAL

TARGETS = ("topic", "joint")
NONE = -1  # no topic, where there is no sentence


@dataclass(frozen=True, slots=True)
class PredictorConfig:
    """Shape of a predictor. `words` and `labels` are sizes of vocabularies, special words included.

    architecture: a name of `lm.composition.TOPIC_PREDICTORS`; inputs: of `TOPIC_INPUTS`;
    given_next_words: whether the words that are read are those of the sentence whose topic is
    predicted, and the topic that of the sentence before (§5.3); target: `joint` predicts the words
    that are read as well. recurrence: of `RECURRENCES`, None for the peephole LSTM of eq. 1;
    thought: size of thought vectors, None for H/8. ValueError for what is not possible.
    """

    words: int
    labels: int
    architecture: str = "unrolled"
    inputs: str = "words+topics"
    given_next_words: bool = False
    target: str = "topic"
    embed: int = 128
    hidden: int = 256
    layers: int = 1
    recurrence: str | None = None
    thought: int | None = None

    def __post_init__(self) -> None:
        for name, known in (
            ("architecture", TOPIC_PREDICTORS),
            ("inputs", TOPIC_INPUTS),
            ("target", TARGETS),
            ("recurrence", RECURRENCES),
        ):
            if (value := getattr(self, name)) is not None and value not in known:
                raise ValueError(f"no {name} {value!r} is known; there are {', '.join(known)}")
        if not all(len(SPECIAL) <= size < 1 << 31 for size in (self.words, self.labels)):
            raise ValueError("a vocabulary has 3 to 2,147,483,647 words")
        sizes = self.embed, self.hidden, self.thought or 1
        if not (all(1 <= size <= 1 << 16 for size in sizes) and 1 <= self.layers <= 64):
            raise ValueError("a predictor has sizes of 1 to 65,536, and 1 to 64 layers")
        if not self.reads("words"):
            if self.given_next_words:
                raise ValueError(f"inputs {self.inputs} have no words of the next sentence")
            if self.target == "joint":
                raise ValueError(f"inputs {self.inputs} have no words for a joint target")
        if self.thought is not None and not self.reads("thought"):
            raise ValueError(f"inputs {self.inputs} have no thought vector of a size")

    def reads(self, what: str) -> bool:
        """Whether `words`, `topics` or `thought` is an input."""
        return what in TOPIC_INPUTS[self.inputs]

    @property
    def topics(self) -> int:
        """C, the number of topics, that of `<unk>` included."""
        return n_labels(self.labels)

    def as_json(self) -> dict[str, object]:
        """The fields by name, without those that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class LabelledText:
    """Sentences, and what is known and wanted when each of them has been read.

    known: (S,) topic that is known of a sentence, that of itself or of the one before, `NONE`
    where there is none; targets: (S,) topic that is to be predicted, `NONE` where none is.
    """

    corpus: Corpus
    known: NDArray[np.int64]
    targets: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus, config: PredictorConfig) -> LabelledText:
        """A corpus with labels (`corpus.side["topics"]`) as a predictor reads it.

        The first sentence of a document is no next sentence, so that its topic is not predicted.
        Where words are no input, all sentences are empty.
        """
        topics = topics_of(corpus)
        before, after = (np.full(len(topics), NONE) for _ in range(2))
        follows = np.ones(len(topics), dtype=np.bool_)
        follows[corpus.documents[:-1][np.diff(corpus.documents) > 0]] = False
        place = np.flatnonzero(follows)
        before[place], after[place - 1] = topics[place - 1], topics[place]
        if not config.reads("words"):
            corpus = Corpus(corpus.tokens[:0], corpus.sentences * 0, corpus.documents)
        if config.given_next_words:
            return cls(corpus, before, np.where(follows, topics, NONE))
        return cls(corpus, topics, after)


def topics_of(corpus: Corpus) -> NDArray[np.int64]:
    """Topics (S,) of the sentences of a corpus: 0 for `<unk>`, then the other labels."""
    labels = corpus.side["topics"].tokens.astype(np.int64)
    return np.maximum(labels - (len(SPECIAL) - 1), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What a predictor says of the M sentences of a segment that have a target.

    logits: (M, C); targets: (M,) topics; word_nll: Σ −log p of the words that a joint target
    predicts, 0 without one; contexts: (B rows) after the segment.
    """

    logits: Tensor
    targets: Tensor
    word_nll: Tensor
    contexts: Rows

    def nll(self) -> Tensor:
        """−log p (M,) of the topics, in nats."""
        return F.cross_entropy(self.logits, self.targets, reduction="none")

    @property
    def correct(self) -> int:
        """Number of targets that are the most probable topic, the first of equal ones."""
        return int((self.logits.argmax(dim=1) == self.targets).sum())


class TopicPredictor(nn.Module):
    """Base of the predictors: embeddings of words (V, K) and topics (C, K), and the softmax.

    p(T) = softmax(W h + b), where h are the H features of the subclass. (H + 1)C parameters, VK
    and CK with words and topics as inputs.
    """

    inputs: ClassVar[tuple[str, ...]] = ("words", "topics")
    targets: ClassVar[tuple[str, ...]] = ("topic",)

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__()
        self.config = config
        for field, value, possible in (
            *(("inputs", one, self.inputs) for one in TOPIC_INPUTS[config.inputs]),
            ("target", config.target, self.targets),
        ):
            if value not in possible:
                raise ValueError(
                    f"architecture {config.architecture} has no {field} {value!r}, but "
                    f"{', '.join(possible)}"
                )
        width, C = config.embed, config.topics
        self.embedding = _table(config.words, width) if config.reads("words") else None
        self.topics = _table(C, width) if config.reads("topics") else None
        self.output = nn.Linear(config.hidden, C)

    def start(self, batch: int) -> Rows:
        """Contexts (B rows) of the first sentences of documents."""
        raise NotImplementedError

    def read(
        self,
        text: LabelledText,
        segment: Segment,
        contexts: Rows,
        noise: Noise | None = None,
        *,
        words: bool = True,
    ) -> Predictions:
        """Predictions after the sentences of a segment.

        contexts: (B rows) after the previous segment; replaced where a document begins. words:
        whether `word_nll` is wanted, which takes most of the time where there is a joint target.
        """
        raise NotImplementedError

    def predicted(
        self, text: LabelledText, chosen: NDArray[np.int64], features: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits and targets of those of the sentences `chosen` (N,) with a target.

        features: (N, H).
        """
        targets = torch.from_numpy(text.targets[chosen]).to(features.device)
        wanted = targets >= 0
        return self.output(features[wanted]), targets[wanted]


def _table(rows: int, columns: int) -> nn.Embedding:
    """Embeddings of U(±0.1)."""
    table = nn.Embedding(rows, columns)
    nn.init.uniform_(table.weight, -0.1, 0.1)
    return table


def topic_vectors(table: nn.Embedding, known: NDArray[np.int64]) -> Tensor:
    """Embeddings (M, K) of topics (M,); 0 for `NONE`."""
    ids = torch.from_numpy(known).to(table.weight.device)
    vectors: Tensor = table(ids.clamp(min=0))
    return vectors * (ids >= 0)[:, None]


def make(config: PredictorConfig, seed: int = 0) -> TopicPredictor:
    """A new predictor, its weights drawn by the seed; ValueError if there is none of this shape."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found: TopicPredictor = load(TOPIC_PREDICTORS[config.architecture])(config)
    return found
