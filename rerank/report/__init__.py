"""What reranking was worth, in tables and pictures."""
