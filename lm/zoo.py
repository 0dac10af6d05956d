"""The published models as compositions: a line each, and the paper that defines it.

A name in -N stands for a family: `rlm-bow-lf-4` is its member whose context is the last 4
sentences. Parameter formulas hold for the shape of the paper and an untied softmax; V counts
`<unk>`, `<s>` and `</s>`, A is the size of the attention's hidden layer, S that of a table of
hashed features, D that of a thought vector, T the number of topics, W that of source words, and R
that of labels of relations or of given topics, the special words included; sentence encoders are
convolutions, relations have a bilinear classifier. Addresses `module:attribute` keep the table free
of torch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from lm.composition import Composition, Zoo, ZooWithFamilies


def _topics(context: str, number: int, order: int | None) -> Composition:
    """A contextual LSTM of Ghosh et al. 2016; number: of topics that enter side by side."""
    columns, tables = ("2K", "(T+1)K") if number == 1 else (f"{number + 1}K", f"{number}(T+1)K")
    return Composition(
        f"lm.contexts.topics:{context}",
        "lm.fusions:Input",
        "Ghosh et al. 2016, arXiv:1602.06291, eq. 1 and §3.3.1; state reset in every sentence",
        f"4H(H+{columns}) + 7H + V(H+K+1) + {tables}",
        order=order,
        shape=("peephole", 1),
        recipe="ghosh",
    )


def _thoughts(context: str, fusion: str, where: str, parameters: str) -> Composition:
    """A contextual LSTM of Ghosh et al. 2016 with thought vectors; parameters: of the context."""
    source = f"Ghosh et al. 2016, arXiv:1602.06291, {where}"
    total = f"4H(H+K+D) + 7H + V(H+K+1) + {parameters}"
    address = f"lm.contexts.states:{context}"
    return Composition(address, fusion, source, total, shape=("peephole", 1), recipe="ghosh")


def _model(context: str, fusion: str, source: str, parameters: str, **more: Any) -> Composition:
    """A composition whose parts are named by what follows `lm.contexts` and `lm.fusions`."""
    address = f"lm.contexts{'.' if ':' in context else ':'}{context}"
    return Composition(address, f"lm.fusions:{fusion}", source, parameters, **more)


def _lin(context: str, fusion: str, where: str, parameters: str, **more: Any) -> Composition:
    """A model of Lin et al. 2015, in whose own form words have no embeddings of their own size."""
    own = {
        "head": "lm.heads.hashed_softmax:LinSoftmax",
        "shape": ("lm.recurrences.simple:OneHotHTanh", 1),
        "recipe": "lin",
        **more,
    }
    source = f"Lin et al. 2015, EMNLP, pp. 899–907, {where}"
    return _model(context, fusion, source, parameters, tied=False, one_size=True, **own)


def _memo(context: str, where: str, parameters: str, **more: Any) -> Composition:
    """A model of Eisenstein's memo; parameters: beside those of the recurrence."""
    source = f"Eisenstein, The Document Context Language Model (memo), {where}"
    total = f"H(H+K+1) + {parameters}"
    return _model(context, "Output", source, total, shape=("rnn", 1), **more)


