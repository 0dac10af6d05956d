"""A model's tensors as nested lists under the names that its paper gives them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from support.scalar.cells import (
    Parameters,
    Stack,
    cifg,
    cifg_2015,
    gru,
    htanh_rnn,
    lstm,
    peephole,
    sigmoid_rnn,
    tanh_rnn,
)
from torch import Tensor

from lm.model import DocumentLM

Tensors: TypeAlias = Mapping[str, Tensor]  # of a state_dict


def tensors(model: DocumentLM) -> dict[str, Tensor]:
    """All parameters in float64, by their names in the model."""
    return {name: value.detach().double() for name, value in model.named_parameters()}


def part(of: Tensors, prefix: str) -> dict[str, Tensor]:
    """The tensors of one module."""
    return {n.removeprefix(prefix): v for n, v in of.items() if n.startswith(prefix)}


def blocks(tensor: Tensor, names: str) -> dict[str, Any]:
    """Matrices or vectors that are stacked in one tensor, by the names given in their order."""
    parts = tensor.chunk(len(names.split()))
    return {name: own.tolist() for name, own in zip(names.split(), parts, strict=True)}


def lstm_layer(of: Tensors, n: int) -> Parameters:
    return (
        blocks(of[f"lower.{n}"], "W_i W_f W_o W_c")
        | blocks(of[f"recurrent.{n}"], "U_i U_f U_o U_c")
        | blocks(of[f"bias.{n}"], "b_i b_f b_o b_c")
    )


def _cifg_layer(of: Tensors, n: int) -> Parameters:
    return (
        blocks(of[f"lower.{n}"], "W_xi W_xc W_xo")
        | blocks(of[f"recurrent.{n}"], "W_hi W_hc W_ho")
        | blocks(of[f"peephole.{n}"], "W_ci W_co")
        | blocks(of[f"bias.{n}"], "b_i b_c b_o")
    )


def _rnn_layer(of: Tensors, n: int) -> Parameters:
    W_x, W_h, b = (of[f"{kind}.{n}"].tolist() for kind in ("lower", "recurrent", "bias"))
    return {"W_x": W_x, "W_h": W_h, "b": b}


def _gru_layer(of: Tensors, n: int) -> Parameters:
    """Chung et al. 2014 call z what is 1 − z in Cho et al.: 1 − σ(x) = σ(−x)."""
    below = blocks(negated(of[f"lower.{n}"], 3), "W_z W_r W_h")
    bias = blocks(negated(of[f"bias.{n}"], 3), "b_z b_r b_h")
    recurrent = blocks(negated(of[f"recurrent.{n}"], 2), "U_z U_r")
    return below | bias | recurrent | {"U_h": of[f"candidate.{n}"].tolist()}


def _htanh_layer(of: Tensors, n: int) -> Parameters:
    W, U, b = (of[f"{kind}.{n}"].tolist() for kind in ("lower", "recurrent", "bias"))
    return {"W": W, "U": U, "b": b}


def _peephole_layer(of: Tensors, n: int) -> Parameters:
    return (
        blocks(of[f"lower.{n}"], "W_xi W_xf W_xo W_xc")
        | blocks(of[f"recurrent.{n}"], "W_hi W_hf W_ho W_hc")
        | blocks(of[f"peephole.{n}"], "W_ci W_cf W_co")
        | blocks(of[f"bias.{n}"], "b_i b_f b_o b_c")
    )


def negated(tensor: Tensor, n: int) -> Tensor:
    """The tensor with the sign of the first of its n blocks changed."""
    first, *rest = tensor.chunk(n)
    return torch.cat([-first, *rest])


CELLS = {
    "lstm": (lstm, lstm_layer),
    "cifg": (cifg, _cifg_layer),
    "cifg-2015": (cifg_2015, _cifg_layer),
    "rnn": (sigmoid_rnn, _rnn_layer),
    "gru": (gru, _gru_layer),
    "htanh": (htanh_rnn, _htanh_layer),
    "tanh": (tanh_rnn, _rnn_layer),
    "peephole": (peephole, _peephole_layer),
}


def stack(of: Tensors, recurrence: str) -> Stack:
    """g of a recurrence's tensors."""
    cell, layer = CELLS[recurrence]
    layers = sum(name.startswith("lower.") for name in of)
    return Stack(cell, [layer(of, n) for n in range(layers)])


