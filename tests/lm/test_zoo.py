"""The published models: their parameter counts, their orders, and the laws they obey."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import config_of

from lm.laws import DOCUMENT, check_composition, last_score, tiny_model
from lm.model import DocumentLM, n_parameters
from lm.zoo import HEADS, ZOO

sizes = st.integers(1, 12)
ORDERS = {
    "rnnlm": 0,
    "codclm": 1,
    "ccdclm": None,
    "drnnlm": None,
    "hrnnlm": None,
    "rnnslm": None,
    "rnnlm-lin": 0,
    "hrnnlm-lin": None,
    "hrnnlm-lin-dual": None,
}
FREE = sorted(name for name in ZOO if ZOO[name].recurrence is None)  # others have their own


def counted(name: str, V: int, K: int, H: int) -> int:
    """Parameters of a model as published: two coupled-gate layers, a separate output matrix.

    Or one layer of its own recurrence, and tables of hashed features of 2V numbers.
    """
    layers = 1 if ZOO[name].recurrence else 2
    config = config_of(name, V, K, H, recurrence="cifg", layers=layers, tied=False)
    return n_parameters(DocumentLM(config))


def printed(formula: str, V: int, K: int, H: int) -> int:
    """The value of a formula as it stands in the table."""
    python = re.sub(r"(?<=[\w)])(?=[A-Z(])", "*", formula.replace("²", "**2"))
    return int(eval(python, {"V": V, "K": K, "H": H, "S": 2 * V}))


@pytest.mark.parametrize("name", sorted(ZOO))
@given(V=st.integers(3, 40), K=sizes, H=sizes)
@settings(max_examples=15)
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
@settings(max_examples=15)
def test_context_to_output_and_context_to_context_differ_as_published(
    V: int, K: int, H: int
) -> None:
    """Ji et al. 2016, §2.2.1: VH − 3H²."""
    difference = counted("codclm", V, K, H) - counted("ccdclm", V, K, H)
    assert difference == V * H - 3 * H * H


def test_the_table_holds_the_models_whose_orders_are_known() -> None:
    assert ORDERS.keys() == ZOO.keys()


@pytest.mark.parametrize("head", [None, *HEADS])
@pytest.mark.parametrize("recurrence", ["lstm", "cifg"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_orders_follow_from_the_compositions(name: str, recurrence: str, head: str | None) -> None:
    model = DocumentLM(config_of(name, 9, 3, 4, recurrence=recurrence, head=head))
    assert model.order == ORDERS[name] == ZOO[name].order
    assert model.additive == (name == "codclm" and head != "hashed")


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize(("recurrence", "layers"), [("lstm", 1), ("cifg", 2)])
@pytest.mark.parametrize("name", FREE)
def test_published_models_obey_the_laws(
    name: str, recurrence: str, layers: int, tied: bool
) -> None:
    check_composition(ZOO[name], recurrence=recurrence, layers=layers, tied=tied)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", sorted(set(ZOO) - set(FREE)))
def test_published_models_with_a_recurrence_of_their_own_obey_the_laws(
    name: str, layers: int
) -> None:
    check_composition(ZOO[name], layers=layers)


@pytest.mark.parametrize("head", ["classes", "self-normalised", "hashed"])
@pytest.mark.parametrize("name", sorted(name for name in ZOO if not ZOO[name].only_head))
def test_published_models_obey_the_laws_with_every_head(name: str, head: str) -> None:
    check_composition(replace(ZOO[name], head=HEADS[head]))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_score_depends_on_the_sentence_itself(name: str) -> None:
    model = tiny_model(ZOO[name])
    assert last_score(model, DOCUMENT) != last_score(model, [*DOCUMENT[:-1], [7, 9]])
