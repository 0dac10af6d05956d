"""Our models' tensors under the names that the papers give them, and the scalar code of each."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from support.scalar import clstm, ji, lin, luong, memo, wang_cho
from support.scalar.cells import (
    Stack,
    cifg,
    cifg_2015,
    htanh_rnn,
    lstm,
    peephole,
    sigmoid_rnn,
    tanh_rnn,
)
from support.scalar.ji import Document, Scores
from torch import Tensor

from lm.composition import RECURRENCES, SOURCE_CONTEXTS, load
from lm.model import Config, DocumentLM
from lm.vocabulary import SPECIAL, UNKNOWN

Tensors: TypeAlias = Mapping[str, Tensor]  # of a model or a part of it, by name
Parameters: TypeAlias = dict[str, Any]  # nested lists by their names in a paper

V = 9
SIDE = {  # of the sentences of every document
    "source": [[3, 4], [5], [], [4, 4, 6], [7]],
    "relations": [[3], [5], [0], [5], [4]],
    "topics": [[4], [0], [3], [4], [5]],
    "parents": [[2], [0], [], [1], [3]],  # index in the document
}
CELLS = {  # scalar code, and the matrices and vectors that each tensor of a layer stacks
    "lstm": (lstm,
        {"lower": "W_i W_f W_o W_c", "recurrent": "U_i U_f U_o U_c", "bias": "b_i b_f b_o b_c"}),
    "cifg": (cifg,
        {"lower": "W_xi W_xc W_xo", "recurrent": "W_hi W_hc W_ho",
        "peephole": "W_ci W_co"} | {"bias": "b_i b_c b_o"}),
    "peephole": (peephole,
        {"lower": "W_xi W_xf W_xo W_xc",
        "recurrent": "W_hi W_hf W_ho W_hc"} | {"peephole": "W_ci W_cf W_co",
        "bias": "b_i b_f b_o b_c"}),
    "rnn": (sigmoid_rnn, {"lower": "W_x", "recurrent": "W_h", "bias": "b"}),
    "tanh": (tanh_rnn, {"lower": "W_x", "recurrent": "W_h", "bias": "b"}),
    "htanh": (htanh_rnn, {"lower": "W", "recurrent": "U", "bias": "b"}),
}  # fmt: skip
CELLS["cifg-2015"] = cifg_2015, CELLS["cifg"][1]
TENSORS = [  # names in the papers; `[0]` is the only row of a matrix
    *(("X", "embedding.weight"), ("b", "head.bias"), ("b", "head.layer.bias")),
    *(("c_0", "context.first"), ("D", "head.hashes.weight")),
    *(("R_2", "context.next_words.weight"), ("b_2", "context.next_words.bias")),
    # adclm, eqs. 8–12 of Ji et al., and dam
    *(("w_a", "context.weight.weight[0]"), ("v_a", "context.weight.weight[0]")),
    *(("W_a1", "context.query.weight"), ("W_a", "context.query.weight")),
    *(("W_a2", "context.memory.weight"), ("U_a", "context.memory.weight")),
    *(("W_m", "fusion.merge.of_hidden.weight"), ("W_c", "fusion.merge.of_value.weight")),
    *(("b", "fusion.merge.of_hidden.bias"), ("Q", "fusion.of_value.weight")),
    ("P", "fusion.of_word.weight"),
    # Wang & Cho
    *(("v", "context.weight.weight[0]"), ("W_z", "context.annotation.weight")),
    *(("W_q", "context.query.weight"), ("W_p", "fusion.projection.weight")),
    *(("W_r", "fusion.gate.weight"), ("b_r", "fusion.gate.bias")),
    ("V_r", "fusion.memory_gate.weight"),
    # Ghosh et al.
    *(("T", "context.tables"), ("T_given", "context.table[0]")),
    *(("T_given", "context.topic.table[0]"), ("W_t", "context.thought.projection.weight")),
    # Eisenstein
    *(("W_1", "context.classifier.units.weight"), ("b_1", "context.classifier.units.bias")),
    *(("W_2", "context.classifier.labels.weight"), ("b_2", "context.classifier.labels.bias")),
    ("Theta", "context.classifier.matrices"),
]


def tensors(model: DocumentLM) -> dict[str, Tensor]:
    """All parameters in float64, by their names in the model."""
    return {name: value.detach().double() for name, value in model.named_parameters()}


def part(of: Tensors, prefix: str) -> dict[str, Tensor]:
    """The tensors of one module."""
    return {n.removeprefix(prefix): v for n, v in of.items() if n.startswith(prefix)}


def stack(of: Tensors, recurrence: str | None) -> Stack:
    """g of a recurrence's tensors."""
    cell, names = CELLS[recurrence or "lstm"]
    layers: list[Parameters] = []
    for n in range(sum(name.startswith("lower.") for name in of)):
        layers.append({})
        for kind, row in names.items():
            blocks = of[f"{kind}.{n}"].chunk(len(row.split()))
            for name, block in zip(row.split(), blocks, strict=True):
                layers[-1][name] = block.tolist()
    return Stack(cell, layers)


