"""Topics by latent Dirichlet allocation (Blei et al. 2003), online (Hoffman et al. 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm.topics import Weights

PASSES = 5
WORDS_PRIOR = 0.01


def learn(counts: Any, topics: int, seed: int) -> tuple[Weights, Weights]:
    """Weights log p(w|z) (V, N) and log p(z) (N,) of LDA; counts: (M, V) in CSR form.

    The topic of a sequence is then the most probable one of a sequence that has one topic: LDA
    itself gives every word a topic of its own, and its posterior needs iterations for each prefix.
    p(w|z) is the mean of its posterior; p(z) the share of the training words that have topic z.
    Priors: 50/N of a text's topics (Griffiths & Steyvers 2004), since sparser ones leave most
    short texts to one topic of frequent words; `WORDS_PRIOR` of a topic's words.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        topics,
        doc_topic_prior=min(1.0, 50 / topics),
        topic_word_prior=WORDS_PRIOR,
        learning_method="online",
        max_iter=PASSES,
        batch_size=512,
        random_state=seed,
    )
    found = model.fit(counts).components_.T
    totals = found.sum(axis=0)
    return np.log(found / totals), np.log(totals / totals.sum())
