"""`rerank lm-eval`: experiments with language models alone, one module an experiment."""

from __future__ import annotations

import click

from rerank.cli.lm_eval.coherence import coherence
from rerank.cli.lm_eval.contrastive import contrastive
from rerank.cli.lm_eval.next_sentence import next_sentence
from rerank.cli.lm_eval.ordering import ordering
from rerank.cli.lm_eval.pairs import pairs


@click.group("lm-eval")
def lm_eval() -> None:
    """Measure what language models know of documents, without lists to rerank."""


for experiment in (coherence, contrastive, next_sentence, ordering, pairs):
    lm_eval.add_command(experiment)
