"""Stages of a run: whose parameters, which losses."""

import pytest
import torch
from support.models import beside, config_of

from lm.batches import segments
from lm.corpus import encode
from lm.model import DocumentLM
from lm.reading import read
from lm.training.stages import LEVELS
from lm.vocabulary import Vocabulary
from lm.zoo import ZOO

VOCABULARY = Vocabulary((b"a", b"b", b"c"))


def model_of(name: str) -> DocumentLM:
    return DocumentLM.seeded(config_of(name, len(VOCABULARY), 4, 5, tied=False), 1)


def names(model: DocumentLM, parameters: object) -> set[str]:
    ids = {id(parameter) for parameter in parameters}  # type: ignore[attr-defined]
    return {name for name, parameter in model.named_parameters() if id(parameter) in ids}


@pytest.mark.parametrize("name", sorted(ZOO))
def test_the_auxiliary_loss_trains_the_parameters_that_the_context_names(name: str) -> None:
    model = model_of(name)
    text = beside(encode([b"a b", b"b c", b"c", b"a"], VOCABULARY))
    part = next(segments(text, [0], streams=1, length=4))
    reading = read(model, text, part, model.context.start(1))
    stated = model.context.auxiliary_parameters()
    if reading.auxiliary_loss.requires_grad:
        torch.autograd.backward(reading.auxiliary_loss)
    trained = [p for p in model.parameters() if p.grad is not None and p.grad.any()]
    assert names(model, trained) == names(model, stated)


@pytest.mark.parametrize("levels", ["together", "separate"])
@pytest.mark.parametrize("name", ["ccdclm", "hrnnlm"])
def test_usual_training_is_one_stage_of_all_parameters_and_losses(levels: str, name: str) -> None:
    model = model_of(name)
    (stage,) = LEVELS[levels](model)
    assert (stage.words, stage.sentences) == (True, True)
    assert names(model, stage.parameters) == {name for name, _ in model.named_parameters()}
    two = levels == "separate" and name == "hrnnlm"
    assert len(stage.groups) == 1 + two


def test_two_steps_train_the_sentence_level_and_then_all_the_rest() -> None:
    model = model_of("hrnnlm")
    sentences, words = LEVELS["two-step"](model)
    assert (sentences.words, sentences.sentences) == (False, True)
    assert (words.words, words.sentences) == (True, False)
    first, second = names(model, sentences.parameters), names(model, words.parameters)
    assert all(name.startswith(("context.upper", "context.next_words")) for name in first)
    assert not first & second
    assert first | second == {name for name, _ in model.named_parameters()}


def test_a_model_of_one_level_has_one_step() -> None:
    (stage,) = LEVELS["two-step"](model_of("rnnlm"))
    assert (stage.name, stage.words) == ("words", True)
    assert torch.is_tensor(stage.parameters[0])
