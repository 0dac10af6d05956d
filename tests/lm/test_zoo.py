"""The published models: their parameter counts, their orders, and the laws they obey."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import config_of

from lm.composition import FUSIONS, HEADS, fact, load
from lm.laws import check_composition
from lm.model import DocumentLM, n_parameters
from lm.tiny_models import DOCUMENT, last_score, tiny_model
from lm.zoo import ZOO

sizes = st.integers(1, 12)
ORDERS = {"rnnlm": 0, "codclm": 1, "ccdclm": None, "drnnlm": None, "hrnnlm": None, "rlm": 0}
ORDERS |= {"adclm": None, "dam": None, "rnnslm": None, "rnnlm-lin": 0}
ORDERS |= {"hrnnlm-lin": None, "hrnnlm-lin-dual": None}
ORDERS |= {"dclm": None, "dclm-decoupled": 1, "dclm-two-sentence": 2}
ORDERS |= {"dclm-bilingual": 0, "dclm-bilingual-decoupled": 1}
ORDERS |= {"dclm-projection": None, "dclm-projection-decoupled": 1, "dclm-recurrence": None}
ORDERS |= {"dclm-auxiliary": None, "dclm-right": 0, "dclm-rst": 0, "dclm-right-target": None}
ADDITIVE = {"codclm", "dclm", "dclm-decoupled", "dclm-two-sentence"}
ADDITIVE |= {"dclm-bilingual", "dclm-bilingual-decoupled"}
ORDERS |= {"clstm-prevsent": 1, "clstm-sentseg": 0, "clstm-paraseg": None}
ORDERS |= {"clstm-prevsent-sentseg": 1, "clstm-sentseg-paraseg": None}
ORDERS |= {
    "clstm-given-topic": 0,
    "clstm-given-topic-carried": None,
    "clstm-thought": None,
    "hlstm": None,
}
ADDITIVE |= {"dclm-projection", "dclm-projection-decoupled", "dclm-recurrence", "dclm-auxiliary"}
ADDITIVE |= {"dclm-right", "dclm-rst", "dclm-right-target"}
FREE = sorted(name for name in ZOO if ZOO[name].recurrence is None)  # others have their own
NUMBERS = (2, 1, 3, 2, 5, 2)
MEMBERS = [f"{name[:-1]}{n}" for name, n in zip(ZOO.families, NUMBERS, strict=True)]


def counted(name: str, V: int, K: int, H: int, A: int) -> int:
    """Parameters of a model as published: layers of its paper, a separate output matrix.

    Tables of hashed features have 2V numbers, there are 2V topics, and thought vectors
    have 2V.
    """
    attention = A if "attention" in (fact(load(ZOO[name].context), "options") or ()) else None
    recurrence, layers = ZOO[name].shape
    shape: dict[str, Any] = {"recurrence": recurrence, "layers": layers, "tied": False}
    config = config_of(name, V, K, H, attention=attention, **shape)
    return n_parameters(DocumentLM.without_memory(config))


def printed(formula: str, **sizes: int) -> int:
    """The value of a formula as it stands in the table."""
    python = re.sub(r"(?<=[\w)])(?=[A-Z(])", "*", formula.replace("²", "**2"))
    return int(eval(python, dict(sizes)))


@pytest.mark.parametrize("name", [*sorted(ZOO), *MEMBERS])
@given(V=st.integers(3, 40), K=sizes, H=sizes, A=sizes)
@settings(max_examples=15)
def test_models_have_as_many_parameters_as_their_formula_says(
    name: str, V: int, K: int, H: int, A: int
) -> None:
    sizes = {"S": 2 * V, "T": 2 * V, "D": 2 * V, "W": V + 1, "R": V + 2}
    found = printed(ZOO[name].parameters, V=V, K=K, H=H, A=A, **sizes)
    assert counted(name, V, K, H, A) == found


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ccdclm", 1_014_403),
        ("codclm", 1_487_635),
        ("adclm", 1_013_664),
        ("dam", 1_037_443),
        ("hrnnlm", 1_541_702),
    ],
)
def test_models_of_the_published_size_have_the_published_number(name: str, number: int) -> None:
    """V = 10,003, K = H = A = 48: Ji et al.'s formulas, c_0 included; the sizes of the tensors in
    their code for hrnnlm and dam, and in their equations for adclm.
    """
    assert counted(name, 10_003, 48, 48, 48) == number


@given(V=st.integers(3, 40), K=sizes, H=sizes)
@settings(max_examples=15)
def test_context_to_output_and_context_to_context_differ_as_published(
    V: int, K: int, H: int
) -> None:
    """Ji et al. 2016, §2.2.1: VH − 3H²."""
    difference = counted("codclm", V, K, H, 1) - counted("ccdclm", V, K, H, 1)
    assert difference == V * H - 3 * H * H


def test_the_table_holds_the_models_whose_orders_are_known() -> None:
    assert ORDERS.keys() == ZOO.keys()


@pytest.mark.parametrize("head", [None, *HEADS])
@pytest.mark.parametrize("recurrence", ["lstm", "cifg"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_orders_follow_from_the_compositions(name: str, recurrence: str, head: str | None) -> None:
    model = DocumentLM(config_of(name, 9, 3, 4, recurrence=recurrence, head=head))
    assert model.order == ORDERS[name] == ZOO[name].order
    assert model.causal == ZOO[name].causal == (name != "dclm-right-target")
    assert model.additive == (name in ADDITIVE and head != "hashed")


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


@pytest.mark.parametrize(("recurrence", "scale"), [("cifg-2015", 2.0), ("gru", 2.0), ("rnn", 8.0)])
@pytest.mark.parametrize("name", ["adclm", "dam", "drnnlm"])
def test_published_models_obey_the_laws_with_every_cell(
    name: str, recurrence: str, scale: float
) -> None:
    """Small weights of a sigmoid cell let the influence of a sentence fade in float32."""
    check_composition(ZOO[name], recurrence=recurrence, scale=scale)


@pytest.mark.parametrize(
    ("name", "fusion"),
    [
        ("codclm", "merge"),
        ("adclm", "merge"),
        ("dam", "output"),
        ("drnnlm", "input-residual"),
        ("hrnnlm", "input-sum"),
        ("hrnnlm-lin", "input-sum"),
        ("hrnnlm-lin-dual", "input-merge"),
        ("hrnnlm-lin", "output"),
        ("clstm-prevsent", "output"),
        ("clstm-sentseg-paraseg", "output"),
        ("clstm-prevsent-sentseg", "input-merge"),
        ("clstm-paraseg", "gate"),
        ("drnnlm", "input-initial"),
    ],
)
def test_models_obey_the_laws_with_other_fusions(name: str, fusion: str) -> None:
    check_composition(replace(ZOO[name], fusion=FUSIONS[fusion]), layers=2)


@pytest.mark.parametrize("head", ["classes", "self-normalised", "hashed"])
@pytest.mark.parametrize("name", sorted(name for name in ZOO if not ZOO[name].fixed))
def test_published_models_obey_the_laws_with_every_head(name: str, head: str) -> None:
    check_composition(replace(ZOO[name], head=HEADS[head]))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_score_depends_on_the_sentence_itself(name: str) -> None:
    model = tiny_model(ZOO[name])
    assert last_score(model, DOCUMENT) != last_score(model, [*DOCUMENT[:-1], [7, 9]])


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_families_obey_the_laws(name: str) -> None:
    model = tiny_model(ZOO[name])
    assert model.order == int(name[-1])
    assert not model.additive
    check_composition(ZOO[name], tied=False)


@pytest.mark.parametrize("name", ["rlm-seqbow-att-lf-1", "rlm-seqbow-lf-2"])
def test_members_of_families_obey_the_laws_over_the_cells_of_ji_et_al(name: str) -> None:
    check_composition(ZOO[name], recurrence="cifg", layers=2)