def output_matrix(of: Tensors) -> Tensor:
    """(V, R) matrix of the softmax; of tied weights, the embeddings times the projection."""
    for prefix in ("head.", "head.layer."):
        if f"{prefix}projection.weight" in of:
            return of["embedding.weight"] @ of[f"{prefix}projection.weight"]
        if f"{prefix}output" in of:
            return of[f"{prefix}output"]
    raise KeyError("output")


def parameters(model: DocumentLM) -> Parameters:
    """What the model has of the papers' parameters, but for Lin et al.'s."""
    of, config = tensors(model), model.config
    p: Parameters = {}
    for name, place in TENSORS:
        if (tensor := of.get(place.removesuffix("[0]"))) is not None:
            p[name] = (tensor[0] if place.endswith("[0]") else tensor).tolist()
    if config.model == "adclm":  # whose inputs are [c; x]: ours are [x; c]
        x, c = of["recurrence.lower.0"].tensor_split([config.embed], dim=1)
        of["recurrence.lower.0"] = torch.cat([c, x], dim=1)
    p["g"] = stack(part(of, "recurrence."), config.recurrence)
    output = output_matrix(of)
    of_hidden, of_context = output.tensor_split([config.hidden], dim=1)
    p |= {"W_o": output.tolist(), "W_h": of_hidden.tolist()}
    if of_context.numel():
        p["W_c"] = of_context.tolist()
    if upper := part(of, "context.upper."):
        p["g_s"] = stack(upper, config.recurrence)
    if "context.table" in of and config.model.startswith("rlm"):
        p["P"] = of["context.table"].T.tolist()
        # our LSTMs read P s_j, the paper's x_j: W_· s_j of the references is W_· (P s_j) here
        for name, prefix in (("context", "reader."), ("reverse", "backward_reader.")):
            if reader := part(of, f"context.{prefix}"):
                reader["lower.0"] = reader["lower.0"] @ of["context.table"].T
                (p[name],) = stack(reader, "lstm").layers
    return p | (_memo(model, of) if config.model.startswith("dclm") else {})


def _luong(model: DocumentLM) -> Parameters:
    """Parameters of `attention`: those of the softmax are logits times the projection, if tied.

    Of its form with a context, too: those of the words of the sentence before.
    """
    cell = model.config.recurrence
    p: Parameters = {}
    of = tensors(model)
    if model.config.model == "attention-gated":
        p |= {"Z": of["context.projection.weight"].tolist()}
        p |= {"W_g": of["context.gate.weight"].tolist(), "b_g": of["context.gate.bias"].tolist()}
        p |= {"W_p": of["context.previous.weight"].tolist()}
    p |= {"classes": None, "b": of["head.bias"].tolist()}
    parts = {"g": "recurrence.", "upper": "fusion.upper."}
    for name, place in (parts | {"ahead": "context.ahead.", "back": "context.back."}).items():
        p[name] = stack(part(of, place), cell)
    for name, place in {
        **{"X": "embedding.weight", "X_s": "context.embedding.weight"},
        **{"W_f": "context.join.weight", "W_m": "fusion.of_hidden.weight"},
        **{"b_m": "fusion.of_hidden.bias", "W_c": "fusion.of_value.weight"},
    }.items():
        p[name] = of[place].tolist()
    p["W_o"] = output_matrix(of).tolist()
    if "head.classes" in of:
        projection = of.get("head.layer.projection.weight")
        classes = of["head.classes"] if projection is None else of["head.classes"] @ projection
        p |= {"classes": classes.tolist(), "b_classes": of["head.class_bias"].tolist()}
    return p


