"""Topics by k-means over TF-IDF vectors in the space of a latent semantic analysis."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lm.topics import Weights

DIMENSIONS = 100


def learn(counts: Any, topics: int, seed: int) -> tuple[Weights, Weights]:
    """Weights of the words whose sums are cosines times a length, and a prior of 0.

    counts: (M, V) in CSR form. A text has the vector x = Σ_w idf_w v_w, where v_w is the word's
    row of the right singular vectors of the TF-IDF matrix (Deerwester et al. 1990). The topic is
    the centroid m_z of the smallest angle to x, the largest Σ_w idf_w v_w · m_z / |m_z|: it
    needs no length of x.
    """
    from scipy.sparse import diags
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.exceptions import ConvergenceWarning

    n_texts, n_words = counts.shape
    idf = np.log(n_texts / counts.astype(bool).sum(axis=0).A1) + 1.0
    scaled = counts @ diags(idf)
    if n_words > DIMENSIONS:
        svd = TruncatedSVD(DIMENSIONS, random_state=seed).fit(scaled)
        vectors = svd.components_.T
    else:
        vectors = np.eye(n_words)
    texts = scaled @ vectors
    lengths = np.linalg.norm(texts, axis=1, keepdims=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct texts than topics
        model = KMeans(topics, n_init=1, random_state=seed).fit(texts / np.maximum(lengths, 1e-12))
    centroids = model.cluster_centers_
    norms = np.linalg.norm(centroids, axis=1, keepdims=True)
    directions = centroids / np.maximum(norms, 1e-12)
    return idf[:, None] * (vectors @ directions.T), np.zeros(topics)
