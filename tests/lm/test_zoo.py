"""The published models: their parameter counts, their orders, and what their scores depend on."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lm.contexts import CarriedState, Context, LastHidden, NoContext, SentenceRecurrence
from lm.fusions import Fusion, Input, Output
from lm.model import Config, DocumentLM, n_parameters
from lm.scorer import Scorer
from lm.scoring import after
from lm.trie import Candidates
from lm.zoo import ZOO, Composition

sizes = st.integers(1, 12)
ORDERS = {"rnnlm": 0, "codclm": 1, "ccdclm": None, "drnnlm": None, "hrnnlm": None}
DOCUMENT = [[3, 4, 5], [6, 7], [8, 3, 9, 4], [5, 6, 8], [9, 7]]


def counted(name: str, V: int, K: int, H: int) -> int:
    """Parameters of a model as published: two coupled-gate layers, an output matrix of its own."""
    return n_parameters(DocumentLM(Config(name, V, K, H, "cifg", 2, tied=False)))


def printed(formula: str, V: int, K: int, H: int) -> int:
    """The value of a formula as it stands in the table."""
    python = re.sub(r"(?<=[\w)])(?=[A-Z(])", "*", formula.replace("²", "**2"))
    return int(eval(python, {"V": V, "K": K, "H": H}))


@pytest.mark.parametrize("name", sorted(ZOO))
@given(V=st.integers(3, 40), K=sizes, H=sizes)
@settings(deadline=None, max_examples=15)
def test_models_have_as_many_parameters_as_their_formula_says(
    name: str, V: int, K: int, H: int
) -> None:
    assert counted(name, V, K, H) == printed(ZOO[name].parameters, V, K, H)


@pytest.mark.parametrize(
    ("name", "number"),
    [("ccdclm", 1_014_403), ("codclm", 1_487_635), ("hrnnlm", 1_541_702)],
)
def test_models_of_the_published_size_have_the_published_number(name: str, number: int) -> None:
    """V = 10,003 and K = H = 48: Ji et al.'s formulas and, for hrnnlm, their code; c_0 included."""
    assert counted(name, 10_003, 48, 48) == number


@given(V=st.integers(3, 40), K=sizes, H=sizes)
@settings(deadline=None, max_examples=15)
def test_context_to_output_and_context_to_context_differ_as_published(
    V: int, K: int, H: int
) -> None:
    """Ji et al. 2016, §2.2.1: VH − 3H²."""
    difference = counted("codclm", V, K, H) - counted("ccdclm", V, K, H)
    assert difference == V * H - 3 * H * H


def test_the_table_holds_the_models_whose_orders_are_known() -> None:
    assert ORDERS.keys() == ZOO.keys()


@pytest.mark.parametrize("recurrence", ["lstm", "cifg"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_orders_follow_from_the_compositions(name: str, recurrence: str) -> None:
    assert DocumentLM(Config(name, 9, 3, 4, recurrence)).order == ORDERS[name]


def last_score(model: DocumentLM, document: list[list[int]]) -> float:
    """log p of the last sentence after the others."""
    context: Tensor = model.context.start(1).detach()
    scorer = Scorer.of(model)
    for sentence in document:
        scores, summary = after(scorer, [(Candidates.of([[sentence]]), context)])[0]
        context = model.context.advance(context, summary[0]).detach()
    return float(scores[0, 0])


def model_of(name: str, recurrence: str = "lstm", layers: int = 1, tied: bool = True) -> DocumentLM:
    torch.manual_seed(3)
    model = DocumentLM(Config(name, 10, 6, 8, recurrence, layers, tied)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def reach(model: DocumentLM) -> list[bool]:
    """Whether the last score changes with the sentence before, the one before that, and so on."""
    score, changes = last_score(model, DOCUMENT), []
    for distance in range(1, len(DOCUMENT)):
        other = [list(sentence) for sentence in DOCUMENT]
        other[-1 - distance] = [4, 9, 9, 3, 6]
        difference = abs(last_score(model, other) - score)
        assert difference == 0.0 or difference > 1e-6
        changes.append(difference > 0.0)
    return changes


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize(("recurrence", "layers"), [("lstm", 1), ("cifg", 2)])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_score_depends_on_as_many_earlier_sentences_as_the_order_says(
    name: str, recurrence: str, layers: int, tied: bool
) -> None:
    order = ORDERS[name]
    expected = [order is None or distance <= order for distance in range(1, len(DOCUMENT))]
    assert reach(model_of(name, recurrence, layers, tied)) == expected


@pytest.mark.parametrize("fusion", [Fusion, Input, Output])
@pytest.mark.parametrize("context", [NoContext, LastHidden, CarriedState, SentenceRecurrence])
def test_compositions_that_nobody_published_have_the_orders_that_their_scores_show(
    context: type[Context], fusion: type[Fusion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ZOO, "new", Composition(context, fusion, "", ""))
    model = model_of("new")
    depends = reach(model)
    if fusion is Fusion:
        assert not any(depends)
    else:
        order = model.order
        assert depends == [order is None or distance <= order for distance in range(1, 5)]


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_score_depends_on_the_sentence_itself(name: str) -> None:
    model = model_of(name)
    assert last_score(model, DOCUMENT) != last_score(model, [*DOCUMENT[:-1], [7, 9]])
