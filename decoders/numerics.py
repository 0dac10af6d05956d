"""Sums of probabilities held as natural logarithms, draws from them, and random generators."""

from __future__ import annotations

import hashlib

import numpy as np

from decoders.problem import Array, Indices


def log_sum_exp(logs: Array, axis: int = -1) -> Array:
    """Log Σ exp(logs) along an axis, which is not empty; −inf where all are −inf."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    with np.errstate(divide="ignore"):
        sums: Array = np.log(np.exp(logs - top).sum(axis=axis))
    return sums + top.squeeze(axis)


def softmax(logs: Array) -> Array:
    """exp(logs) normalised along the last axis; 0 in rows that are all −inf."""
    totals = log_sum_exp(logs)[..., None]
    normalised: Array = np.exp(logs - np.where(totals == -np.inf, 0.0, totals))
    return normalised


def effective_size(log_weights: Array, counts: Indices) -> float:
    """Effective number of particles, (Σ w)² / Σ w², where row m holds `counts[m]` equal particles.

    `log_weights: (M,)` of whole rows. 0 where all are −inf. Kong, Liu and Wong (1994), "Sequential
    imputations and Bayesian missing data problems", https://doi.org/10.1080/01621459.1994.10476469.
    """
    weights = softmax(log_weights)
    squares = float((weights**2 / counts).sum())
    return 0.0 if squares == 0 else 1 / squares


def draw(logs: Array, rng: np.random.Generator) -> Indices:
    """A column index for each row of `logs: (M, K)`, drawn with probability ∝ exp(logs[m, k]).

    By Gumbel maxima, O(M K): columns of −inf are never drawn. Rows that are all −inf give 0.
    """
    choices: Indices = (logs + rng.gumbel(size=logs.shape)).argmax(axis=-1)
    return choices


def rng_for(seed: int, document: str) -> np.random.Generator:
    """The random generator of one document, independent of the other documents of a run."""
    digest = hashlib.sha256(document.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng([seed, *words])
