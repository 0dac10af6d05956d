"""The tensors of our models of Eisenstein's memo under the names of `support.scalar.memo`."""

from typing import Any

from support.scalar.names import Tensors, output_matrix, part, stack, tensors

from lm.composition import RECURRENCES, load
from lm.model import DocumentLM
from lm.vocabulary import SPECIAL, UNKNOWN


def memo(model: DocumentLM) -> dict[str, Any]:
    """All parameters that the model has."""
    of, config = tensors(model), model.config
    places = ("context.source.of_document.", "context.of_document.", "context.")
    level_of = next(place for place in places if f"{place}first" in of)
    words = config.recurrence or "lstm"
    named = {
        "X": of["embedding.weight"].tolist(),
        "f_w": stack(part(of, "recurrence."), words),
        "b": of["head.bias"].tolist(),
        "h_0": of[f"{level_of}first"].tolist(),
        "g": _representation(part(of, f"{level_of}encoder."), words, config.hidden),
    }
    V_s, V_d = output_matrix(of).tensor_split([config.hidden], dim=1)
    named |= {"V_s": V_s.tolist(), "V_d": V_d.tolist()}
    if V_d.shape[1] == 2 * config.hidden:
        V_2, V_1 = V_d.chunk(2, dim=1)
        named |= {"V_1": V_1.tolist(), "V_2": V_2.tolist()}
    if level := part(of, f"{level_of}level."):
        sentences = config.sentence_recurrence or words
        named["f"] = stack(level, sentences)
        named["state_tensors"] = load(RECURRENCES[sentences]).tensors
    if (matrices := of.get("context.relations.matrices")) is not None:
        unknown, *others = matrices.tolist()
        named["R"] = {UNKNOWN: unknown, **dict(enumerate(others, len(SPECIAL)))}
    named |= _classifier(part(of, "context.classifier."))
    if config.source_words:
        named["X_s"] = of[f"{level_of}encoder.embedding.weight"].tolist()
    named["labels"] = [UNKNOWN, *range(len(SPECIAL), config.relation_labels or 0)]
    return named


def _classifier(of: Tensors) -> dict[str, Any]:
    """Parameters of eq. 11 or 12."""
    if "matrices" in of:
        return {"Theta": of["matrices"].tolist()}
    names = {"W_1": "units.weight", "b_1": "units.bias", "W_2": "labels.weight"}
    names["b_2"] = "labels.bias"
    return {ours: of[name].tolist() for ours, name in names.items() if of}


def _representation(of: Tensors, words: str, units: int) -> dict[str, Any]:
    """Parameters of g."""
    if reader := part(of, "reader."):
        return {"reader": stack(reader, words), "units": units}
    if "filters.weight" in of:
        return {"W": of["filters.weight"].tolist(), "b": of["filters.bias"].tolist()}
    return {}
