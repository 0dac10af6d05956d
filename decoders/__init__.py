"""Search for the best document in its k-best lists; knows scores, not models."""
