"""The published models as compositions: a line each, and the paper that defines it.

Parameter formulas hold for two `cifg` layers and an untied softmax, as in Ji et al., or for one
layer of the composition's own recurrence; V counts `<unk>`, `<s>` and `</s>`, S is the size of a
table of hashed features. Addresses `module:attribute` keep the table free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

Part: TypeAlias = Callable[..., Any] | str  # makes a part of a model; or the address of such


@dataclass(frozen=True, slots=True)
class Composition:
    """A named choice of context, fusion and head, with its source and parameter formula.

    Makers have the arguments of `lm.contexts.Context`, `lm.fusions.Fusion` and
    `lm.heads.softmax`, and keyword arguments for those fields of `lm.model.Config` that their
    attribute `options` names. head: unless the configuration of a model names another one of
    `HEADS`, which it cannot if `only_head`. recurrence: with the arguments of
    `lm.recurrence.Recurrence`; tied: whether the output matrix is the embedding; None for both
    leaves the choice to the configuration. one_size: whether words have no embedding of a size
    of their own, so that `embed` equals `hidden`. order: shown in listings;
    `DocumentLM.order` derives it for use.
    """

    context: Part
    fusion: Part
    source: str
    parameters: str
    head: Part = "lm.heads:softmax"
    order: int | None = None
    recurrence: Part | None = None
    tied: bool | None = None
    one_size: bool = False
    only_head: bool = False


HEADS: Mapping[str, Part] = {
    "softmax": "lm.heads:softmax",
    "classes": "lm.class_softmax:ClassSoftmax",
    "self-normalised": "lm.self_normalised:SelfNormalised",
    "hashed": "lm.hashed_softmax:HashedSoftmax",
}


def load(part: Part) -> Any:
    """The callable that makes a part."""
    if callable(part):
        return part
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute)


Zoo: TypeAlias = Mapping[str, Composition]

_LIN = "Lin et al. 2015, EMNLP, pp. 899–907"
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
    "hrnnlm": Composition(
        "lm.contexts.sentence_recurrence:SentenceRecurrence",
        "lm.fusions:Input",
        "Lin et al. 2015 in the LSTM form of " + _JI + ", §4",
        "H(16H+3K+6) + V(H+K+1) + H + (3HK+5H²+3H) + (8H²+3H) + V(H+1)",
    ),
    "rnnslm": Composition(
        "lm.contexts.sentence_bags:SentenceBags",
        "lm.fusions:Output",
        _LIN + ", eqs. 4–9 (sentence level alone: bags of words, no </s>)",
        "H² + 2VH + S",
        "lm.hashed_softmax:HashedBagSoftmax",
        recurrence="lm.recurrence:NoRecurrence",
        tied=False,
        one_size=True,
        only_head=True,
    ),
    "rnnlm-lin": Composition(
        "lm.contexts:NoContext",
        "lm.fusions:NoFusion",
        _LIN + ", §5.1 (word level alone) and §6.2 (baseline)",
        "H² + 2VH + S",
        "lm.hashed_softmax:LinSoftmax",
        order=0,
        recurrence="lm.recurrence:OneHotHTanh",
        tied=False,
        one_size=True,
    ),
    "hrnnlm-lin": Composition(
        "lm.contexts.sentence_bags:SentenceLevel",
        "lm.fusions:Input",
        _LIN + ", eq. 10, the sentence level trained by eq. 9 alone (§5.2)",
        "3H² + 4VH + 2S",
        "lm.hashed_softmax:LinSoftmax",
        recurrence="lm.recurrence:OneHotHTanh",
        tied=False,
        one_size=True,
    ),
    "hrnnlm-lin-dual": Composition(
        "lm.contexts.sentence_bags:DualSentenceLevel",
        "lm.fusions:Input",
        _LIN + ", eq. 10, the sentence level trained by both losses (§5.2, dual objective)",
        "3H² + 4VH + 2S",
        "lm.hashed_softmax:LinSoftmax",
        recurrence="lm.recurrence:OneHotHTanh",
        tied=False,
        one_size=True,
    ),
}
