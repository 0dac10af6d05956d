"""The published models as compositions: a line each, and the paper that defines it.

Parameter formulas hold for two `cifg` layers and an untied softmax, as in the papers;
V counts `<unk>`, `<s>` and `</s>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lm.contexts import CarriedState, Context, LastHidden, NoContext, SentenceRecurrence
from lm.fusions import Fusion, InitialState, Input, Output


@dataclass(frozen=True, slots=True)
class Composition:
    """A named choice of context and fusion, with its source and parameter formula."""

    context: type[Context]
    fusion: type[Fusion]
    source: str
    parameters: str


_JI = "Ji et al. 2016, arXiv:1511.03962"
ZOO = {
    "rnnlm": Composition(
        NoContext, Fusion, "Mikolov et al. 2010; baseline of " + _JI, "H(13H+3K+6) + V(H+K+1)"
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
