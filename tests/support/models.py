"""Language models with chance weights."""

import torch

from lm.model import DocumentLM


def enlarged(model: DocumentLM, factor: float = 3.0) -> DocumentLM:
    """The model, all of its weights multiplied: so large that contexts matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model
