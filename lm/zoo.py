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

from functools import partial
from typing import Any

from lm.composition import Composition, Zoo, ZooWithFamilies


def _model(context: str, fusion: str, source: str, parameters: str, **more: Any) -> Composition:
    """A composition whose parts are named by what follows `lm.contexts` and `lm.fusions`."""
    address = f"lm.contexts{'.' if ':' in context else ':'}{context}"
    return Composition(address, f"lm.fusions:{fusion}", source, parameters, **more)


_JI = "Ji et al. 2016, arXiv:1511.03962"
_LIN = "Lin et al. 2015, EMNLP, pp. 899–907"
_MEMO = "Eisenstein, The Document Context Language Model (memo)"
_GHOSH = "Ghosh et al. 2016, arXiv:1602.06291"
_TOPICS = f"{_GHOSH}, eq. 1 and §3.3.1; state reset in every sentence"
_LARGER = "Wang & Cho 2015, arXiv:1511.03729, §3"

_ji = partial(_model, recipe="ji")
_wang_cho = partial(_model, shape=("lstm", 1), recipe="wang-cho")
_ghosh = partial(_model, shape=("peephole", 1), recipe="ghosh")
_memo = partial(_model, shape=("rnn", 1))
_lin = partial(  # in their own form words have no embeddings of their own size
    _model,
    head="lm.heads.hashed_softmax:LinSoftmax",
    shape=("lm.recurrences.simple:OneHotHTanh", 1),
    recipe="lin",
    tied=False,
    one_size=True,
)
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
    "rlm": _wang_cho(
        "NoContext",
        "NoFusion",
        "baseline of Wang & Cho 2015, arXiv:1511.03729, §2.1",
        "4H(H+K+1) + V(H+K+1)",
        order=0,
    ),
    "rnnslm": _lin(
        "sentence_level:SentenceBags",
        "Output",
        f"{_LIN}, eqs. 4–9 (sentence level alone: bags of words, no </s>)",
        "H² + 2VH + S",
        head="lm.heads.hashed_softmax:HashedBagSoftmax",
        shape=("lm.recurrences.simple:NoRecurrence", 1),
        fixed=True,
    ),
    "rnnlm-lin": _lin(
        "NoContext",
        "NoFusion",
        f"{_LIN}, §5.1 (word level alone) and §6.2 (baseline)",
        "H² + 2VH + S",
        order=0,
    ),
    "hrnnlm-lin": _lin(
        "sentence_level:SentenceLevel",
        "Input",
        f"{_LIN}, eq. 10, the sentence level trained by eq. 9 alone (§5.2)",
        "3H² + 4VH + 2S",
    ),
    "hrnnlm-lin-dual": _lin(
        "sentence_level:DualSentenceLevel",
        "Input",
        f"{_LIN}, eq. 10, the sentence level trained by both losses (§5.2, dual objective)",
        "3H² + 4VH + 2S",
        recipe="lin-dual",
    ),
    "dclm": _memo(
        "document:DocumentRecurrence",
        "Output",
        f"{_MEMO}, eqs. 1–5",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H(2H+1) + H",
    ),
    "dclm-decoupled": _memo(
        "document:PreviousEncoding",
        "Output",
        f"{_MEMO}, §3.1",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H",
        order=1,
    ),
    "dclm-two-sentence": _memo(
        "states:LastTwoHidden",
        "Output",
        f"{_MEMO}, §1 (sentence-sensitive RNNLM)",
        "H(H+K+1) + V(3H+K+1) + H",
        order=2,
    ),
    "dclm-bilingual": _memo(
        "source:SourceSentences",
        "Output",
        f"{_MEMO}, eqs. 6–8",
        "H(H+K+1) + V(3H+K+1) + (WK + (3KH+H) + H(2H+1) + H)",
        order=0,
    ),
    "dclm-bilingual-decoupled": _memo(
        "source:SourceAndPrevious",
        "Output",
        f"{_MEMO}, §3.1, with the source context of eq. 7",
        "H(H+K+1) + V(4H+K+1) + (WK + (3KH+H) + H(2H+1) + H) + (3KH+H) + H",
        order=1,
    ),
    "clstm-prevsent": _ghosh(
        "topics:PreviousTopic", "Input", _TOPICS, "4H(H+2K) + 7H + V(H+K+1) + (T+1)K", order=1
    ),
    "clstm-sentseg": _ghosh(
        "topics:SentencePrefixTopic", "Input", _TOPICS, "4H(H+2K) + 7H + V(H+K+1) + (T+1)K", order=0
    ),
    "clstm-paraseg": _ghosh(
        "topics:ParagraphPrefixTopic", "Input", _TOPICS, "4H(H+2K) + 7H + V(H+K+1) + (T+1)K"
    ),
    "clstm-prevsent-sentseg": _ghosh(
        "topics:PreviousAndSentencePrefixTopics",
        "Input",
        _TOPICS,
        "4H(H+3K) + 7H + V(H+K+1) + 2(T+1)K",
        order=1,
    ),
    "clstm-sentseg-paraseg": _ghosh(
        "topics:SentenceAndParagraphPrefixTopics",
        "Input",
        _TOPICS,
        "4H(H+3K) + 7H + V(H+K+1) + 2(T+1)K",
    ),
    "clstm-given-topic": _ghosh(
        "topics:GivenTopic", "Input", _TOPICS, "4H(H+2K) + 7H + V(H+K+1) + (R-2)K", order=0
    ),
    "clstm-given-topic-carried": _ghosh(
        "topics:CarriedStateAndGivenTopic",
        "InputAndInitialState",
        f"{_GHOSH}, eq. 1 and §4.3; state carried on",
        "4H(H+2K) + 7H + V(H+K+1) + (R-2)K",
    ),
    "clstm-thought": _ghosh(
        "states:PreviousThought",
        "InputAndInitialState",
        f"{_GHOSH}, §5.4 and fig. 8",
        "4H(H+K+D) + 7H + V(H+K+1) + DH",
    ),
    "hlstm": _ghosh(
        "states:SentenceThoughts",
        "Input",
        f"{_GHOSH}, §8 and fig. 9",
        "4H(H+K+D) + 7H + V(H+K+1) + DH + (8H²+7H)",
    ),
    "dclm-right": _memo(
        "source:NextSource",
        "Output",
        f"{_MEMO}, eq. 13 on the source side",
        "H(H+K+1) + V(4H+K+1) + (WK + (3KH+H) + H(2H+1) + H)",
        order=0,
    ),
    "dclm-right-target": _memo(
        "document:NextTarget",
        "Output",
        f"{_MEMO}, eqs. 1–5 and 13, given the next target sentence (pseudo-likelihood)",
        "H(H+K+1) + V(3H+K+1) + (3KH+H) + H(2H+1) + H",
        causal=False,
    ),
    "dclm-rst": _memo(
        "source:NextAndParentSource",
        "Output",
        f"{_MEMO}, eq. 14 on the source side",
        "H(H+K+1) + V(5H+K+1) + (WK + (3KH+H) + H(2H+1) + H)",
        order=0,
    ),
    "dclm-projection": _memo(
        "relations:RelationProjection",
        "Output",
        f"{_MEMO}, eq. 9",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²",
    ),
    "dclm-projection-decoupled": _memo(
        "relations:DecoupledRelationProjection",
        "Output",
        f"{_MEMO}, eq. 9, with §3.1",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H + (R-2)H²",
        order=1,
    ),
    "dclm-recurrence": _memo(
        "relations:RelationRecurrence",
        "Output",
        f"{_MEMO}, eqs. 3 and 10",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²",
    ),
    "dclm-auxiliary": _memo(
        "relations:RelationTask",
        "Output",
        f"{_MEMO}, eqs. 1–5 and 11",
        "H(H+K+1) + V(2H+K+1) + (3KH+H) + H(2H+1) + H + (R-2)H²",
    ),
}
_FAMILIES: Zoo = {
    "rlm-bow-ef-N": _wang_cho(
        "bags:WordFrequencies", "InputSum", _LARGER, "4H(H+K+1) + V(H+K+1) + VK + K²"
    ),
    "rlm-bow-lf-N": _wang_cho(
        "bags:WordFrequencies", "LateFusion", _LARGER, "4H(H+K+1) + V(H+K+1) + VK + HK + (2H²+H)"
    ),
    "rlm-seqbow-ef-N": _wang_cho(
        "bags:BagSequence", "InputSum", _LARGER, "4H(H+K+1) + V(H+K+1) + VK + 4H(H+K+1) + KH"
    ),
    "rlm-seqbow-lf-N": _wang_cho(
        "bags:BagSequence",
        "LateFusion",
        _LARGER,
        "4H(H+K+1) + V(H+K+1) + VK + 4H(H+K+1) + H² + (2H²+H)",
    ),
    "rlm-seqbow-att-ef-N": _wang_cho(
        "bags:BagAttention",
        "InputSum",
        _LARGER,
        "4H(H+K+1) + V(H+K+1) + VK + 8H(H+K+1) + A(3H+1) + 2KH",
    ),
    "rlm-seqbow-att-lf-N": _wang_cho(
        "bags:BagAttention",
        "LateFusion",
        _LARGER,
        "4H(H+K+1) + V(H+K+1) + VK + 8H(H+K+1) + A(3H+1) + 2H² + (2H²+H)",
    ),
}
ZOO = ZooWithFamilies(_MODELS, _FAMILIES)
