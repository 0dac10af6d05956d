"""Document-level reranking of k-best lists from machine translation."""

__version__ = "0.1.0"
