"""Exact line searches over all paths of documents, for features of order 0 and 1."""
