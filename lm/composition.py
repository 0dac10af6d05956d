"""What a composition of parts is, the parts there are to choose from, and a model's configuration.

Addresses `module:attribute` keep the tables free of torch. Fields of `Config`, and those of
`lm.training.settings.Settings`, say of themselves in their metadata what `rerank train-lm` shows of
them as options, and which values are possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

WIDEST = 1 << 16  # layer of a model
MOST = (1 << 31) - 1  # words, or numbers in a table
_SPECIAL = 3  # words of every vocabulary


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
    "rnn": "lm.recurrences:SimpleRNN",
    "htanh": "lm.recurrences:HTanh",
    "peephole": "lm.recurrences.gated:Peephole",
    "tanh": "lm.recurrences:TanhRNN",
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
    "classes": "lm.heads:ClassSoftmax",
    "self-normalised": "lm.heads:SelfNormalised",
    "unbiased": "lm.heads:unbiased_softmax",
    "hashed": "lm.heads.hashed_softmax:HashedSoftmax",
}


TOPIC_MODELS: Mapping[str, Part] = {
    "kmeans": "lm.contexts.topics:learn_kmeans",
    "lda": "lm.contexts.topics:learn_lda",
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


@dataclass(frozen=True, slots=True)
class Facts:
    """What follows of a composition and a configuration, and is asked before anything is computed.

    order: number of earlier target sentences that a score depends on, None where unbounded; causal:
    whether scores depend on no later ones; additive: whether a context only adds a vector to the
    logits of a sentence; normalised: whether probabilities add up to 1; alone: whether the source
    of the sentence is all that is read beside it; information: kinds of side information.
    """

    order: int | None
    causal: bool
    additive: bool
    normalised: bool
    alone: bool
    information: tuple[str, ...]

    @classmethod
    def of_json(cls, values: Any) -> Facts:
        """Those of `dataclasses.asdict`; TypeError or ValueError for other values."""
        if not isinstance(values, dict) or values.keys() != {f.name for f in fields(cls)}:
            raise TypeError(f"found no facts of a model, but {values!r:.80}")
        facts = cls(**{**values, "information": tuple(values["information"])})
        flags = facts.causal, facts.additive, facts.normalised, facts.alone
        texts = all(isinstance(kind, str) for kind in facts.information)
        if type(facts.order) not in (int, type(None)) or {*map(type, flags)} != {bool} or not texts:
            raise TypeError(f"found no facts of a model, but {values!r:.80}")
        return facts


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


def setting(default: Any, help: str, *, strong: Any = None, **more: Any) -> Any:
    """A field that is an option of a training; default: of models and runs from before the option.

    strong: value of the recipe `strong` (`lm.training.settings`), if that is not the default. more:
    `choices`, names; or `range`, the least and the greatest number, and `above`, whether the least
    is excluded; `flag`, if it is not that of the name; `noun`, the field in messages; `refusal` of
    other numbers; `lacks`, what models do not have whose parts do not take the field.
    """
    strong = default if strong is None else strong
    if strong is not None:
        shown = f"{strong:g}" if isinstance(strong, float) else strong
        short, parted, details = help.partition("\n\n")
        help = f"{short} [default: {'tied' if strong is True else shown}].{parted}{details}"
        more["strong"] = strong
    return field(default=default, metadata={"help": help, **more})


def check_values(record: Any) -> None:
    """ValueError unless each value is among the choices of its field, or within its range."""
    for option in fields(record):
        value, more = getattr(record, option.name), option.metadata
        if value is None:
            continue
        if "choices" in more and value not in more["choices"]:
            noun = more.get("noun", option.name.replace("_", " "))
            known = ", ".join(more["choices"])
            raise ValueError(f"no {noun} {value!r} is known; there are {known}")
        if "refusal" in more and not more["range"][0] <= value <= more["range"][1]:
            raise ValueError(more["refusal"].format(value))


def _side_words(lacks: str) -> Any:
    """A field that is the size of a vocabulary of side information; lacks: as of `setting`."""
    refusal = f"side information has 3 to {MOST:,} words, not {{}}"
    limits = {"range": (_SPECIAL, MOST), "refusal": refusal}
    return field(default=None, metadata={**limits, "lacks": lacks})


# what is said of the size of a layer
_COLUMNS: dict[str, Any] = {"range": (1, WIDEST), "refusal": "a model has sizes of 1 to 65,536"}


@dataclass(frozen=True, slots=True)
class Config:
    """Shape of a model. `vocabulary` is V, the three special words included.

    None stands for the part or size of the composition. source_words, relation_labels,
    topic_labels: sizes of the vocabularies of side information, the three special words included
    (`lm.side_information.KINDS`). backward, reverse_documents: the order in which the model reads
    (`lm.corpus.in_reading_order`).
    """

    model: str
    vocabulary: int
    embed: int = setting(
        128,
        "Size of the word embeddings; that of the hidden layers in the models of Lin et al., whose "
        "default it is",
        **_COLUMNS,
    )
    hidden: int = setting(256, "Size of the hidden layers", **_COLUMNS)
    recurrence: str | None = setting(
        None,
        "Recurrent cell\n\n"
        "cifg is the LSTM with coupled gates of Ji et al.'s code, as its library has it "
        "since April 2016; cifg-2015 as it had it in November 2015, when they published, "
        "without a peephole at the first word; rnn is the simple cell with a sigmoid, tanh "
        "the one with tanh, htanh the clipped linear one of Lin et al., whose own models "
        "have it in their form; peephole is the lstm with diagonal peepholes of Graves 2009, "
        "the cell of Ghosh et al.'s models.",
        strong="lstm",
        choices=tuple(RECURRENCES),
    )
    layers: int = setting(
        1, "Number of recurrent layers", range=(1, 64), refusal="a model has 1 to 64 layers, not {}"
    )
    tied: bool | None = setting(
        None, "Share embeddings with the output layer", strong=True, flag="--tied/--untied"
    )
    head: str | None = setting(
        None,
        "How words are predicted [default: that of the model].\n\n"
        "unbiased is the softmax without a bias; classes is a softmax over classes of words "
        "and one over the words of a class (exact, scores faster); self-normalised is "
        "trained so that its logits are scores without a normaliser (fastest, error stated); "
        "hashed adds maximum-entropy bigram features to the softmax (exact).",
        choices=tuple(HEADS),
    )
    backward: bool | None = setting(
        None,
        "Read sentences from right to left: a feature of its own beside a forward model. The "
        "folder says so, and no command needs the option again.",
    )
    fusion: str | None = setting(
        None,
        "Where the context enters [default: that of the model].\n\n"
        "input concatenates it to every word, input-sum adds a projection of it, output adds "
        "it to the logits, merge feeds tanh(W h + W' c + b) to the output, input-merge is "
        "input and merge, input-residual feeds tanh(h + Q c + P x), gate adds a gated "
        "projection to the memory cell's output (late fusion), initial begins sentences in a "
        "carried state (drnnlm), input-initial is input and initial.",
        choices=tuple(FUSIONS),
    )
    attention: int | None = setting(
        None,
        "Size of the hidden layer of the attention, in models that have one [default: --hidden].",
        lacks="attention, found a size {} of it",
        **_COLUMNS,
    )
    hash_size: int | None = setting(
        None,
        "Numbers in a table of hashed features, 4 bytes each, 12 and gradients in training; "
        "hrnnlm-lin has two tables [default: 10000000].",
        range=(1, MOST),
        refusal=f"a table has 1 to {MOST:,} slots, not {{}}",
        lacks="hashed features, found a size {} of their table",
    )
    reverse_documents: bool | None = setting(
        None,
        "Read documents from the last sentence to the first: contexts are later sentences.\n\n"
        "The words of each sentence as usual: a feature of its own beside a forward model. "
        "The folder says so, and no command needs the option again. Not with models without "
        "context.",
    )
    encoder: str | None = setting(
        None,
        "How a sentence becomes a vector, in models that have an encoder "
        "[default: cnn].\n\n"
        "bag is the mean of its words' embeddings, sum their sum, cnn a convolution over "
        "windows of three words with max-pooling, rnn the last state of a recurrence of the "
        "kind --recurrence.",
        choices=tuple(ENCODERS),
        lacks="choice of a sentence encoder, found {!r}",
    )
    sentence_recurrence: str | None = setting(
        None,
        "Recurrent cell over the vectors of all earlier sentences, in models that have one, such "
        "as dclm [default: --recurrence].",
        choices=tuple(RECURRENCES),
        noun="recurrence",
        lacks="choice of a recurrence over sentences, found {!r}",
    )
    source_words: int | None = _side_words(
        "source sentences, found a vocabulary of {} words of theirs"
    )
    source_context: str | None = setting(
        None,
        "What the models that need --source have of it "
        "[default: both].\n\n"
        "previous, a vector of the source sentences before the current one, as in the memo; "
        "current, a vector of these and the current one; or both vectors.",
        choices=tuple(SOURCE_CONTEXTS),
        lacks="source sentences, found the choice {!r} of them",
    )
    relation_labels: int | None = _side_words("discourse relations, found {} labels of them")
    thought: int | None = setting(
        None,
        "Size of the thought vector of clstm-thought and hlstm [default: an eighth of --hidden].",
        range=(1, WIDEST),
        refusal="a thought vector has 1 to 65,536 numbers, not {}",
        lacks="thought vector, found a size {} of it",
    )
    topic_model: str | None = setting(
        None,
        "How the topics of the models clstm-… are learned from the training text "
        "[default: kmeans].\n\n"
        "kmeans clusters stretches of ten sentences (TF-IDF, latent semantic analysis), lda "
        "is latent Dirichlet allocation. Training needs the extra `topics` (scikit-learn), "
        "use of the model does not.",
        choices=tuple(TOPIC_MODELS),
        lacks="topics, found a model {} of them",
    )
    topics_number: int | None = setting(
        None,
        "Number of topics of the models clstm-… [default: 100].",
        range=(1, WIDEST),
        refusal="a model has 1 to 65,536 topics, not {}",
        lacks="topics, found a number {} of them",
    )
    relation_classifier: str | None = setting(
        None,
        "How dclm-auxiliary learns to tell the relation of two sentences "
        "[default: bilinear].\n\n"
        "From their vectors: bilinear has a matrix for each relation, mlp a hidden layer "
        "over both vectors.",
        choices=tuple(RELATION_CLASSIFIERS),
        lacks="classifier of discourse relations, found {!r}",
    )
    topic_labels: int | None = _side_words("topics given by a file, found {} labels of them")

    def __post_init__(self) -> None:
        units = self.hidden if self.attention is None else self.attention
        sizes = (self.vocabulary, self.embed, self.hidden, self.layers, units)
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(f"a model has sizes that are whole numbers, not {sizes}")
        if self.vocabulary < _SPECIAL:
            raise ValueError(f"a model has at least 3 words, not {self.vocabulary}")
        if self.vocabulary > MOST:
            raise ValueError(f"a model has at most {MOST:,} words")
        check_values(self)

    def as_json(self) -> dict[str, object]:
        """The fields by name, without those that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}
