"""The source context against the equations of the memo, step by step; and what it holds."""

from typing import Any

import pytest
import torch

from lm.contexts.source import SourceSentences
from lm.model import Config, DocumentLM
from lm.rows import Rows

SENTENCES = [[3, 4], [5], [], [4, 4, 6]]


def context_of(choice: str) -> SourceSentences:
    named: dict[str, Any] = {"source_context": choice, "encoder": "bag", "source_words": 8}
    model = DocumentLM.seeded(Config("dclm-bilingual", 9, 3, 4, "rnn", **named), 1)
    assert isinstance(model.context, SourceSentences)
    return model.context


@torch.no_grad()
def values(context: SourceSentences) -> list[torch.Tensor]:
    contexts, found = context.start(1), []
    for words in SENTENCES:
        side = Rows.of(torch.tensor([words], dtype=torch.long).view(1, -1) + 1)
        contexts = context.enter(contexts, context.encoded(side))
        found.append(context.value(contexts)[0])
        contexts = context.advance(contexts, Rows.of(torch.zeros(1, 0)))
    return found


@torch.no_grad()
def by_hand(context: SourceSentences) -> list[torch.Tensor]:
    """h_0, h_1, …: h_i = f(b_i, h_{i−1}), b_i the mean embedding of the source words."""
    level = context.of_document
    h: list[torch.Tensor] = [level.first]
    for words in SENTENCES:
        b = level.encoder.embedding(torch.tensor(words, dtype=torch.long)).sum(0)
        state = level.level.step(
            level.level.project((b / max(1, len(words)))[None]), (h[-1][None],)
        )
        h.append(level.level.output(state)[0])
    return h


@pytest.mark.parametrize("choice", ["previous", "current", "both"])
def test_contexts_are_those_of_the_equations(choice: str) -> None:
    context = context_of(choice)
    h = by_hand(context)
    for i, value in enumerate(values(context), 1):
        truth = {"previous": h[i - 1], "current": h[i], "both": torch.cat([h[i - 1], h[i]])}
        torch.testing.assert_close(value, truth[choice])


def test_the_memo_has_the_previous_sentence_and_the_default_both() -> None:
    config = Config("dclm-bilingual", 9, 3, 4, source_words=8)
    assert DocumentLM(config).context.width == 8
    assert context_of("previous").width == 4


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="no source context 'next' is known; there are previous"):
        context_of("next")
