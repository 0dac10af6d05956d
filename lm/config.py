"""The configuration of a model: which parts it has, and their sizes, as its composition allows.

Its fields, and those of `lm.training.settings.Settings`, say of themselves in their metadata what
`rerank train-lm` shows of them as options, and which values are possible.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from lm.composition import (
    ENCODERS,
    FUSIONS,
    HEADS,
    RECURRENCES,
    RELATION_CLASSIFIERS,
    SOURCE_CONTEXTS,
    TOPIC_MODELS,
    Composition,
    fact,
    load,
)

WIDEST = 1 << 16  # layer of a model
MOST = (1 << 31) - 1  # words, or numbers in a table
_SPECIAL = 3  # words of every vocabulary


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
        1,
        "Number of recurrent layers",
        range=(1, 64),
        refusal="a model has 1 to 64 layers, not {}",
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
        "hashed adds maximum-entropy n-gram features to the softmax (exact).",
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
    hash_order: int | None = setting(
        None,
        "Longest n-grams of hashed features: 2, or 3 for trigrams as well [default: 2].",
        range=(2, 3),
        refusal="hashed n-grams have 2 or 3 words, not {}",
        lacks="hashed n-grams of words, found a length {} of them",
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


def with_choices(composition: Composition, config: Config) -> Composition:
    """The composition with the fusion and the head that a configuration chooses instead.

    A context carries the recurrent state, too, if the fusion needs that and the context can.
    """
    from lm.contexts.states import carrying

    fusion = composition.fusion if config.fusion is None else FUSIONS[config.fusion]
    head = composition.head if config.head is None else HEADS[config.head]
    context = load(composition.context)
    if fact(load(fusion), "needs_state") and fact(context, "may_carry_state"):
        context = carrying(context)
    return replace(composition, context=context, fusion=fusion, head=head)


def options_of(config: Config, composition: Composition) -> set[str]:
    """Fields of a configuration that the parts of a composition, or those in their place, take."""
    chosen = with_choices(composition, config)
    parts = chosen.context, chosen.fusion, chosen.head
    return {name for part in parts for name in fact(load(part), "options") or ()}


def decided(config: Config, composition: Composition) -> Config:
    """The configuration with an LSTM and tied matrices where it leaves a choice open.

    None stays where the composition decides. ValueError for a choice that the equations of the
    composition leave no room for, or for missing sizes of side information.
    """
    from lm.side_information import KINDS, information_of

    model = repr(config.model)
    if composition.recurrence is not None and config.recurrence is not None:
        raise ValueError(
            f"{model} has a recurrence of its own, found {config.recurrence!r}; leave that out"
        )
    if composition.tied is not None and config.tied not in (None, composition.tied):
        fixed, chosen = ("tied", "untied") if composition.tied else ("untied", "tied")
        raise ValueError(f"{model} has {fixed} embeddings, found {chosen} ones; leave that out")
    for kind, name in (("fusion", config.fusion), ("head", config.head)):
        if composition.fixed and name is not None:
            raise ValueError(f"{model} has a {kind} of its own, found {name!r}; leave that out")
    if composition.one_size and config.embed != config.hidden:
        raise ValueError(
            f"{model} has no embeddings beside its hidden layers: expected as many columns as "
            f"hidden units, found {config.embed} and {config.hidden}; give one size for both"
        )
    taken = options_of(config, composition)
    for option in fields(config):
        value, lacks = getattr(config, option.name), option.metadata.get("lacks")
        if lacks is not None and value is not None and option.name not in taken:
            raise ValueError(f"{model} has no {lacks.format(value)}; leave that out")
    needed = [kind for kind in information_of(load(composition.context)) if kind in KINDS]
    if missing := [kind for kind in needed if getattr(config, KINDS[kind]) is None]:
        raise ValueError(f"{model} needs side information: {', '.join(missing)}")
    free = {"recurrence": config.recurrence or "lstm", "tied": config.tied is not False}
    return replace(config, **composition.adapted({**free, "hidden": config.hidden}))
