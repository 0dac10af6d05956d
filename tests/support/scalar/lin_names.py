"""The tensors of our models of Lin et al. 2015 under the names of `support.scalar.lin`."""

from typing import Any

import torch
from support.scalar.lin import Hash
from support.scalar.names import Tensors, part, stack, tensors

from lm.heads.hashing import HashTable
from lm.model import DocumentLM


def rnnslm(model: DocumentLM) -> dict[str, Any]:
    """The sentence level alone: its embedding is W_s, its head the output and the hashes."""
    of = tensors(model)
    names = "embedding.weight", "context.upper.recurrent.0", "head."
    return _sentence_level(of, *names)


def word_level(model: DocumentLM) -> dict[str, Any]:
    """The word level, and the sentence level below it if there is one."""
    of = tensors(model)
    named = {
        "U_w": of["recurrence.recurrent.0"].tolist(),
        "W_w": of["embedding.weight"].T.tolist(),
        "V_w": of["head.layer.output"].tolist(),
        "D_w": of["head.hashes.weight"].tolist(),
    }
    if "recurrence.beside" in of:
        level = "context.level."
        names = level + "table.weight", level + "upper.recurrent.0", "context.next_words."
        named |= {"U_sw": of["recurrence.beside"].tolist(), **_sentence_level(of, *names)}
    return named


def hashed_rnnlm(model: DocumentLM) -> dict[str, Any]:
    """An LSTM with the head `hashed`, untied."""
    of = tensors(model)
    return {
        "X": of["embedding.weight"].tolist(),
        "g": stack(part(of, "recurrence."), "lstm"),
        "W_o": of["head.layer.output"].tolist(),
        "b": of["head.layer.bias"].tolist(),
        "D": of["head.hashes.weight"].tolist(),
    }


def _sentence_level(of: Tensors, words: str, recurrent: str, output: str) -> dict[str, Any]:
    head = part(of, output)
    return {
        "U_s": of[recurrent].tolist(),
        "W_s": of[words].T.tolist(),
        "V_s": head["layer.output"].tolist(),
        "D_s": head["hashes.weight"].tolist(),
    }


def hash_of(table: HashTable) -> Hash:
    """The first slot of each word's row in a table, which makes slots (hash(w) + t) mod S."""
    slots = table.first_slots(torch.arange(table.words)[:, None]).tolist()
    return slots.__getitem__
