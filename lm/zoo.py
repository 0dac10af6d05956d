"""The published models as compositions: a line each, and the paper that defines it.

Parameter formulas hold for two `cifg` layers and an untied softmax, as in the papers;
V counts `<unk>`, `<s>` and `</s>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from lm.contexts import Context, NoContext
from lm.contexts.carried_state import CarriedState
from lm.contexts.last_hidden import LastHidden
from lm.contexts.sentence_recurrence import SentenceRecurrence
from lm.fusions import Fusion, InitialState, Input, NoFusion, Output
from lm.heads import Head, softmax
from lm.recurrence import Recurrence


@dataclass(frozen=True, slots=True)
class Composition:
    """A named choice of context, fusion and head, with its source and parameter formula.

    context: made from the words' embedding and a recurrence (see `lm.contexts.Context`);
    fusion: from the width of a value and that recurrence; head: see `lm.heads.softmax`.
    """

    context: Callable[[nn.Embedding, Recurrence], Context]
    fusion: Callable[[int, Recurrence], Fusion]
    source: str
    parameters: str
    head: Callable[..., Head] = softmax


Zoo: TypeAlias = Mapping[str, Composition]

_JI = "Ji et al. 2016, arXiv:1511.03962"
ZOO: Zoo = {
    "rnnlm": Composition(
        NoContext, NoFusion, "Mikolov et al. 2010; baseline of " + _JI, "H(13H+3K+6) + V(H+K+1)"
    ),
    "drnnlm": Composition(
        CarriedState,
        InitialState,
        _JI + ", fig. 1 and §4 (RNNLM w/o sentence boundary)",
        "H(13H+3K+6) + V(H+K+1)",
    ),
    "codclm": Composition(LastHidden, Output, _JI + ", eqs. 6–7", "H(13H+3K+6) + V(2H+K+1) + H"),
    "ccdclm": Composition(LastHidden, Input, _JI + ", eqs. 4–5", "H(16H+3K+6) + V(H+K+1) + H"),
    "hrnnlm": Composition(
        SentenceRecurrence,
        Input,
        "Lin et al. 2015 in the LSTM form of " + _JI + ", §4",
        "H(16H+3K+6) + V(H+K+1) + H + (3HK+5H²+3H) + (8H²+3H) + V(H+1)",
    ),
}
