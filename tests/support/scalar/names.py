"""A model's tensors as nested lists under the names that its paper gives them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from support.scalar.algebra import Matrix
from support.scalar.cells import Parameters, Stack, cifg, lstm
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


def _lstm_layer(of: Tensors, n: int) -> Parameters:
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


CELLS = {"lstm": (lstm, _lstm_layer), "cifg": (cifg, _cifg_layer)}


def stack(of: Tensors, recurrence: str) -> Stack:
    """g of a recurrence's tensors."""
    cell, layer = CELLS[recurrence]
    layers = sum(name.startswith("lower.") for name in of)
    return Stack(cell, [layer(of, n) for n in range(layers)])


def output(of: Tensors, hidden: int) -> dict[str, Any]:
    """W_o, or W_h and W_c where a context has columns of its own, and b.

    Of tied weights, W = E · (the projection).
    """
    if "head.projection.weight" in of:
        weight = of["embedding.weight"] @ of["head.projection.weight"]
    else:
        weight = of["head.output"]
    W_h, W_c = weight[:, :hidden], weight[:, hidden:]
    named: dict[str, Any] = {"W_o": W_h.tolist(), "b": of["head.bias"].tolist()}
    if W_c.shape[1]:
        named |= {"W_h": named.pop("W_o"), "W_c": W_c.tolist()}
    return named


def ji(model: DocumentLM) -> dict[str, Any]:
    """Parameters of `support.scalar.ji`, as far as the model has them."""
    of, config = tensors(model), model.config
    named = {
        "X": of["embedding.weight"].tolist(),
        "g": stack(part(of, "recurrence."), config.recurrence),
        **output(of, config.hidden),
    }
    if "context.first" in of:
        named["c_0"] = of["context.first"].tolist()
    if above := part(of, "context.upper."):
        named["g_s"] = stack(above, config.recurrence)
        named["R_2"] = of["context.next_words.weight"].tolist()
        named["b_2"] = of["context.next_words.bias"].tolist()
    return named


def columns(matrix: Tensor, order: list[slice]) -> Matrix:
    """A matrix whose blocks of columns are in another order."""
    found: Matrix = torch.cat([matrix[:, own] for own in order], dim=1).tolist()
    return found
