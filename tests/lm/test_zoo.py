"""The published models: laws, orders, parameter counts; and how parts are named and composed."""

import re
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any

import pytest
from support.models import config_of

from lm.composition import FUSIONS, HEADS, ContextWindow, fact, load
from lm.laws import check_composition
from lm.model import Config, DocumentLM, n_parameters
from lm.zoo import ZOO

ORDERS = {  # None: unbounded; from the equations of the papers
    **dict.fromkeys(("rnnlm", "rlm", "rnnlm-lin", "dclm-bilingual", "dclm-right", "dclm-rst"), 0),
    **dict.fromkeys(("attention", "clstm-sentseg", "clstm-given-topic"), 0),
    **dict.fromkeys(("codclm", "dclm-decoupled", "dclm-bilingual-decoupled", "attention-gated"), 1),
    **dict.fromkeys(("dclm-projection-decoupled", "clstm-prevsent", "clstm-prevsent-sentseg"), 1),
    "dclm-two-sentence": 2,
}
ADDITIVE = {*("codclm", "dclm"), *(n for n in ZOO if n.startswith("dclm-"))}
FREE = sorted(name for name in ZOO if ZOO[name].recurrence is None)  # others have their own
MEMBERS = [f"{name[:-1]}{n}" for name, n in zip(ZOO.families, (2, 1, 3, 2, 5, 2), strict=True)]
LAWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [  # model, other parts, shape
    *((name, {}, {"recurrence": "lstm", "tied": True}) for name in FREE[::2]),
    *((name, {}, {"recurrence": "cifg", "layers": 2, "tied": False}) for name in FREE[1::2]),
    *((name, {}, {"layers": 1 + n % 2}) for n, name in enumerate(sorted({*ZOO} - {*FREE}))),
    *((name, {}, {"tied": False}) for name in MEMBERS),
    ("dam", {}, {"recurrence": "htanh", "layers": 2}),
    ("rlm-seqbow-att-lf-1", {}, {"recurrence": "cifg", "layers": 2}),
    # small weights of a sigmoid cell let the influence of a sentence fade in float32
    *((name, {}, {"recurrence": cell, "scale": 8.0 if cell == "rnn" else 2.0})
        for name, cell in (("adclm", "cifg-2015"), ("dam", "peephole"), ("drnnlm", "rnn"))),
    *((name, {"fusion": FUSIONS[fusion]}, {"layers": 2}) for name, fusion in (
        ("codclm", "merge"), ("adclm", "merge"), ("dam", "output"), ("hrnnlm", "input-sum"),
        ("drnnlm", "input-residual"), ("drnnlm", "input-initial"), ("hrnnlm-lin", "output"),
        ("hrnnlm-lin-dual", "input-merge"), ("clstm-prevsent", "output"),
        ("clstm-sentseg-paraseg", "output"), ("clstm-paraseg", "gate"))),
    *((name, {"head": HEADS[head]}, {}) for name, head in (
        ("codclm", "classes"), ("codclm", "hashed"), ("ccdclm", "self-normalised"),
        ("hrnnlm-lin", "classes"), ("hrnnlm-lin", "self-normalised"))),
    *(("dclm", {"context": partial(load(ZOO["dclm"].context), encoder=g, sentence_recurrence=f)},
        {}) for g, f in (("bag", "htanh"), ("rnn", "cifg"))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "others", "shape"), LAWS, ids=[f"{n}-{name}" for n, (name, *_) in enumerate(LAWS)]
)
def test_compositions_obey_laws(name: str, others: dict[str, Any], shape: dict[str, Any]) -> None:
    check_composition(replace(ZOO[name], **others), **shape)


def counted(name: str, V: int, K: int, H: int, A: int) -> int:
    """Parameters of a model as published: layers of its paper, a separate output matrix.

    Tables of hashed features have 2V numbers, there are 2V topics, and thought vectors have 2V.
    """
    attention = A if "attention" in (fact(load(ZOO[name].context), "options") or ()) else None
    recurrence, layers = ZOO[name].shape
    shape: dict[str, Any] = {"recurrence": recurrence, "layers": layers, "tied": False}
    config = config_of(name, V, K, H, attention=attention, **shape)
    return n_parameters(DocumentLM.without_memory(config))


@pytest.mark.parametrize("name", [*sorted(ZOO), *MEMBERS])
def test_models_have_as_many_parameters_as_their_formula_says(name: str) -> None:
    python = ZOO[name].parameters.replace("²", "**2")
    python = re.sub(r"(?<=[\w)])(?=[A-Z(])", "*", python)
    for V, K, H, A in ((3, 1, 1, 1), (40, 5, 7, 3)):
        sizes = {"C": isqrt(V - 1) + 1, "S": 2 * V, "T": 2 * V, "D": 2 * V, "W": V + 1, "R": V + 2}
        result = eval(python, {"V": V, "K": K, "H": H, "A": A, **sizes})
        assert counted(name, V, K, H, A) == result


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("ccdclm", 1_014_403), ("codclm", 1_487_635), ("adclm", 1_013_664)),
        *(("dam", 1_037_443), ("hrnnlm", 1_541_702)),
    ],
)
def test_models_of_the_published_size_have_the_published_number(name: str, number: int) -> None:
    """V = 10,003, K = H = A = 48: Ji et al.'s formulas, c_0 included; the sizes of the tensors in
    their code for hrnnlm and dam, and in their equations for adclm. §2.2.1: VH − 3H².
    """
    assert counted(name, 10_003, 48, 48, 48) == number
    assert counted("codclm", 20, 5, 7, 1) - counted("ccdclm", 20, 5, 7, 1) == 20 * 7 - 3 * 7 * 7


@pytest.mark.parametrize("head", [None, "hashed"])
@pytest.mark.parametrize("name", sorted(ZOO))
def test_orders_follow_from_the_compositions(name: str, head: str | None) -> None:
    model = DocumentLM(config_of(name, 9, 3, 4, head=head))
    assert model.order == ORDERS.get(name) == ZOO[name].order
    assert model.causal == ZOO[name].causal == (name != "dclm-right-target")
    assert model.additive == (name in ADDITIVE and head != "hashed")


def test_models_without_memory_have_shapes_on_no_device() -> None:
    """The largest has 6e14 numbers, as the formula of a tied LSTM counts them."""
    v, k, h, layers = (1 << 31) - 1, 1 << 16, 1 << 16, 64
    model = DocumentLM.without_memory(Config("rnnlm", v, k, h, layers=layers))
    widths = [k, *[h] * (layers - 1)]
    assert n_parameters(model) == v * k + v + k * h + sum(4 * h * (d + h + 1) for d in widths)
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"meta"}


def test_a_name_of_a_family_ends_in_its_number_of_sentences() -> None:
    for number in (1, 4, 100):
        result = ZOO[f"rlm-bow-lf-{number}"]
        assert result.context == ContextWindow("lm.contexts.bags:WordFrequencies", number)
        assert DocumentLM(Config(f"rlm-bow-lf-{number}", 9, 3, 4)).order == result.order == number
    for end in ("0", "04", "101", "-1", "1.0", "\N{FULLWIDTH DIGIT FOUR}", "N", ""):
        assert f"rlm-bow-lf-{end}" not in ZOO
        with pytest.raises(KeyError, match="rlm-bow-lf"):
            ZOO[f"rlm-bow-lf-{end}"]
    assert not {*ZOO} & {*ZOO.families, "rlm-bow-lf-4"}
    assert len(ZOO) == len([*ZOO])
