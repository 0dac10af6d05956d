"""Topic predictors on disk: safetensors, two vocabularies, a manifest `topic-prediction.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from lm.checkpoint import check_shapes, checked, read_vocabulary, write_vocabulary
from lm.model import WithoutMemory
from lm.shards import ModelError, read_manifest, write_tensors
from lm.topics.prediction import PredictorConfig, TopicPredictor, make
from lm.topics.prediction.evaluation import Transitions
from lm.vocabulary import Vocabulary

MANIFEST = "topic-prediction.json"
TRANSITIONS = "baseline.transitions"  # name of the tensor beside those of the predictor


@dataclass(frozen=True, slots=True, eq=False)
class SavedPredictor:
    """A predictor, the vocabularies of its words and topics, and the training text's transitions.

    labels: the topics, in the ids of `lm.topics.prediction.topics_of`.
    """

    model: TopicPredictor
    vocabulary: Vocabulary
    labels: Vocabulary
    transitions: Transitions

    def save(self, folder: Path, about: Mapping[str, object]) -> None:
        """Write a folder; about: data and settings of the training."""
        content = {
            "config": self.model.config.as_json(),
            "vocabulary": write_vocabulary(folder, self.vocabulary),
            "labels": write_vocabulary(folder, self.labels),
            "about": dict(about),
        }
        counts = torch.from_numpy(self.transitions.counts)
        tensors = {**self.model.state_dict(), TRANSITIONS: counts}
        write_tensors(folder / MANIFEST, "weights", tensors, content)

    @classmethod
    def load(cls, folder: Path, device: torch.device | None = None) -> SavedPredictor:
        """The predictor of a folder; ModelError if it holds none, or an altered one."""
        path = folder / MANIFEST
        manifest = read_manifest(path)
        content = manifest.content
        try:
            config = checked(PredictorConfig, content["config"])
            with WithoutMemory():
                shape = make(config).state_dict()
        except (TypeError, KeyError, ValueError) as fault:
            raise ModelError(f"{path}: not a valid predictor of topics: {fault}") from None
        tensors = manifest.tensors()
        counts = tensors.pop(TRANSITIONS, torch.zeros(0))
        check_shapes(shape, tensors, path)
        if (counts.ndim, counts.dtype, counts.shape[1:]) != (2, torch.int64, (3,)) or not (
            (counts >= 0).all() and (counts[:, :2] < config.topics).all()
        ):
            raise ModelError(f"{path}: expected counts of topics, found others; train it again")
        words = read_vocabulary(path, content.get("vocabulary"), config.words, 1 << 20)
        labels = read_vocabulary(path, content.get("labels"), config.labels, 1 << 20)
        model = make(config)
        model.load_state_dict(tensors)
        own = Transitions(counts.numpy(), config.topics)
        return cls(model.to(device).eval(), words, labels, own)
