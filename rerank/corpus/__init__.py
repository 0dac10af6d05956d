"""K-best lists, documents and references in memory."""
