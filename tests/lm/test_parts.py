"""Parts as the configuration names them, and those for which a context has no use."""

from functools import partial
from typing import Any

import pytest

from lm.composition import FUSIONS, RECURRENCES, Composition, load
from lm.contexts.bag import BagOfWords
from lm.contexts.previous_words import PreviousWords
from lm.fusions import Fusion, Input, Output
from lm.model import Config, DocumentLM
from lm.recurrences import Recurrence
from lm.zoo import ZOO


@pytest.mark.parametrize("name", FUSIONS)
def test_a_fusion_that_is_named_takes_the_place_of_the_models_own(name: str) -> None:
    model = DocumentLM(Config("drnnlm", 9, 3, 4, fusion=name))
    assert type(model.fusion) is load(FUSIONS[name])


@pytest.mark.parametrize(
    ("model", "fusion", "order", "additive"),
    [
        ("codclm", None, 1, True),
        ("codclm", "merge", 1, False),
        ("ccdclm", "output", 1, True),
        ("codclm", "input-sum", None, False),
        ("codclm", "input-merge", None, False),
        ("adclm", "merge", 1, False),
        ("dam", "merge", None, False),
        ("drnnlm", "output", 1, True),
    ],
)
def test_the_order_follows_from_the_fusion_that_is_named(
    model: str, fusion: str | None, order: int | None, additive: bool
) -> None:
    found = DocumentLM(Config(model, 9, 3, 4, fusion=fusion))
    assert (found.order, found.additive) == (order, additive)


def test_models_that_name_no_fusion_and_no_size_are_written_as_before() -> None:
    assert Config("adclm", 9).as_json().keys() == Config("rnnlm", 9).as_json().keys()
    assert not {"fusion", "attention", "head"} & Config("adclm", 9).as_json().keys()
    assert Config("adclm", 9, fusion="merge", attention=5).as_json()["attention"] == 5


def test_a_model_has_an_lstm_and_tied_matrices_unless_it_is_told_or_decides_otherwise() -> None:
    for name, given, found in (
        ("codclm", {}, ("lstm", True)),
        ("codclm", {"recurrence": "cifg", "tied": False}, ("cifg", False)),
        ("hrnnlm-lin", {"hash_size": 99}, (None, None)),
        ("hrnnlm-lin", {"hash_size": 99, "tied": False}, (None, None)),
    ):
        config = DocumentLM(Config(name, 9, 4, 4, **given)).config
        assert (config.recurrence, config.tied) == found
        assert Config(**config.as_json()) == config  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"recurrence": "htanh"}, "a recurrence of its own, found 'htanh'; leave that out"),
        ({"tied": True}, "has untied embeddings, found tied ones"),
        ({"embed": 5}, "expected as many columns as hidden units, found 5 and 4"),
        ({"head": "softmax"}, "a head of its own, found 'softmax'"),
        ({"fusion": "output"}, "a fusion of its own, found 'output'"),
        ({"hash_order": 2}, "has no hashed n-grams of words, found a length 2 of them"),
        ({"hash_size": 8}, "expected a hash size of at least 9"),
    ],
)
def test_choices_that_equations_leave_no_room_for_are_refused(
    given: dict[str, object], told: str
) -> None:
    shape = {"embed": 4, "hidden": 4, "hash_size": 99, **given}
    with pytest.raises(ValueError, match=told):
        DocumentLM(Config("rnnslm", 9, **shape))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        ("hrnnlm", {"encoder": "cnn"}, "'hrnnlm' has no choice of a sentence encoder, found 'cnn'"),
        ("codclm", {"sentence_recurrence": "gru"}, "no choice of a recurrence over sentences"),
        ("dclm-decoupled", {"sentence_recurrence": "gru"}, "over sentences, found 'gru'; leave"),
        ("dclm-two-sentence", {"encoder": "bag"}, "no choice of a sentence encoder"),
    ],
)
def test_encoders_and_sentence_recurrences_are_refused_where_there_is_no_choice(
    model: str, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        DocumentLM(Config(model, 9, 3, 4, **given))


@pytest.mark.parametrize(
    ("given", "cell", "columns"),
    [
        ({}, "lstm", 5),  # a convolution has as many columns as there are hidden units
        ({"encoder": "bag", "recurrence": "cifg"}, "cifg", 3),
        ({"encoder": "rnn", "sentence_recurrence": "tanh"}, "tanh", 5),
    ],
)
def test_a_document_recurrence_is_of_the_word_levels_kind_unless_it_is_named(
    given: dict[str, Any], cell: str, columns: int
) -> None:
    model = DocumentLM(Config("dclm", 9, 3, 5, layers=2, **given))
    level = model.context.get_submodule("level")
    assert isinstance(level, Recurrence)
    assert type(level) is load(RECURRENCES[cell])
    assert (level.inputs, level.hidden, level.layers) == (columns, 5, 2)


def test_the_size_of_attention_is_that_of_the_hidden_layer_unless_it_is_named() -> None:
    for attention, units in ((None, 4), (6, 6)):
        context = DocumentLM(Config("adclm", 9, 3, 4, attention=attention)).context
        assert context.get_parameter("memory.weight").shape == (units, 4)
    both = DocumentLM(Config("dam", 9, 3, 4, layers=2, attention=6)).context
    assert both.get_parameter("memory.weight").shape == (6, 2 * 4)


def test_facts_of_parts_are_known_before_they_are_made_partial_or_not() -> None:
    zoo = {
        "attention": Composition(partial(PreviousWords), Output, "", ""),
        "bags": Composition(partial(BagOfWords, sentences=2), Input, "", ""),
    }
    model = DocumentLM(Config("attention", 9, 3, 4, attention=2), zoo)
    assert model.context.get_parameter("query.weight").shape == (2, 4)
    with pytest.raises(ValueError, match="'bags' has no attention, found a size 2"):
        DocumentLM(Config("bags", 9, 3, 4, attention=2), zoo)


class Sized(Fusion):
    """Knows the sizes of the embeddings and of the hidden layers."""

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.sizes = width, recurrence.inputs, recurrence.hidden, recurrence.layers


def test_a_fusion_is_made_for_the_sizes_of_value_embeddings_and_hidden_layers() -> None:
    zoo = {"sized": Composition(ZOO["codclm"].context, Sized, "", "")}
    fusion = DocumentLM(Config("sized", 9, 3, 4, layers=2), zoo).fusion
    assert isinstance(fusion, Sized)
    assert fusion.sizes == (4, 3, 4, 2)
