"""Topic predictors on disk."""

import json
from pathlib import Path

import pytest
import torch
from support.topic_prediction import DOCUMENTS, LABELS, TOPICS, V, configs, labelled, predictor

from lm.shards import ModelError, write_tensors
from lm.topics.prediction.evaluation import Transitions
from lm.topics.prediction.files import SavedPredictor
from lm.vocabulary import Vocabulary

WORDS = Vocabulary(tuple(f"w{n}".encode() for n in range(V - 3)))
LABEL_WORDS = Vocabulary(tuple(f"t{n}".encode() for n in range(LABELS - 3)))


@pytest.mark.parametrize("config", [configs()[n] for n in (0, 1, -1)])
def test_a_folder_gives_back_what_was_saved(config: object, tmp_path: Path) -> None:
    model = predictor(config)  # type: ignore[arg-type]
    transitions = Transitions.of(labelled(DOCUMENTS, TOPICS), 5)
    saved = SavedPredictor(model, WORDS, LABEL_WORDS, transitions)
    saved.save(tmp_path, {"seed": 1})
    again = SavedPredictor.load(tmp_path)
    assert again.model.config == config
    assert (again.vocabulary, again.labels) == (WORDS, LABEL_WORDS)
    assert again.transitions.counts.tolist() == transitions.counts.tolist()
    own, found = model.state_dict(), again.model.state_dict()
    assert own.keys() == found.keys()
    assert all(torch.equal(own[name], found[name]) for name in own)
    assert not again.model.training


def test_folders_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"topic-prediction\.json: cannot be read"):
        SavedPredictor.load(tmp_path)
    model = predictor(configs()[0])
    transitions = Transitions.of(labelled(DOCUMENTS, TOPICS), 5)
    SavedPredictor(model, WORDS, LABEL_WORDS, transitions).save(tmp_path, {})
    path = tmp_path / "topic-prediction.json"
    content = json.loads(path.read_text())
    config = content["config"]
    for change, message in (
        ({"config": config | {"inputs": "x"}}, "no inputs 'x' is known"),
        ({"config": config | {"hidden": 5}}, "tensors do not fit"),
        ({"config": config | {"hidden": "5"}}, "hidden is '5'"),
        ({"config": None}, "not a valid predictor of topics"),
        ({"shards": []}, "tensors do not fit"),
        ({"labels": content["vocabulary"]}, "expected a vocabulary of 7, found 9"),
        ({"labels": 1}, "expected a vocabulary's digest, found 1"),
    ):
        path.write_text(json.dumps(content | change))
        with pytest.raises(ModelError, match=message):
            SavedPredictor.load(tmp_path)


@pytest.mark.parametrize(
    "counts",
    [torch.zeros(2), torch.zeros(1, 3), torch.tensor([[5, 1, 1]]), torch.tensor([[1, 1, -1]])],
    ids=["shape", "type", "topic", "count"],
)
def test_counts_that_are_none_are_refused(counts: torch.Tensor, tmp_path: Path) -> None:
    model = predictor(configs()[0])
    SavedPredictor(model, WORDS, LABEL_WORDS, Transitions.of(labelled(DOCUMENTS, TOPICS), 5)).save(
        tmp_path, {}
    )
    path = tmp_path / "topic-prediction.json"
    content = json.loads(path.read_text())
    tensors = {**model.state_dict(), "baseline.transitions": counts}
    write_tensors(path, "weights", tensors, {k: v for k, v in content.items() if k != "shards"})
    with pytest.raises(ModelError, match="expected counts of topics"):
        SavedPredictor.load(tmp_path)
