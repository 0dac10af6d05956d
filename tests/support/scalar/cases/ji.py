"""The models of Ji et al. 2016, each with its scalar code."""

from collections.abc import Callable
from typing import Any, TypeAlias

from support.scalar import ji, names
from support.scalar.comparison import (
    Case,
    Loss,
    Reference,
    V,
    nats,
)
from support.scalar.ji import Document, Scores

from lm.model import Config, DocumentLM

Names: TypeAlias = Callable[[DocumentLM], dict[str, Any]]
Function: TypeAlias = Callable[[dict[str, Any], Document], Scores]


def of_model(names_of: Names, function: Function) -> Reference:
    """The scalar scores of a model, whose parameters `names_of` gives."""

    def reference(model: DocumentLM, document: Document) -> Scores:
        return function(names_of(model), document)

    return reference


def hrnnlm_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """The word level's loss with the sentence level as data, and the sentence level's own."""
    p, data = names.ji(model), names.ji(before)
    own = nats(ji.next_sentence_scores(p, document, data))
    return -nats(ji.hrnnlm(p, document, data)) - own


MODELS: dict[str, tuple[Names, Function, Loss | None]] = {
    "rnnlm": (names.ji, ji.rnnlm, None),
    "drnnlm": (names.ji, ji.drnnlm, None),
    "codclm": (names.ji, ji.codclm, None),
    "ccdclm": (names.ji, ji.ccdclm, None),
    "adclm": (names.adclm, ji.adclm, None),
    "dam": (names.dam, ji.dam, None),
    "hrnnlm": (names.ji, ji.hrnnlm, hrnnlm_loss),
}
SHAPES = [("lstm", 1, True), ("cifg", 2, False), ("cifg-2015", 3, False)]
OTHERS = [("ccdclm", "rnn", 2), ("hrnnlm", "gru", 1), ("drnnlm", "gru", 2), ("dam", "rnn", 1)]
OTHERS += [("ccdclm", "peephole", 2)]


def case(name: str, recurrence: str, layers: int, tied: bool) -> Case:
    names_of, function, loss = MODELS[name]
    attention = 5 if name in ("adclm", "dam") else None
    config = Config(name, V, 3, 4, recurrence, layers, tied, attention=attention)
    return Case(config, of_model(names_of, function), loss)


CASES = [case(name, *shape) for name in MODELS for shape in SHAPES]
CASES += [case(*other, tied=False) for other in OTHERS]