_JI = "Ji et al. 2016, arXiv:1511.03962"
_ji = partial(_model, recipe="ji")
_MODELS: Zoo = {
    "rnnlm": _ji(
        "NoContext",
        "NoFusion",
        f"Mikolov et al. 2010; baseline of {_JI}",
        "H(13H+3K+6) + V(H+K+1)",
        order=0,
    ),
    "drnnlm": _ji(
        "states:CarriedState",
        "InitialState",
        f"{_JI}, fig. 1 and §4 (RNNLM w/o sentence boundary)",
        "H(13H+3K+6) + V(H+K+1)",
    ),
    "codclm": _ji(
        "states:LastHidden", "Output", f"{_JI}, eqs. 6–7", "H(13H+3K+6) + V(2H+K+1) + H", order=1
    ),
    "ccdclm": _ji("states:LastHidden", "Input", f"{_JI}, eqs. 4–5", "H(16H+3K+6) + V(H+K+1) + H"),
    "adclm": _ji(
        "attention:PreviousWords",
        "InputMerge",
        f"{_JI}, eqs. 8–12",
        "H(18H+3K+7) + A(2H+1) + V(H+K)",
        head="lm.heads:unbiased_softmax",
    ),
    "dam": _ji(
        "attention:FinalStates",
        "InputResidual",
        f"the attention in the code of {_JI}",
        "H(21H+4K+6) + A(4H+1) + V(H+K+1)",
    ),
    "hrnnlm": _ji(
        "sentence_level:SentenceRecurrence",
        "Input",
        f"Lin et al. 2015 in the LSTM form of {_JI}, §4",
        "H(16H+3K+6) + V(H+K+1) + H + (3HK+5H²+3H) + (8H²+3H) + V(H+1)",
    ),
    "rlm": _model(
        "NoContext",
        "NoFusion",
        "baseline of Wang & Cho 2015, arXiv:1511.03729, §2.1",
        "4H(H+K+1) + V(H+K+1)",
        order=0,
        shape=("lstm", 1),
        recipe="wang-cho",
    ),
    "rnnslm": _lin(
        "sentence_level:SentenceBags",
        "Output",
        "eqs. 4–9 (sentence level alone: bags of words, no </s>)",
        "H² + 2VH + S",
        head="lm.heads.hashed_softmax:HashedBagSoftmax",
        shape=("lm.recurrences.simple:NoRecurrence", 1),
        fixed=True,
    ),
    "rnnlm-lin": _lin(
        "NoContext",
        "NoFusion",
        "§5.1 (word level alone) and §6.2 (baseline)",
        "H² + 2VH + S",
        order=0,
    ),
    "hrnnlm-lin": _lin(
        "sentence_level:SentenceLevel",
        "Input",
        "eq. 10, the sentence level trained by eq. 9 alone (§5.2)",
        "3H² + 4VH + 2S",
    ),
    "hrnnlm-lin-dual": _lin(
        "sentence_level:DualSentenceLevel",
        "Input",
        "eq. 10, the sentence level trained by both losses (§5.2, dual objective)",
        "3H² + 4VH + 2S",
        recipe="lin-dual",
    ),
    "dclm": _memo("document:DocumentRecurrence", "eqs. 1–5", "V(2H+K+1) + (3KH+H) + H(2H+1) + H"),
    "dclm-decoupled": _memo(
        "document:PreviousEncoding", "§3.1", "V(2H+K+1) + (3KH+H) + H", order=1
    ),
    "dclm-two-sentence": _memo(
        "states:LastTwoHidden", "§1 (sentence-sensitive RNNLM)", "V(3H+K+1) + H", order=2
    ),
    "dclm-bilingual": _memo(
        "source:SourceSentences", "eqs. 6–8", "V(3H+K+1) + (WK + (3KH+H) + H(2H+1) + H)", order=0
    ),
    "dclm-bilingual-decoupled": _memo(
        "source:SourceAndPrevious",
        "§3.1, with the source context of eq. 7",
        "V(4H+K+1) + (WK + (3KH+H) + H(2H+1) + H) + (3KH+H) + H",
        order=1,
    ),
    "clstm-prevsent": _topics("PreviousTopic", 1, 1),
    "clstm-sentseg": _topics("SentencePrefixTopic", 1, 0),
    "clstm-paraseg": _topics("ParagraphPrefixTopic", 1, None),
    "clstm-prevsent-sentseg": _topics("PreviousAndSentencePrefixTopics", 2, 1),
    "clstm-sentseg-paraseg": _topics("SentenceAndParagraphPrefixTopics", 2, None),
    "clstm-given-topic": replace(
        _topics("GivenTopic", 1, 0),
        context="lm.contexts.topics:GivenTopic",
        parameters="4H(H+2K) + 7H + V(H+K+1) + (R-2)K",
    ),
    "clstm-given-topic-carried": replace(
        _topics("GivenTopic", 1, None),
        context="lm.contexts.topics:CarriedStateAndGivenTopic",
        fusion="lm.fusions:InputAndInitialState",
        source="Ghosh et al. 2016, arXiv:1602.06291, eq. 1 and §4.3; state carried on",
        parameters="4H(H+2K) + 7H + V(H+K+1) + (R-2)K",
    ),
    "clstm-thought": _thoughts(
        "PreviousThought", "lm.fusions:InputAndInitialState", "§5.4 and fig. 8", "DH"
    ),
    "hlstm": _thoughts("SentenceThoughts", "lm.fusions:Input", "§8 and fig. 9", "DH + (8H²+7H)"),
    "dclm-right": _memo(
        "source:NextSource",
        "eq. 13 on the source side",
        "V(4H+K+1) + (WK + (3KH+H) + H(2H+1) + H)",
        order=0,
    ),
    "dclm-right-target": _memo(
        "document:NextTarget",
        "eqs. 1–5 and 13, given the next target sentence (pseudo-likelihood)",
        "V(3H+K+1) + (3KH+H) + H(2H+1) + H",
        causal=False,
    ),
    "dclm-rst": _memo(
        "source:NextAndParentSource",
        "eq. 14 on the source side",
        "V(5H+K+1) + (WK + (3KH+H) + H(2H+1) + H)",
        order=0,
    ),
    "dclm-projection": _memo(
        "relations:RelationProjection", "eq. 9", "V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²"
    ),
    "dclm-projection-decoupled": _memo(
        "relations:DecoupledRelationProjection",
        "eq. 9, with §3.1",
        "V(2H+K+1) + (3KH+H) + H + (R-2)H²",
        order=1,
    ),
    "dclm-recurrence": _memo(
        "relations:RelationRecurrence",
        "eqs. 3 and 10",
        "V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²",
    ),
    "dclm-auxiliary": _memo(
        "relations:RelationTask", "eqs. 1–5 and 11", "V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²"
    ),
}


