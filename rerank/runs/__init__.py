"""Runs of documents: where lists come from, what scores and searches them, and the results."""