def _memo(model: DocumentLM, of: Tensors) -> Parameters:
    """Parameters of Eisenstein's memo that are not in `TENSORS`."""
    config = model.config
    places = ("context.source.of_document.", "context.of_document.", "context.")
    own = part(of, next(place for place in places if f"{place}first" in of))
    V_s, V_d = output_matrix(of).tensor_split([config.hidden], dim=1)
    V_2, V_1 = V_d.chunk(2, dim=1)  # where there are two
    p = _vectors(config, own)
    p |= {"V_s": V_s.tolist(), "V_d": V_d.tolist(), "V_1": V_1.tolist(), "V_2": V_2.tolist()}
    if config.source_words:
        p["X_s"] = own["encoder.embedding.weight"].tolist()
    if (matrices := of.get("context.relations.matrices")) is not None:
        unknown, *others = matrices.tolist()
        p["R"] = {UNKNOWN: unknown, **dict(enumerate(others, len(SPECIAL)))}
    p["labels"] = [UNKNOWN, *range(len(SPECIAL), config.relation_labels or 0)]
    return p


def _vectors(config: Config, own: Tensors) -> Parameters:
    """Parameters of an encoder of sentences and of the recurrence over its vectors, if any."""
    words = config.recurrence or "lstm"
    p: Parameters = {"h_0": own["first"].tolist(), "units": config.hidden}
    if reader := part(own, "encoder.reader."):
        p["reader"] = stack(reader, words)
    if "encoder.filters.weight" in own:
        p |= {
            "W": own["encoder.filters.weight"].tolist(),
            "f_b": own["encoder.filters.bias"].tolist(),
        }
    if level := part(own, "level."):
        sentences = config.sentence_recurrence or words
        p |= {"f": stack(level, sentences), "state_tensors": load(RECURRENCES[sentences]).tensors}
    return p


def _lin(model: DocumentLM) -> Parameters:
    """Parameters of Lin et al. 2015: of the word level, and of the sentence level, if any."""
    of = tensors(model)
    if model.config.model == "rnnslm":
        level, embedding, head = "context.", "embedding.weight", "head."
    else:
        level, embedding, head = (
            "context.level.",
            "context.level.table.weight",
            "context.next_words.",
        )
    p: Parameters = {"W_w": of["embedding.weight"].T.tolist()}
    for name, place in {
        **{"U_w": "recurrence.recurrent.0", "V_w": "head.layer.output"},
        **{"D_w": "head.hashes.weight", "U_sw": "recurrence.beside"},
        **{"U_s": f"{level}upper.recurrent.0", "V_s": f"{head}layer.output"},
        "D_s": f"{head}hashes.weight",
    }.items():
        if place in of:
            p[name] = of[place].tolist()
    if embedding in of:
        p["W_s"] = of[embedding].T.tolist()
    return p


# Scores of a document by scalar code
FEATURES: dict[str, tuple[clstm.Features, ...]] = {  # tables of topics in the order of the model
    "clstm-prevsent": (clstm.previous_topic,),
    "clstm-sentseg": (clstm.sentence_topic,),
    "clstm-paraseg": (clstm.paragraph_topic,),
    "clstm-prevsent-sentseg": (clstm.previous_topic, clstm.sentence_topic),
    "clstm-sentseg-paraseg": (clstm.sentence_topic, clstm.paragraph_topic),
}
JI: dict[str, Callable[[Parameters, Document], Scores]] = {
    "rnnlm": ji.rnnlm,
    "rlm": ji.rnnlm,  # eqs. 4–9 of Wang & Cho
    "drnnlm": partial(ji.rnnlm, carried=True),
    "codclm": ji.codclm,
    "ccdclm": ji.ccdclm,
    "adclm": ji.adclm,
    "dam": ji.dam,
    "hrnnlm": ji.hrnnlm,
    "clstm-thought": clstm.clstm_thought,
    "hlstm": clstm.hlstm,
    "dclm-two-sentence": memo.two_sentence,
}
ENCODERS = {"bag": memo.bag, "sum": memo.sum_of_embeddings, "cnn": memo.cnn, "rnn": memo.rnn}
OF_RELATIONS = {
    "dclm-projection": memo.dclm,
    "dclm-projection-decoupled": memo.decoupled,
    "dclm-recurrence": memo.relation_recurrence,
}


