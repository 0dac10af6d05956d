"""The published models as compositions: a line each, and the paper that defines it.

A name in -N stands for a family: `rlm-bow-lf-4` is its member whose context is the last 4
sentences. Parameter formulas hold for the shape of the paper and an untied softmax; V counts
`<unk>`, `<s>` and `</s>`, A is the size of the attention's hidden layer, S that of a table of
hashed features, D that of a thought vector, T the number of topics, C that of classes of words, W
that of source words, and R that of labels of relations or of given topics, the special words
included; sentence encoders are convolutions, relations have a bilinear classifier. Addresses
`module:attribute` keep the table free of torch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lm.composition import Composition, Zoo, ZooWithFamilies


def _model(
    context: str, parameters: str, source: str, *, fusion: str, paper: str, **more: Any
) -> Composition:
    """A composition, whose parts are in `lm.contexts` and `lm.fusions`; {} stands for the paper."""
    address = f"lm.contexts{'.' if ':' in context else ':'}{context}"
    return Composition(address, f"lm.fusions:{fusion}", source.format(paper), parameters, **more)


_ji = partial(_model, paper="Ji et al. 2016, arXiv:1511.03962", recipe="ji")
_wang_cho = partial(
    _model, paper="Wang & Cho 2015, arXiv:1511.03729", shape=("lstm", 1), recipe="wang-cho"
)
_ghosh = partial(
    _model,
    paper="Ghosh et al. 2016, arXiv:1602.06291",
    fusion="Input",
    shape=("peephole", 1),
    recipe="ghosh",
)
_early = partial(_wang_cho, source="{}, §3", fusion="InputSum")
_late = partial(_early, fusion="LateFusion")
_topics = partial(
    _ghosh,
    source="{}, eq. 1 and §3.3.1; state reset in every sentence, but with --recipe paper: --fusion "
    "input-initial carries it on (§5.1)",
    recipe="ghosh-topics",
)
_memo = partial(
    _model,
    paper="Eisenstein, The Document Context Language Model (memo)",
    fusion="Output",
    shape=("rnn", 1),
)
_luong = partial(
    _model,
    paper="Luong et al. 2015, arXiv:1508.04025",
    head="lm.heads:ClassSoftmax",
    shape=("lstm", 1),
    recipe="luong",
)
_lin = partial(  # in their own form words have no embeddings of their own size
    _model,
    paper="Lin et al. 2015, EMNLP, pp. 899–907",
    head="lm.heads.hashed_softmax:LinSoftmax",
    shape=("lm.recurrences:OneHotHTanh", 1),
    recipe="lin",
    tied=False,
    one_size=True,
)
# of a document level, an encoder and a recurrence over its vectors; of one over source sentences
_LEVEL = "(3KH+H) + H(2H+1) + H"
_SOURCE = f"(WK + {_LEVEL})"
_ATTENTION = "12H(H+K+1) + 4H(3H+1) + 4H² + H + WK"
_MODELS: Zoo = {
    "rnnlm": _ji(
        "NoContext",
        "H(13H+3K+6) + V(H+K+1)",
        "Mikolov et al. 2010; baseline of {}",
        fusion="NoFusion",
        order=0,
    ),
    "drnnlm": _ji(
        "CarriedState",
        "H(13H+3K+6) + V(H+K+1)",
        "{}, fig. 1 and §4 (RNNLM w/o sentence boundary)",
        fusion="InitialState",
    ),
    "codclm": _ji(
        "LastHidden", "H(13H+3K+6) + V(2H+K+1) + H", "{}, eqs. 6–7", fusion="Output", order=1
    ),
    "ccdclm": _ji("LastHidden", "H(16H+3K+6) + V(H+K+1) + H", "{}, eqs. 4–5", fusion="Input"),
    "adclm": _ji(
        "attention:PreviousWords",
        "H(18H+3K+7) + A(2H+1) + V(H+K)",
        "{}, eqs. 8–12; the query is h_(n−1): as printed, eq. 10 is circular",
        fusion="InputMerge",
        head="lm.heads:unbiased_softmax",
        recipe="ji-attention",
    ),
    "dam": _ji(
        "attention:FinalStates",
        "H(21H+4K+6) + A(4H+1) + V(H+K+1)",
        "the attention in the code of {}",
        fusion="InputResidual",
        recipe="ji-attention",
    ),
    "hrnnlm": _ji(
        "bags:SentenceRecurrence",
        "H(16H+3K+6) + V(H+K+1) + H + (3HK+5H²+3H) + (8H²+3H) + V(H+1)",
        "Lin et al. 2015 in the LSTM form of {}, §4, where both levels are trained jointly; here "
        "their losses are added, and neither reaches the other level",
        fusion="Input",
    ),
    "rlm": _wang_cho(
        "NoContext", "4H(H+K+1) + V(H+K+1)", "baseline of {}, §2.1", fusion="NoFusion", order=0
    ),
    "rnnslm": _lin(
        "bags:SentenceBags",
        "H² + 2VH + S",
        "{}, eqs. 4–9 (sentence level alone: bags of words, no </s>)",
        fusion="Output",
        head="lm.heads.hashed_softmax:HashedBagSoftmax",
        shape=("lm.recurrences:NoRecurrence", 1),
        fixed=True,
    ),
    "rnnlm-lin": _lin(
        "NoContext",
        "H² + 2VH + S",
        "{}, §5.1 (word level alone) and §6.2 (baseline)",
        fusion="NoFusion",
        order=0,
    ),
    "hrnnlm-lin": _lin(
        "bags:SentenceLevel",
        "3H² + 4VH + 2S",
        "{}, eq. 10, the sentence level trained by eq. 9 alone (§5.2)",
        fusion="Input",
    ),
    "hrnnlm-lin-dual": _lin(
        "bags:DualSentenceLevel",
        "3H² + 4VH + 2S",
        "{}, eq. 10, the sentence level trained by both losses (§5.2, dual objective)",
        fusion="Input",
        recipe="lin-dual",
    ),
    "dclm": _memo(
        "document:DocumentRecurrence", f"H(H+K+1) + V(2H+K+1) + {_LEVEL}", "{}, eqs. 1–5"
    ),
    "dclm-decoupled": _memo(
        "document:PreviousEncoding", "H(H+K+1) + V(2H+K+1) + (3KH+H) + H", "{}, §3.1", order=1
    ),
    "dclm-two-sentence": _memo(
        "LastTwoHidden", "H(H+K+1) + V(3H+K+1) + H", "{}, §1 (sentence-sensitive RNNLM)", order=2
    ),
    "dclm-bilingual": _memo(
        "document:SourceSentences", f"H(H+K+1) + V(3H+K+1) + {_SOURCE}", "{}, eqs. 6–8", order=0
    ),
    "dclm-bilingual-decoupled": _memo(
        "document:SourceAndPrevious",
        f"H(H+K+1) + V(4H+K+1) + {_SOURCE} + (3KH+H) + H",
        "{}, §3.1, with the source context of eq. 7",
        order=1,
    ),
    "attention": _luong(
        "attention:SourceStates",
        f"{_ATTENTION} + V(H+K+1) + C(H+1)",
        "{}, §3.1, with the dot product, between two levels of the recurrence and after them",
        fusion="BetweenLevels",
        order=0,
    ),
    "attention-gated": _luong(
        "attention:SourceStatesAndPreviousWords",
        f"{_ATTENTION} + V(H+K+1) + C(H+1) + HK + 3H² + H",
        "attention ({}, §3.1), whose values have a gated attention over the words of the previous "
        "target sentence added to them: ours",
        fusion="BetweenLevels",
        order=1,
    ),
    "clstm-prevsent": _topics("topics:PreviousTopic", "4H(H+2K) + 7H + V(H+K+1) + (T+1)K", order=1),
    "clstm-sentseg": _topics(
        "topics:SentencePrefixTopic", "4H(H+2K) + 7H + V(H+K+1) + (T+1)K", order=0
    ),
    "clstm-paraseg": _topics("topics:ParagraphPrefixTopic", "4H(H+2K) + 7H + V(H+K+1) + (T+1)K"),
    "clstm-prevsent-sentseg": _topics(
        "topics:PreviousAndSentencePrefixTopics", "4H(H+3K) + 7H + V(H+K+1) + 2(T+1)K", order=1
    ),
    "clstm-sentseg-paraseg": _topics(
        "topics:SentenceAndParagraphPrefixTopics", "4H(H+3K) + 7H + V(H+K+1) + 2(T+1)K"
    ),
    "clstm-given-topic": _topics("topics:GivenTopic", "4H(H+2K) + 7H + V(H+K+1) + (R-2)K", order=0),
    "clstm-given-topic-carried": _ghosh(
        "topics:GivenTopic",
        "4H(H+2K) + 7H + V(H+K+1) + (R-2)K",
        "{}, eq. 1 and §4.3; state carried on",
        fusion="InputAndInitialState",
    ),
    "clstm-thought": _ghosh(
        "PreviousThought",
        "4H(H+K+D) + 7H + V(H+K+1) + DH",
        "{}, §5.4 and fig. 8",
        fusion="InputAndInitialState",
    ),
    "hlstm": _ghosh(
        "SentenceThoughts", "4H(H+K+D) + 7H + V(H+K+1) + DH + (8H²+7H)", "{}, §8 and fig. 9"
    ),
    "dclm-right": _memo(
        "document:NextSource",
        f"H(H+K+1) + V(4H+K+1) + {_SOURCE}",
        "{}, eq. 13 on the source side, with the vector of the next sentence for h_{{i+1}}",
        order=0,
    ),
    "dclm-right-target": _memo(
        "document:NextTarget",
        f"H(H+K+1) + V(3H+K+1) + {_LEVEL}",
        "{}, eqs. 1–5 and 13, given the next target sentence (pseudo-likelihood)",
        causal=False,
    ),
    "dclm-rst": _memo(
        "document:NextAndParentSource",
        f"H(H+K+1) + V(5H+K+1) + {_SOURCE}",
        "{}, eq. 14 on the source side",
        order=0,
    ),
    "dclm-projection": _memo(
        "relations:RelationProjection", f"H(H+K+1) + V(2H+K+1) + {_LEVEL} + (R-2)H²", "{}, eq. 9"
    ),
    "dclm-projection-decoupled": _memo(
        "relations:DecoupledRelationProjection",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H + (R-2)H²",
        "{}, eq. 9, with §3.1",
        order=1,
    ),
    "dclm-recurrence": _memo(
        "relations:RelationRecurrence",
        f"H(H+K+1) + V(2H+K+1) + {_LEVEL} + (R-2)H²",
        "{}, eqs. 3 and 10",
    ),
    "dclm-auxiliary": _memo(
        "relations:RelationTask",
        f"H(H+K+1) + V(2H+K+1) + {_LEVEL} + (R-2)H²",
        "{}, eqs. 1–5 and 11",
    ),
}
_FAMILIES: Zoo = {
    "rlm-bow-ef-N": _early("bags:WordFrequencies", "4H(H+K+1) + V(H+K+1) + VK + K²"),
    "rlm-bow-lf-N": _late("bags:WordFrequencies", "4H(H+K+1) + V(H+K+1) + VK + HK + (2H²+H)"),
    "rlm-seqbow-ef-N": _early("bags:BagSequence", "4H(H+K+1) + V(H+K+1) + VK + 4H(H+K+1) + KH"),
    "rlm-seqbow-lf-N": _late(
        "bags:BagSequence", "4H(H+K+1) + V(H+K+1) + VK + 4H(H+K+1) + H² + (2H²+H)"
    ),
    "rlm-seqbow-att-ef-N": _early(
        "attention:BagAttention", "4H(H+K+1) + V(H+K+1) + VK + 8H(H+K+1) + A(3H+1) + 2KH"
    ),
    "rlm-seqbow-att-lf-N": _late(
        "attention:BagAttention", "4H(H+K+1) + V(H+K+1) + VK + 8H(H+K+1) + A(3H+1) + 2H² + (2H²+H)"
    ),
}
ZOO = ZooWithFamilies(_MODELS, _FAMILIES)
