"""File formats: k-best lists, which their first lines identify, extractor files, and weights."""
