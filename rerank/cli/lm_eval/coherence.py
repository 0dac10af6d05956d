"""`rerank lm-eval coherence`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.lm_eval.options import permuted_text_options
from rerank.cli.options import Messages, print_result


@click.command()
@permuted_text_options
def coherence(
    lms: tuple[tuple[str, Path], ...],
    text: str,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Measure how often a language model prefers a document to permutations of its sentences.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    printed as in Ji et al. 2016 (mean and standard deviation over 1,000 samples of the documents,
    with their z-test), and as the share of all pairs of a document and a permutation, with a test
    over documents between models.

    \b
    Example:
      rerank lm-eval coherence --lm codclm.lm --lm rnnlm.lm --permutations 20 test.en
    """
    from rerank.pipeline.lm_eval.coherence import coherence as coherence_of

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        result = coherence_of(lms, text, notices=notices, **options)
    print_result(result, form)
