"""The settings of a training, as the options of `train-lm` give them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of the training of a language model: the options of `train-lm`.

    None stands for the value of the recipe (`lm.training.settings`); fusion, head, encoder,
    sentence_recurrence, source_context, relation_classifier: None for those of the model.
    documents: a name of `lm.corpus.DOCUMENTS`; unknown: word of the texts that stands for unknown
    words. backward: whether sentences are read from right to left; reverse_documents: whether
    documents are read from the last sentence to the first; longest: most words of a sentence to
    train on, None for any number; across_documents: whether contexts cross the ends of documents;
    passages: sentences of a passage, of which the last one alone is predicted, None for documents.
    size: a name of `lm.training.settings`, whose values go before those of the recipe.
    source_vocabulary: most words of the source sentences' vocabulary, None for as many as
    `vocabulary`. source_lm: folder of a model of source text (`rerank.pipeline.source_models`).
    """

    model: str
    recipe: str = "strong"
    size: str | None = None
    embed: int | None = None
    hidden: int | None = None
    layers: int | None = None
    recurrence: str | None = None
    tied: bool | None = None
    head: str | None = None
    backward: bool | None = None
    reverse_documents: bool | None = None
    fusion: str | None = None
    attention: int | None = None
    hash_size: int | None = None
    hash_order: int | None = None
    thought: int | None = None
    topic_model: str | None = None
    topics_number: int | None = None
    encoder: str | None = None
    sentence_recurrence: str | None = None
    source_context: str | None = None
    relation_classifier: str | None = None
    documents: str = "blank"
    unknown: str | None = None
    initialisation: str | None = None
    vocabulary: int | None = None
    min_count: int | None = None
    source_vocabulary: int | None = None
    source_lm: Path | None = None
    longest: int | None = None
    across_documents: bool = False
    passages: int | None = None
    epochs: int | None = None
    minutes: float | None = None
    seed: int = 1
    optimiser: str | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    clip: float | None = None
    schedule: str | None = None
    validations: int | None = None
    patience: int | None = None
    streams: int | None = None
    segment: int | None = None
    segments: str | None = None
    accumulate: int | None = None
    levels: str | None = None
    auxiliary_weight: float | None = None
    dropout: float | None = None
    locked_dropout: float | None = None
    word_dropout: float | None = None
    weight_dropout: float | None = None
    context_dropout: float | None = None
    context_noise: float | None = None
    averaging: float | None = None
    objective: str | None = None
    negatives: int | None = None
    device: str = "auto"
    precision: str | None = None
    threads: int | None = None

    def values(self, record: type[DataclassInstance]) -> dict[str, Any]:
        """Values, but for None, of the fields that a dataclass has, too."""
        values = {field.name: getattr(self, field.name, None) for field in fields(record)}
        return {name: value for name, value in values.items() if value is not None}