def output_matrix(of: Tensors) -> Tensor:
    """(V, R) matrix of the softmax; of tied weights, the embeddings times the projection."""
    if "head.projection.weight" in of:
        return of["embedding.weight"] @ of["head.projection.weight"]
    return of["head.output"]


def ji(model: DocumentLM) -> dict[str, Any]:
    """Parameters of `support.scalar.ji`, but for its two attentional models."""
    of, config = tensors(model), model.config
    named = _inputs_and_transition(of, config.recurrence or "lstm")
    W_h, W_c = output_matrix(of).tensor_split([config.hidden], dim=1)
    named |= {"W_h": W_h.tolist(), "W_c": W_c.tolist()} if W_c.numel() else {"W_o": W_h.tolist()}
    named["b"] = of["head.bias"].tolist()
    if "context.first" in of:
        named["c_0"] = of["context.first"].tolist()
    if above := part(of, "context.upper."):
        named["g_s"] = stack(above, config.recurrence or "lstm")
        named["R_2"] = of["context.next_words.weight"].tolist()
        named["b_2"] = of["context.next_words.bias"].tolist()
    return named


def adclm(model: DocumentLM) -> dict[str, Any]:
    """Parameters of `support.scalar.ji.adclm`, whose inputs are [c; x]: ours are [x; c]."""
    of, K = tensors(model), model.config.embed
    x, c = of["recurrence.lower.0"].tensor_split([K], dim=1)
    of["recurrence.lower.0"] = torch.cat([c, x], dim=1)
    return _inputs_and_transition(of, model.config.recurrence or "lstm") | {
        "w_a": of["context.weight.weight"][0].tolist(),
        "W_a1": of["context.query.weight"].tolist(),
        "W_a2": of["context.memory.weight"].tolist(),
        "W_h": of["fusion.merge.of_hidden.weight"].tolist(),
        "W_c": of["fusion.merge.of_value.weight"].tolist(),
        "b": of["fusion.merge.of_hidden.bias"].tolist(),
        "W_o": output_matrix(of).tolist(),
    }


def dam(model: DocumentLM) -> dict[str, Any]:
    """Parameters of `support.scalar.ji.dam`."""
    of = tensors(model)
    return _inputs_and_transition(of, model.config.recurrence or "lstm") | {
        "v_a": of["context.weight.weight"][0].tolist(),
        "W_a": of["context.query.weight"].tolist(),
        "U_a": of["context.memory.weight"].tolist(),
        "Q": of["fusion.of_value.weight"].tolist(),
        "P": of["fusion.of_word.weight"].tolist(),
        "R": output_matrix(of).tolist(),
        "b": of["head.bias"].tolist(),
    }


def wang_cho(model: DocumentLM) -> dict[str, Any]:
    """Parameters of `support.scalar.wang_cho`, as far as the model has them.

    Our context LSTMs read P s_j, the paper's x_j: W_· s_j of the references is W_· (P s_j) here.
    """
    of = tensors(model)
    named = dict(lstm_layer(part(of, "recurrence."), 0))
    named["E"] = of["embedding.weight"].tolist()
    named["g"] = {"W_o": output_matrix(of).tolist(), "b_o": of["head.bias"].tolist()}
    if "context.table" in of:
        named["P"] = of["context.table"].T.tolist()
    for name, prefix in (("context", "context.reader."), ("reverse", "context.backward_reader.")):
        if reader := part(of, prefix):
            reader["lower.0"] = reader["lower.0"] @ of["context.table"].T
            named[name] = lstm_layer(reader, 0)
    if "context.weight.weight" in of:
        v = of["context.weight.weight"][0]
        W_z, W_h = (of[f"context.{name}.weight"].tolist() for name in ("annotation", "query"))
        named["score"] = {"v": v.tolist(), "W_z": W_z, "W_h": W_h, "b": [0.0] * len(v)}
    if "fusion.projection.weight" in of:
        named["W_p"] = of["fusion.projection.weight"].tolist()
    if "fusion.gate.weight" in of:
        W_r, b_r = (of[f"fusion.gate.{name}"].tolist() for name in ("weight", "bias"))
        named |= {"W_r": W_r, "b_r": b_r, "V_r": of["fusion.memory_gate.weight"].tolist()}
    return named


def _inputs_and_transition(of: Tensors, recurrence: str) -> dict[str, Any]:
    """X and g."""
    g = stack(part(of, "recurrence."), recurrence)
    return {"X": of["embedding.weight"].tolist(), "g": g}
