"""`rerank lm-eval ordering`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.lm_eval.options import permuted_text_options
from rerank.cli.options import Messages, print_result


@click.command()
@permuted_text_options
def ordering(
    lms: tuple[tuple[str, Path], ...],
    text: str,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Measure how often a language model finds the order of the sentences of a document.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    that of Lin et al. 2015: the share of all pairs of a document and a permutation of its sentences
    in which the document has the higher probability, here with a 95% interval and a test over
    documents between models. The pairs are those of `lm-eval coherence` with the same seed.

    \b
    Example:
      rerank lm-eval ordering --lm rnnslm.lm --lm hrnnlm.lm --permutations 20 talks.en
    """
    from rerank.pipeline.lm_eval.coherence import coherence
    from rerank.report.language_models import OrderingReport

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        found = coherence(lms, text, notices=notices, **options)
    print_result(OrderingReport(found), form)
