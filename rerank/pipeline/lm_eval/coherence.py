"""`rerank lm-eval coherence`: how often a model prefers a document to its permutations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rerank.commands.run import progress
from rerank.errors import InputError, UsageError
from rerank.notices import Notices
from rerank.pipeline.lm_eval.texts import EvaluationText, NamedModels, check_names
from rerank.report.language_models import CoherenceReport, ModelFacts, PermutedDocument
from rerank.scorers.model_folders import broken_models, open_model, refuse

if TYPE_CHECKING:
    from lm.checkpoint import SavedModel


def coherence(
    lms: NamedModels,
    text: str | Path,
    *,
    notices: Notices,
    documents: str = "blank",
    permutations: int = 20,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> CoherenceReport:
    """Accuracy of language models, given by name, in telling documents from permuted ones.

    A document of the text is compared with up to `permutations` random permutations of its
    sentences, which all models share: the seed and the number of the document decide them. All
    have different texts, and none that of the document. A pair is right if log p of the document
    is higher, all sentences and their `</s>` counted; a tie counts ½. Documents that have no such
    permutation are left out; InputError if all are.
    """
    from lm.comparisons import distinct_orders, log_probs_of_orders

    check_names(lms)
    opened = [(name, folder, open_model(folder, device, threads)) for name, folder in lms]
    for _, folder, saved in opened:
        _check(saved, folder)
    found = EvaluationText.read(text, documents, notices)
    n = found.corpus.n_documents
    orders = {
        d: distinct_orders(found.corpus, d, permutations, np.random.default_rng((seed, d)))
        for d in range(n)
    }
    orders = {d: own for d, own in orders.items() if len(own)}
    if not orders:
        raise InputError(
            "expected a document of two different sentences or more, found none; part documents "
            "with blank lines, or choose another text",
            source=found.name,
        )
    outcomes = {}
    for name, folder, saved in opened:
        corpus, oov = found.encoded(saved, name, notices)
        log_probs = log_probs_of_orders(saved, corpus, orders)
        with broken_models(folder):
            outcomes[ModelFacts(name, saved.digest, saved.model.order, oov)] = [
                _outcomes(own)
                for own in progress(log_probs, label=name, unit="documents", total=len(orders))
            ]
    paired = [PermutedDocument(d, own.shape[1], len(own)) for d, own in orders.items()]
    return CoherenceReport.of(
        outcomes, paired, left_out=n - len(paired), permutations=permutations, seed=seed
    )


def _check(saved: SavedModel, folder: Path) -> None:
    """UsageError for a model that has no log-probability of a document of text alone."""
    if not saved.model.causal:
        raise UsageError(
            f"{folder}: the model is given the next sentence, and its scores add up to no "
            "log-probability of a document; choose another model"
        )
    refuse(saved, folder, "rerank lm-eval coherence")


def _outcomes(log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) outcomes of the pairs of a document, whose log p is the first of (1 + P,)."""
    own, others = log_probs[0], log_probs[1:]
    outcomes: NDArray[np.float64] = (own > others) + 0.5 * (own == others)
    return outcomes
