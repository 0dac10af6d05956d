"""The configuration of a model: which parts it has, and their sizes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lm.composition import (
    ENCODERS,
    FUSIONS,
    HEADS,
    RECURRENCES,
    RELATION_CLASSIFIERS,
    SOURCE_CONTEXTS,
    TOPIC_MODELS,
)
from lm.side_information import KINDS
from lm.vocabulary import SPECIAL


@dataclass(frozen=True, slots=True)
class Config:
    """Shape of a model. `vocabulary` is V, the three special words included.

    recurrence: a name of `lm.composition.RECURRENCES`; fusion, head: of `lm.composition.FUSIONS`
    and `HEADS`. None stands for the part of the composition; recurrence and tied of a model are
    None only where that decides (`lm.parts.decided`). attention: size A of the attention's hidden
    layer, None for H. hash_size, hash_order: of the parts with hashed features, None for theirs.
    encoder: a name of `lm.composition.ENCODERS`, of the sentences of a context;
    sentence_recurrence: of `RECURRENCES`, over these sentences; None for those of the part.
    backward: whether the model reads sentences from right to left; reverse_documents: whether it
    reads documents from the last sentence to the first (`lm.corpus`). source_words,
    relation_labels, topic_labels: sizes of the vocabularies of side information, the three special
    words included (`lm.side_information.KINDS`); None for models that have none of that kind.
    source_context: a name of `lm.composition.SOURCE_CONTEXTS`, relation_classifier: of
    `lm.composition.RELATION_CLASSIFIERS`, None for that of the part. topic_model: of
    `lm.composition.TOPIC_MODELS`, topics_number: of the contexts with topics, None for theirs.
    thought: size of thought vectors, None for H/8.
    """

    model: str
    vocabulary: int
    embed: int = 128
    hidden: int = 256
    recurrence: str | None = None
    layers: int = 1
    tied: bool | None = None
    head: str | None = None
    backward: bool | None = None
    fusion: str | None = None
    attention: int | None = None
    hash_size: int | None = None
    hash_order: int | None = None
    reverse_documents: bool | None = None
    encoder: str | None = None
    sentence_recurrence: str | None = None
    source_words: int | None = None
    source_context: str | None = None
    relation_labels: int | None = None
    thought: int | None = None
    topic_model: str | None = None
    topics_number: int | None = None
    relation_classifier: str | None = None
    topic_labels: int | None = None

    def __post_init__(self) -> None:
        for name in (self.recurrence, self.sentence_recurrence):
            if name is not None and name not in RECURRENCES:
                raise ValueError(f"no recurrence {name!r} is known")
        if self.encoder is not None and self.encoder not in ENCODERS:
            known = ", ".join(ENCODERS)
            raise ValueError(f"no encoder {self.encoder!r} is known; there are {known}")
        if self.source_context is not None and self.source_context not in SOURCE_CONTEXTS:
            known = ", ".join(SOURCE_CONTEXTS)
            raise ValueError(
                f"no source context {self.source_context!r} is known; there are {known}"
            )
        if self.relation_classifier not in (None, *RELATION_CLASSIFIERS):
            known = ", ".join(RELATION_CLASSIFIERS)
            raise ValueError(
                f"no relation classifier {self.relation_classifier!r} is known; there are {known}"
            )
        if self.head is not None and self.head not in HEADS:
            raise ValueError(f"no head {self.head!r} is known; there are {', '.join(HEADS)}")
        if self.fusion is not None and self.fusion not in FUSIONS:
            raise ValueError(f"no fusion {self.fusion!r} is known; there are {', '.join(FUSIONS)}")
        units = self.hidden if self.attention is None else self.attention
        sizes = (self.vocabulary, self.embed, self.hidden, self.layers, units)
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(f"a model has sizes that are whole numbers, not {sizes}")
        if self.vocabulary < len(SPECIAL):
            raise ValueError(f"a model has at least 3 words, not {self.vocabulary}")
        if self.vocabulary >= 1 << 31:
            raise ValueError("a model has at most 2,147,483,647 words")
        if not all(1 <= size <= 1 << 16 for size in (self.embed, self.hidden, units)):
            raise ValueError("a model has sizes of 1 to 65,536")
        if not 1 <= self.layers <= 64:
            raise ValueError(f"a model has 1 to 64 layers, not {self.layers}")
        if self.hash_size is not None and not 1 <= self.hash_size < 1 << 31:
            raise ValueError(f"a table has 1 to 2,147,483,647 slots, not {self.hash_size}")
        for size in (getattr(self, field) for field in KINDS.values()):
            if size is not None and not len(SPECIAL) <= size < 1 << 31:
                raise ValueError(f"side information has 3 to 2,147,483,647 words, not {size}")
        if self.thought is not None and not 1 <= self.thought <= 1 << 16:
            raise ValueError(f"a thought vector has 1 to 65,536 numbers, not {self.thought}")
        if self.topic_model not in (None, *TOPIC_MODELS):
            known = ", ".join(TOPIC_MODELS)
            raise ValueError(f"no topic model {self.topic_model!r} is known; there are {known}")
        if self.topics_number is not None and not 1 <= self.topics_number <= 1 << 16:
            raise ValueError(f"a model has 1 to 65,536 topics, not {self.topics_number}")
        if self.hash_order not in (None, 2, 3):
            raise ValueError(f"hashed n-grams have 2 or 3 words, not {self.hash_order}")

    def as_json(self) -> dict[str, object]:
        """The fields by name, without those that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}
