"""Options of training that a model has no use for, each refused with its reason."""

from dataclasses import replace

import pytest
from support.models import config_of

from lm.model import DocumentLM
from rerank.errors import UsageError
from rerank.pipeline import Recipe
from rerank.pipeline.unused_options import refuse_unused

FAULTS = {
    "--levels together: this model has no sentence level": ("rnnlm", {"levels": "together"}),
    "--auxiliary-weight 2: rnnlm is trained by the loss": ("rnnlm", {"auxiliary_weight": 2.0}),
    "--reverse-documents: rnnlm reads no context": ("rnnlm", {"reverse_documents": True}),
    "--context-noise 0.1: rnnlm reads no target": ("rnnlm", {"context_noise": 0.1}),
    "--backward: rnnslm predicts bags of words": ("rnnslm", {"backward": True}),
    "--dropout 0.1: rnnslm has no states of words": ("rnnslm", {"dropout": 0.1}),
    "--negatives 9: the head of this model": ("rnnlm-lin", {"negatives": 9}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_option_without_use_is_refused_with_the_reason(fault: str) -> None:
    name, options = FAULTS[fault]
    model = DocumentLM.without_memory(config_of(name, 9, 4, 5))
    refuse_unused(Recipe(name), Recipe(name), model)
    given = replace(Recipe(name), **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as told:
        refuse_unused(given, given, model)
    assert str(told.value).startswith(fault)
    assert str(told.value).endswith("leave the option out")