def scores(model: DocumentLM, document: Document) -> Scores:
    """log p of the words and of `</s>` of each sentence; its side information is `SIDE`."""
    config, n = model.config, len(document)
    name, own = config.model, {kind: rows[:n] for kind, rows in SIDE.items()}
    if name.endswith(("-lin", "-lin-dual", "rnnslm")):
        return _scores_of_lin(model, document)
    if name == "attention":
        return luong.attention(_luong(model), document, own["source"])
    if name == "attention-gated":
        return luong.attention_and_words(_luong(model), document, own["source"])
    p = parameters(model)
    if config.head == "hashed":
        return lin.hashed_rnnlm(p, document, hash_of(model.head.get_submodule("hashes")))
    carried = name.endswith("carried") or config.fusion == "input-initial"
    if name in FEATURES:
        topics: Any = model.context.topics
        p["W"] = [row if counts else None for counts, *row in topics.terms.tolist()]
        p["prior"] = topics.prior.tolist()
        for feature, table in zip(FEATURES[name], p["T"], strict=True):
            p[clstm.TABLES[feature]] = table
        return clstm.clstm(p, document, *FEATURES[name], carried=carried)
    if name.startswith("clstm-given"):
        p["given"] = [max(label - 2, 0) for (label,) in own["topics"]]
        return clstm.clstm(p, document, clstm.given_topic, carried=carried)
    if name.startswith("rlm-"):
        return _scores_of_wang_cho(p, name, document)
    if name in JI:
        return JI[name](p, document)
    g = ENCODERS[config.encoder or "cnn"]
    if name in OF_RELATIONS:
        return OF_RELATIONS[name](p, document, g, [label for (label,) in own["relations"]])
    if config.source_words:
        following: list[int | None] = [*range(1, n), None]
        entries = [row[0] if row else None for row in own["parents"]]
        parents = [None if entry is None or entry >= n else entry for entry in entries]
        others = {"dclm-bilingual": 0, "dclm-right": 1, "dclm-rst": 2}[name]
        given = SOURCE_CONTEXTS[config.source_context or "both"]
        others_of = [following, parents][:others]
        return memo.source_context(p, document, own["source"], g, given=given, others=others_of)
    functions = {"dclm-decoupled": memo.decoupled, "dclm-right-target": memo.right_context}
    return functions.get(name, memo.dclm)(p, document, g)


def _scores_of_wang_cho(p: Parameters, name: str, document: Document) -> Scores:
    context, fusion, n = name.removeprefix("rlm-").rsplit("-", 2)
    contexts = {"bow": wang_cho.bow, "seqbow": wang_cho.seqbow, "seqbow-att": wang_cho.seqbow_att}
    fusions = {"ef": wang_cho.early_fusion, "lf": wang_cho.late_fusion}
    return wang_cho.larger_context_lm(p, document, int(n), contexts[context], fusions[fusion])


def hash_of(table: Any) -> lin.Hash:
    """The first slot of each word's row in a table, which makes slots (hash(w) + t) mod S."""
    slots = table.first_slots(torch.arange(table.words)).tolist()
    found: lin.Hash = slots.__getitem__
    return found


def _scores_of_lin(model: DocumentLM, document: Document) -> Scores:
    p, hash = _lin(model), hash_of(model.head.get_submodule("hashes"))
    if model.config.model == "rnnslm":  # `</s>`, which is no word of a bag, has the score 0
        return [[*own, 0.0] for own in lin.rnnslm(p, document, hash)]
    level = lin.rnnlm_lin if model.config.model == "rnnlm-lin" else lin.hrnnlm_lin
    return level(p, document, hash)


# Losses of training
def nats(found: Scores) -> float:
    return sum(map(sum, found))


def loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """The loss of a document whose gradient training takes, auxiliary loss included, in nats.

    before: the model as it was, for what counts as constant.
    """
    name = model.config.model
    if name == "hrnnlm":  # the word level reads the sentence level as data
        p, data = parameters(model), parameters(before)
        own = nats(ji.next_sentence_scores(p, document, data))
        return -nats(ji.hrnnlm(p, document, data)) - own
    if name.startswith("hrnnlm-lin"):
        p, data = _lin(model), _lin(model if name.endswith("dual") else before)
        words = lin.hrnnlm_lin(p, document, hash_of(model.head.get_submodule("hashes")), data)
        hash = hash_of(model.context.get_submodule("next_words.hashes"))
        sentences = lin.rnnslm(p, document, hash)  # eq. 9: the mean of each sentence's words
        return -nats(words) - math.fsum(sum(own) / len(own) for own in sentences if own)
    result = -nats(scores(model, document))
    if name == "dclm-auxiliary":
        relations = [label for (label,) in SIDE["relations"][: len(document)]]
        g = ENCODERS[model.config.encoder or "cnn"]
        return result + memo.relation_nats(parameters(model), document, relations, g)
    return result
