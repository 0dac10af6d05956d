"""N-gram language models: counting, smoothing, ARPA files, scoring.

A model of order N predicts a word from the N − 1 words before it in its sentence. It sees nothing
of other sentences, so its order as a document model is 0.
"""

from __future__ import annotations

MOST_ORDER = 6


class NGramError(Exception):
    """A model that cannot be made, or that has no score: what was expected, found, and the cure."""
