"""Contextual LSTMs through the command line: topics learned, saved, and used without the text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.cli import run

TEXT = "\n\n".join(
    "\n".join(sentence for _ in range(2)) + "\nit is here\n"
    for sentence in ("the lamp is lit", "the boat is old", "no lamp burns", "a boat sinks")
)
LISTS = [["the lamp is lit", "a lamp", "it is old"], ["it is dark", "the boat", "so it burns"]]
TRAIN = "train-lm --train text --valid text -q --embed 4 --hidden 6 --epochs 2 --streams 2"


@pytest.fixture
def learners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A learner in the place of k-means, and the seeds with which it was called."""
    from lm.composition import TOPIC_MODELS

    seeds: list[int] = []

    def learn(counts: Any, topics: int, seed: int) -> tuple[NDArray[np.float64], ...]:
        seeds.append(seed)
        rng = np.random.default_rng(seed)
        return rng.normal(size=(counts.shape[1], topics)), rng.normal(size=topics)

    monkeypatch.setitem(TOPIC_MODELS, "kmeans", learn)
    monkeypatch.setattr("rerank.pipeline.recipes.find_spec", lambda name: object())
    monkeypatch.chdir(tmp_path)
    Path("text").write_text(TEXT, encoding="utf-8")
    return seeds


@pytest.mark.parametrize("name", ["clstm-prevsent-sentseg", "clstm-sentseg-paraseg"])
def test_a_model_with_topics_is_trained_measured_scored_and_searched(
    name: str, learners: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    from lm.checkpoint import load_model
    from lm.contexts.topics import Topics

    assert run(f"{TRAIN} --model {name} --topics-number 3 --seed 5 --out folder".split()) == 0
    assert learners == [5]
    saved = load_model(Path("folder"))
    assert isinstance(saved.model.context, Topics)
    topics = saved.model.context.topics
    assert topics.terms.shape == (len(saved.vocabulary), 4)
    assert topics.terms[3:, 0].all()
    assert not topics.terms[:3].any()
    assert saved.model.config.topics_number == 3
    assert run(["perplexity", "--lm", "folder", "text", "--format", "json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 40
    lists = [f"{t} ||| {words} ||| tm= 0 ||| 0\n" for t, own in enumerate(LISTS) for words in own]
    Path("lists").write_text("".join(lists), encoding="utf-8")
    weights = {"schema": 1, "weights": {"tm": [1.0], "lm": [1.0], "lmoov": [0.0]}}
    Path("w.json").write_text(json.dumps(weights), encoding="utf-8")
    use = "--lm lm=folder --kbest lists --no-docs one --no-cache -q --weights w.json --out best"
    assert run(f"decode {use}".split()) == 0
    assert len(Path("best").read_text(encoding="utf-8").splitlines()) == 2


def test_a_resumed_run_reads_its_topics_from_its_state(tmp_path: Path) -> None:
    from lm.corpus import Corpus
    from lm.model import Config, DocumentLM
    from lm.training.state import load_training, save_training
    from lm.training.trainer import Settings, Trainer

    corpus = Corpus.of([[[3, 4], [5, 6]], [[4, 4], [6]]] * 4)

    def trainer(seed: int) -> Trainer:
        model = DocumentLM.seeded(Config("clstm-paraseg", 7, 3, 4, topics_number=3), seed)
        return Trainer(model, corpus, corpus, settings=Settings(averaging=0.5))

    first, second = trainer(1), trainer(2)
    next(iter(first.run()))
    save_training(tmp_path, first)
    load_training(tmp_path, second)
    for own in (second.model, second.validated):
        found, expected = own.state_dict(), first.model.state_dict()
        assert found["context.topics.terms"].equal(expected["context.topics.terms"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model rnnlm --topics-number 5", "'rnnlm' has no topics, found a number 5 of them"),
        ("--model codclm --topic-model lda", "'codclm' has no topics, found a model lda of them"),
        ("--model clstm-sentseg --topics-number 5", "topics, 5, found 4; ask for fewer"),
        ("--model clstm-sentseg --context-noise 0.1", "clstm-sentseg reads no target context"),
        ("--model clstm-prevsent --attention 5", "has no attention"),
    ],
)
def test_options_without_use_and_texts_that_are_too_short_are_refused(
    options: str, message: str, learners: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{TRAIN} {options} --out folder".split()) == 2
    assert message in capsys.readouterr().err
    assert not Path("folder").exists()


def test_training_without_scikit_learn_names_the_extra(
    learners: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rerank.pipeline.recipes.find_spec", lambda name: None)
    assert run(f"{TRAIN} --model clstm-prevsent --out folder".split()) == 2
    message = "training needs scikit-learn: pip install 'rerank-mt[topics]'"
    assert message in capsys.readouterr().err
