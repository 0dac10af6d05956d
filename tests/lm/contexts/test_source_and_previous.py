"""The source context beside the previous target sentence: each half is what it is alone."""

import torch

from lm.contexts.source_and_previous import SourceAndPrevious
from lm.model import Config, DocumentLM
from lm.rows import Rows
from lm.tiny_models import read_by_words

PAIRS = [([3, 4], [5, 6]), ([5], [3]), ([4, 4], [7, 8, 3])]  # source and target words


@torch.no_grad()
def test_both_halves_are_those_of_the_contexts_alone() -> None:
    model = DocumentLM.seeded(Config("dclm-bilingual-decoupled", 9, 3, 4, source_words=8), 2)
    context = model.context
    assert isinstance(context, SourceAndPrevious)
    both = context.start(1)
    source, previous = context.source.start(1), context.previous.start(1)
    for source_words, words in PAIRS:
        side = Rows.of(torch.tensor([source_words]) + 1)
        both = context.enter(both, context.encoded(side))
        source = context.source.enter(source, context.source.encoded(side))
        halves = [context.source.value(source), context.previous.value(previous)]
        assert torch.equal(context.value(both), torch.cat(halves, dim=1))
        summary = context.summary(read_by_words(model, words, both))
        both = context.advance(both, summary)
        previous = context.previous.advance(previous, summary)
    assert context.width == 4 * 3
