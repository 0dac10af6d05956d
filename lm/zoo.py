"""The published models as compositions: a line each, and the paper that defines it.

Parameter formulas hold for two `cifg` layers and an untied softmax, as in the papers; V counts
`<unk>`, `<s>` and `</s>`, and A is the size of the attention's hidden layer. Addresses
`module:attribute` keep the table free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

Part: TypeAlias = Callable[..., Any] | str  # makes a part of a model; or the address of such


@dataclass(frozen=True, slots=True)
class Composition:
    """A named choice of context, fusion and head, with its source and parameter formula.

    Makers have the arguments of `lm.contexts.Context`, `lm.fusions.Fusion` and
    `lm.heads.softmax`. fusion, head: unless the configuration of a model names another one of
    `FUSIONS` or `HEADS`.
    order: shown in listings; `DocumentLM.order` derives it for use.
    """

    context: Part
    fusion: Part
    source: str
    parameters: str
    head: Part = "lm.heads:softmax"
    order: int | None = None


RECURRENCES: Mapping[str, Part] = {
    "lstm": "lm.recurrence:LSTM",
    "cifg": "lm.recurrence:CIFG",
    "cifg-2015": "lm.recurrence:CIFG2015",
    "rnn": "lm.simple_rnn:SimpleRNN",
    "gru": "lm.gru:GRU",
}
FUSIONS: Mapping[str, Part] = {
    "input": "lm.fusions:Input",
    "input-sum": "lm.fusions:InputSum",
    "output": "lm.fusions:Output",
    "merge": "lm.fusions:Merge",
    "input-merge": "lm.fusions:InputMerge",
    "input-residual": "lm.fusions:InputResidual",
    "initial": "lm.fusions:InitialState",
}
HEADS: Mapping[str, Part] = {
    "softmax": "lm.heads:softmax",
    "classes": "lm.class_softmax:ClassSoftmax",
    "self-normalised": "lm.self_normalised:SelfNormalised",
    "unbiased": "lm.heads:unbiased_softmax",
}


def load(part: Part) -> Any:
    """The callable that makes a part."""
    if callable(part):
        return part
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute)


def fact(maker: Any, name: str) -> bool:
    """A fact that the class of a part states, before the part is made; False where it does not."""
    while isinstance(maker, partial):
        maker = maker.func
    return bool(getattr(maker, name, False))


Zoo: TypeAlias = Mapping[str, Composition]

_JI = "Ji et al. 2016, arXiv:1511.03962"
ZOO: Zoo = {
    "rnnlm": Composition(
        "lm.contexts:NoContext",
        "lm.fusions:NoFusion",
        "Mikolov et al. 2010; baseline of " + _JI,
        "H(13H+3K+6) + V(H+K+1)",
        order=0,
    ),
    "drnnlm": Composition(
        "lm.contexts.carried_state:CarriedState",
        "lm.fusions:InitialState",
        _JI + ", fig. 1 and §4 (RNNLM w/o sentence boundary)",
        "H(13H+3K+6) + V(H+K+1)",
    ),
    "codclm": Composition(
        "lm.contexts.last_hidden:LastHidden",
        "lm.fusions:Output",
        _JI + ", eqs. 6–7",
        "H(13H+3K+6) + V(2H+K+1) + H",
        order=1,
    ),
    "ccdclm": Composition(
        "lm.contexts.last_hidden:LastHidden",
        "lm.fusions:Input",
        _JI + ", eqs. 4–5",
        "H(16H+3K+6) + V(H+K+1) + H",
    ),
    "adclm": Composition(
        "lm.contexts.previous_words:PreviousWords",
        "lm.fusions:InputMerge",
        _JI + ", eqs. 8–12",
        "H(18H+3K+7) + A(2H+1) + V(H+K)",
        head="lm.heads:unbiased_softmax",
    ),
    "dam": Composition(
        "lm.contexts.final_states:FinalStates",
        "lm.fusions:InputResidual",
        "the attention in the code of " + _JI,
        "H(21H+4K+6) + A(4H+1) + V(H+K+1)",
    ),
    "hrnnlm": Composition(
        "lm.contexts.sentence_recurrence:SentenceRecurrence",
        "lm.fusions:Input",
        "Lin et al. 2015 in the LSTM form of " + _JI + ", §4",
        "H(16H+3K+6) + V(H+K+1) + H + (3HK+5H²+3H) + (8H²+3H) + V(H+1)",
    ),
}