def _larger_context(context: str, fusion: str, parameters: str) -> Composition:
    """A family of Wang & Cho's larger-context language models; parameters: beside those of rlm."""
    source = "Wang & Cho 2015, arXiv:1511.03729, §3"
    total = f"4H(H+K+1) + V(H+K+1) + {parameters}"
    return Composition(context, fusion, source, total, shape=("lstm", 1), recipe="wang-cho")


_EARLY, _LATE = "lm.fusions:InputSum", "lm.fusions:LateFusion"
_BAG, _SEQUENCE = "lm.contexts.bags:WordFrequencies", "lm.contexts.bags:BagSequence"
_ATTENTION = "lm.contexts.bags:BagAttention"
_FAMILIES: Zoo = {
    "rlm-bow-ef-N": _larger_context(_BAG, _EARLY, "VK + K²"),
    "rlm-bow-lf-N": _larger_context(_BAG, _LATE, "VK + HK + (2H²+H)"),
    "rlm-seqbow-ef-N": _larger_context(_SEQUENCE, _EARLY, "VK + 4H(H+K+1) + KH"),
    "rlm-seqbow-lf-N": _larger_context(_SEQUENCE, _LATE, "VK + 4H(H+K+1) + H² + (2H²+H)"),
    "rlm-seqbow-att-ef-N": _larger_context(_ATTENTION, _EARLY, "VK + 8H(H+K+1) + A(3H+1) + 2KH"),
    "rlm-seqbow-att-lf-N": _larger_context(
        _ATTENTION, _LATE, "VK + 8H(H+K+1) + A(3H+1) + 2H² + (2H²+H)"
    ),
}
ZOO = ZooWithFamilies(_MODELS, _FAMILIES)
