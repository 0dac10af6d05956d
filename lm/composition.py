"""What a composition of parts is, and the parts that there are to choose from, by name.

Addresses `module:attribute` keep the tables free of torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """A context of the last n sentences: one whose maker has the keyword `sentences`."""

    context: Part
    sentences: int


Part: TypeAlias = Callable[..., Any] | str | ContextWindow
"""What makes a part of a model, or its address."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A named choice of context, fusion and head, with its source and parameter formula.

    Makers have the arguments of `lm.contexts.Context`, `lm.fusions.Fusion` and
    `lm.heads.softmax`, and keywords for those fields of `lm.model.Config` that their attribute
    `options` names. fusion, head: the default, and the only choice if `fixed`. order, causal: shown
    in listings; `DocumentLM` derives them for use. shape: recurrence of the paper, and number of
    its layers, for which `parameters` holds: a name of `RECURRENCES`, or else a maker, which
    configurations cannot replace. tied: whether the output matrix is the embedding; None leaves the
    choice to the configuration. one_size: whether `embed` equals `hidden`. recipe: family of papers
    in `lm.training.settings.FAMILIES` that says how the model was trained.
    """

    context: Part
    fusion: Part
    source: str
    parameters: str
    head: Part = "lm.heads:softmax"
    order: int | None = None
    causal: bool = True
    shape: tuple[Part, int] = ("cifg", 2)
    tied: bool | None = None
    one_size: bool = False
    fixed: bool = False
    recipe: str | None = None

    @property
    def recurrence(self) -> Part | None:
        """The maker of the recurrence that the composition insists on; None where it takes any."""
        return None if self.shape[0] in RECURRENCES else self.shape[0]

    def adapted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of a configuration, with None where the composition decides."""
        changed: dict[str, Any] = {"embed": values["hidden"]} if self.one_size else {}
        decided = {"recurrence": self.recurrence, "tied": self.tied}
        changed |= {name: None for name, value in decided.items() if value is not None}
        return {**values, **changed}


RECURRENCES: Mapping[str, Part] = {
    "lstm": "lm.recurrences.gated:LSTM",
    "cifg": "lm.recurrences.gated:CIFG",
    "cifg-2015": "lm.recurrences.gated:CIFG2015",
    "rnn": "lm.recurrences.simple:SimpleRNN",
    "gru": "lm.recurrences.gated:GRU",
    "htanh": "lm.recurrences.simple:HTanh",
    "peephole": "lm.recurrences.gated:Peephole",
    "tanh": "lm.recurrences.simple:TanhRNN",
}


ENCODERS: Mapping[str, Part] = {
    "bag": "lm.contexts.document:BagEncoder",
    "sum": "lm.contexts.document:SumEncoder",
    "cnn": "lm.contexts.document:ConvolutionalEncoder",
    "rnn": "lm.contexts.document:RecurrentEncoder",
}


SOURCE_CONTEXTS: Mapping[str, tuple[bool, bool]] = {  # whether it has h_{i−1}, and h_i
    "previous": (True, False),
    "current": (False, True),
    "both": (True, True),
}


RELATION_CLASSIFIERS: Mapping[str, Part] = {
    "bilinear": "lm.contexts.relations:Bilinear",
    "mlp": "lm.contexts.relations:Perceptron",
}


FUSIONS: Mapping[str, Part] = {
    "input": "lm.fusions:Input",
    "input-sum": "lm.fusions:InputSum",
    "output": "lm.fusions:Output",
    "merge": "lm.fusions:Merge",
    "input-merge": "lm.fusions:InputMerge",
    "input-residual": "lm.fusions:InputResidual",
    "input-initial": "lm.fusions:InputAndInitialState",
    "initial": "lm.fusions:InitialState",
    "gate": "lm.fusions:LateFusion",
}


HEADS: Mapping[str, Part] = {
    "softmax": "lm.heads:softmax",
    "classes": "lm.heads.class_softmax:ClassSoftmax",
    "self-normalised": "lm.heads:SelfNormalised",
    "unbiased": "lm.heads:unbiased_softmax",
    "hashed": "lm.heads.hashed_softmax:HashedSoftmax",
}


TOPIC_MODELS: Mapping[str, Part] = {
    "kmeans": "lm.topics:learn_kmeans",
    "lda": "lm.topics:learn_lda",
}


def load(part: Part) -> Any:
    """The callable that makes a part."""
    if isinstance(part, ContextWindow):
        return partial(load(part.context), sentences=part.sentences)
    if callable(part):
        return part
    module, _, attribute = part.partition(":")
    return getattr(import_module(module), attribute)


def fact(maker: Any, name: str) -> Any:
    """A fact that the class of a part states, before the part is made; None where it does not."""
    while isinstance(maker, partial):
        maker = maker.func
    return getattr(maker, name, None)


Zoo: TypeAlias = Mapping[str, Composition]


class ZooWithFamilies(dict[str, Composition]):
    """Compositions by name, and families of them by pattern, a name that ends in -N.

    A family's context has the keyword `sentences`; its order is N, in `numbers`. Members are had by
    their names, `rlm-bow-lf-4`; iteration leaves them out.
    """

    numbers = range(1, 101)

    def __init__(self, models: Zoo, families: Mapping[str, Composition]) -> None:
        super().__init__(models)
        self.families = families

    def __missing__(self, name: str) -> Composition:
        """The member of a family."""
        stem, _, digits = name.rpartition("-")
        family = self.families.get(f"{stem}-N")
        number = int(digits) if re.fullmatch("[1-9][0-9]{0,8}", digits) else 0
        if family is None or number not in self.numbers:
            raise KeyError(name)
        return replace(family, context=ContextWindow(family.context, number), order=number)

    def __contains__(self, name: object) -> bool:
        with suppress(KeyError):
            return bool(self[str(name)])
        return False
